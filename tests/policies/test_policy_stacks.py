"""The shipped stacks against the rules of their environments, as the program registers them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from components.cluster import Cluster, ClusterArgs
from components.recording import UNKNOWN as RECORDED_UNKNOWN
from components.recording import Registered, record, unwrap
from hpc.catalog import load_catalog
from hpc.paths import PROJECT_ROOT
from hpc.plan import catalog_invokes
from hpc.preview.environment import Environment, environment_of
from hpc.spec.cluster import ClusterSpec
from policies.model import Resource, Stack, Violation, check_resource, check_stack
from policies.props import UNKNOWN, Props
from policies.registry import RULES

#: Rules that follow inputs to the resources they come from, which the recorder does not keep for unknown values.
FOLLOWING = ("hpc-source-groups", "hpc-no-elastic-address")


@pytest.fixture(scope="module", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def shipped(name: str) -> dict[str, Any]:
    return copy.deepcopy(yaml.safe_load((PROJECT_ROOT / f"Pulumi.{name}.yaml").read_text())["config"]["hpc:cluster"])


def after_up(kind: str, name: str, inputs: Any) -> dict[str, Any]:
    if kind == "command:local:Command":
        return {"stdout": json.dumps({"private": "p", "public": "ssh-rsa A"}), "stderr": ""}
    return {
        "alicloud:ecs/instance:Instance": {"primaryIpAddress": f"10.0.0.{sum(name.encode()) % 250}"},
        "alicloud:ecs/eipAddress:EipAddress": {"ipAddress": "198.51.100.7"},
        "alicloud:vpc/natGateway:NatGateway": {"snatTableIds": "stb-1"},
        "alicloud:nas/mountTarget:MountTarget": {"mountTargetDomain": f"{name}.cn-hangzhou.nas.aliyuncs.com"},
    }.get(kind, {})


def as_policies_see(value: Any) -> Any:
    if value is RECORDED_UNKNOWN:
        return UNKNOWN
    if isinstance(value, dict):
        return {key: as_policies_see(item) for key, item in value.items()}
    return [as_policies_see(item) for item in value] if isinstance(value, list) else value


def resource(one: Registered, *, preview: bool) -> Resource:
    props = as_policies_see(unwrap(one.inputs))
    if one.custom and not preview:
        props["id"] = f"{one.name}-id"
    return Resource(one.type, one.name, Props(props), one.urn, one.protect, one.parent, "cn-hangzhou")


def registered(values: dict[str, Any], *, preview: bool) -> Stack:
    catalog = load_catalog()
    spec = ClusterSpec.model_validate(values)

    def program() -> None:
        Cluster(spec.name, ClusterArgs(spec, catalog))

    recording = record(
        program,
        invokes=catalog_invokes(catalog),
        outputs=None if preview else after_up,
        stack="test",
    )
    return Stack(tuple(resource(one, preview=preview) for one in recording.resources))


def refused(stack: Stack, environment: Environment) -> list[tuple[str, Violation]]:
    out = []
    for rule in RULES:
        if environment.levels[rule.name] in ("mandatory", "remediate"):
            settings = environment.settings.get(rule.name)
            found = [v for one in stack.resources for v in check_resource(rule, one, settings)]
            out += [(rule.name, v) for v in (*found, *check_stack(rule, stack, settings))]
    return out


@pytest.mark.parametrize("preview", [False, True], ids=["after-up", "preview"])
@pytest.mark.parametrize("name", ["dev", "staging", "prod", "local"])
def test_shipped_stacks_pass(name: str, preview: bool) -> None:
    stack = registered(shipped(name), preview=preview)
    assert len(stack.resources) > 30
    found = refused(stack, environment_of(name))
    assert [(rule, v.name, v.message) for rule, v in found if not (preview and rule in FOLLOWING)] == []


def test_the_dev_stack_passes_in_staging_too() -> None:
    assert refused(registered(shipped("dev"), preview=False), environment_of("staging")) == []


def test_every_rule_looks_at_something_of_the_shipped_stacks() -> None:
    """A rule whose types no stack has would never be tried before somebody needs it, unless that is its very point."""
    types = {one.type for one in registered(shipped("prod"), preview=False).resources}
    assert [rule.name for rule in RULES if not types & set(rule.types)] == ["hpc-judged-types"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"max": 32}, "hpc-budget-hour"),
        ({"max": 64, "instance_types": ["ecs.c8ae.large"]}, "hpc-size"),
        ({"idle": "2h"}, "hpc-compute-released"),
        ({"system_disk": {"encrypted": False}}, "hpc-disks-encrypted"),
    ],
)
def test_a_change_of_the_dev_pool_is_refused(change: dict[str, Any], rule: str) -> None:
    values = shipped("dev")
    values.pop("budget")
    values["pools"][0] |= change
    found = refused(registered(values, preview=True), environment_of("dev"))
    assert {name for name, _ in found} - set(FOLLOWING) == {rule}


def test_a_budget_without_a_known_price_is_not_a_pass() -> None:
    stack = Stack(
        tuple(
            Resource(one.type, one.name, Props({**one.props.values, "priceKnown": False}), one.urn)
            if one.type == "hpc:cluster:Cluster"
            else one
            for one in registered(shipped("dev"), preview=False).resources
        )
    )
    found = refused(stack, environment_of("dev"))
    assert {name for name, v in found if v.unverified} == {"hpc-budget-hour", "hpc-budget-month"}
