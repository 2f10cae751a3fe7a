from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from provider_schema import problems, schema
from registering import STACKS, registered, small, stack_values

from components.recording import UNKNOWN, Registered

#: Clusters that together use every argument that the components ever set.
CLUSTERS = {
    **{name: stack_values(name) for name in STACKS},
    "everything": small(
        network={"ssh_from": ["203.0.113.0/24", "2001:db8::/32"], "nat": True, "ipv6": True},
        storage=[
            {"mount": "/home", "storage_type": "capacity", "zone": "cn-hangzhou-k"},
            {"mount": "/scratch", "kind": "extreme", "storage_type": "advance", "capacity_gib": 500},
            {"mount": "/data", "file_system_id": "0123abc456"},
        ],
        management={"charge": "prepaid", "period_months": 12, "backup": True, "system_disk": {"encrypted": False}},
        login={"count": 2, "charge": "prepaid", "auto_renew": False},
        pools=[
            {
                "name": "a",
                "instance_types": ["ecs.c8ae.16xlarge"],
                "spot_price_limit": "9.5",
                "spot_duration": 1,
                "placement": "availability",
                "interconnect": "tcp",
                "image": {"os": "rocky-9", "image_id": "m-baked0001", "baked": True},
                "tags": {"team": "cfd"},
            }
        ],
        tags={"environment": "test"},
        protect=False,
    ),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_resource_has_only_inputs_that_the_real_provider_takes(name: str) -> None:
    for preview in (True, False):
        resources = [r for r in registered(CLUSTERS[name], preview=preview).resources if r.type.startswith("alicloud:")]
        assert len(resources) > 20
        assert [problem for resource in resources for problem in problems(resource)] == []


def sample(**inputs: Any) -> Registered:
    return dataclasses.replace(
        registered(small()).named("c-pool-a-template"),
        inputs=inputs,
        type="alicloud:ecs/ecsLaunchTemplate:EcsLaunchTemplate",
    )


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"networkInterfaceTrafficMode": "HighPerformance"}, "is unknown"),
        ({"httpTokens": True}, "not of type string"),
        ({"internetMaxBandwidthOut": True}, "not of type integer"),
        ({"internetMaxBandwidthOut": "0"}, "not of type integer"),
        ({"systemDisk": {"size": "40"}}, "size = '40' is not of type integer"),
        ({"systemDisk": {"sizes": 40}}, "sizes is unknown"),
        ({"systemDisk": []}, "is not an object"),
        ({"tags": {"a": 1}}, "tags.a = 1"),
        ({"securityGroupIds": "sg-1"}, "is not a list"),
        ({"name": "x"}, "is deprecated"),
    ],
)
def test_the_check_finds_wrong_inputs(inputs: dict[str, Any], says: str) -> None:
    (problem,) = problems(sample(**inputs))
    assert says in problem


def test_the_check_finds_missing_inputs_and_accepts_unknown_ones() -> None:
    rule = registered(small(), preview=True).named("c-security-members-ssh")
    assert rule.inputs["securityGroupId"] is UNKNOWN
    assert problems(rule) == []
    less = {key: value for key, value in rule.inputs.items() if key != "securityGroupId"}
    assert problems(dataclasses.replace(rule, inputs=less)) == [f"{rule.type} {rule.name}: securityGroupId is missing"]


def test_the_schema_has_a_type_for_every_nested_type_that_is_used() -> None:
    for about in schema()["resources"].values():
        for field in about["inputs"].values():
            kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
            for kind in kinds:
                simple = {"string", "integer", "number", "boolean", "array", "map"}
                assert isinstance(kind, list) or kind in simple or kind in schema()["types"]
