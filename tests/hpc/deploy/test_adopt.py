from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hpc.deploy.adopt import adopt
from hpc.deploy.rpc import Api
from hpc.elastic.ecs import Connection
from hpc.errors import CannotRunError

_VPC = "alicloud:vpc/network:Network"


class Recorded(Api):
    """Answers of a cloud with some VPCs."""

    def __init__(self, *vpcs: str) -> None:
        self._vpcs = vpcs

    def call(self, product: str, action: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        assert (product, action) == ("vpc", "DescribeVpcs")
        # The API takes a name for the beginning of one.
        named = [{"VpcId": vpc, "VpcName": "cfd-vpc"} for vpc in self._vpcs]
        return {"Vpcs": {"Vpc": [*named, {"VpcId": "vpc-other", "VpcName": "cfd-vpc-2"}]}}


def begun(kind: str = "creating", resource_type: str = _VPC, **inputs: str) -> dict[str, Any]:
    return {
        "type": kind,
        "resource": {"urn": f"urn:pulumi:s::hpc::{resource_type}::it", "type": resource_type, "inputs": inputs},
    }


def test_what_the_cloud_has_is_taken_over() -> None:
    told: list[str] = []
    found = adopt({"resources": [], "pending_operations": [begun(vpcName="cfd-vpc")]}, Recorded("vpc-1"), told.append)
    assert [resource["id"] for resource in found["resources"]] == ["vpc-1"]
    assert found["pending_operations"] == []
    assert told == ["found it: vpc-1"]


def test_what_the_cloud_does_not_have_is_forgotten() -> None:
    state = {"resources": [], "pending_operations": [begun(vpcName="cfd-vpc")]}
    assert adopt(state, Recorded(), print) == {"resources": [], "pending_operations": []}


def test_what_is_known_is_not_taken_twice() -> None:
    known = {"type": _VPC, "id": "vpc-1", "urn": "urn:other"}
    state = {"resources": [known], "pending_operations": [begun(vpcName="cfd-vpc")]}
    assert adopt(state, Recorded("vpc-1"), print)["resources"] == [known]


@pytest.mark.parametrize(
    "operation",
    [
        begun("updating", vpcName="cfd-vpc"),
        begun(),
        begun(resource_type="command:local:Command", create="true"),
        begun(resource_type="alicloud:ecs/securityGroupRule:SecurityGroupRule"),
    ],
    ids=["not-a-create", "no-name", "a-command", "a-rule"],
)
def test_what_needs_no_look_is_dropped(operation: dict[str, Any]) -> None:
    assert adopt({"pending_operations": [operation]}, Recorded("vpc-1"), print)["resources"] == []


def test_two_of_a_name_are_left_to_the_user() -> None:
    with pytest.raises(CannotRunError, match="vpc-1, vpc-2") as refused:
        adopt({"pending_operations": [begun(vpcName="cfd-vpc")]}, Recorded("vpc-1", "vpc-2"), print)
    assert refused.value.code == "HPC724"


def test_cloud_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "hidden-secret")
    api = Api(Connection("cn-hangzhou", "127.0.0.1:9", "http"))
    with pytest.raises(CannotRunError) as refused:
        adopt({"pending_operations": [begun(vpcName="cfd-vpc")]}, api, print)
    assert refused.value.code == "HPC725"
    assert "hidden-secret" not in str(refused.value)
