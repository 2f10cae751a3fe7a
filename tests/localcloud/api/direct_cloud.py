"""Calls actions of an opened cloud without HTTP and signatures, so that rules can be tested by the dozen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localcloud.api import rpc
from localcloud.api.access import Caller
from localcloud.api.api_only import ApiOnlyBackend
from localcloud.api.errors import ApiError
from localcloud.api.registry import ACTIONS
from localcloud.api.server import Server

IMAGE = "debian_12_13_x64_20G_alibase_20241201.vhd"
TYPE = "ecs.c8ae.4xlarge"


class Direct:
    """One opened cloud."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.server = Server(state, ApiOnlyBackend(), region="cn-hangzhou", endpoint="127.0.0.1:1")

    def reopen(self) -> None:
        self.server.close()
        self.server = Server(self.state, ApiOnlyBackend(), region="cn-hangzhou", endpoint="127.0.0.1:1")

    def call(self, product: str, action: str, /, role: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Underscores in names stand for dots: `Tag_1_Key`."""
        flat = {name.replace("_", "."): str(value) for name, value in parameters.items()}
        request = rpc.Request("POST", "/", {}, {"RegionId": "cn-hangzhou", **flat}, {}, "")
        caller = Caller("test", self.server.account_id, role, "session" if role else "")
        self.server.tick()
        return self.server._run(ACTIONS[(product, action.lower())], request, caller)

    def code(self, product: str, action: str, /, role: str | None = None, **parameters: Any) -> str:
        """The error code of a call that must fail."""
        try:
            answer = self.call(product, action, role, **parameters)
        except ApiError as error:
            return error.code
        raise AssertionError(f"{action} worked: {answer}")

    def knobs(self, **changes: Any) -> None:
        self.server.set_knobs(
            self.server.cloud.knobs.model_validate({**self.server.cloud.knobs.model_dump(), **changes})
        )

    def network(self, cidr: str = "10.0.0.0/16", zone: str = "cn-hangzhou-j") -> tuple[str, str, str]:
        """A VPC with a vSwitch and a security group."""
        vpc = self.call("vpc", "CreateVpc", CidrBlock="10.0.0.0/8")["VpcId"]
        vswitch = self.call("vpc", "CreateVSwitch", VpcId=vpc, ZoneId=zone, CidrBlock=cidr)["VSwitchId"]
        group = self.call("ecs", "CreateSecurityGroup", VpcId=vpc)["SecurityGroupId"]
        return vpc, vswitch, group

    def run(self, vswitch: str, group: str, **parameters: Any) -> list[str]:
        """RunInstances with what most tests do not care about."""
        wanted = {"InstanceType": TYPE, "ImageId": IMAGE, "VSwitchId": vswitch, "SecurityGroupId": group}
        answer = self.call("ecs", "RunInstances", **{**wanted, **parameters})
        found: list[str] = answer["InstanceIdSets"]["InstanceIdSet"]
        return found

    def run_code(self, vswitch: str, group: str, **parameters: Any) -> str:
        wanted = {"InstanceType": TYPE, "ImageId": IMAGE, "VSwitchId": vswitch, "SecurityGroupId": group}
        return self.code("ecs", "RunInstances", **{**wanted, **parameters})

    def instances(self, **parameters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("ecs", "DescribeInstances", PageSize=100, **parameters)["Instances"][
            "Instance"
        ]
        return found
