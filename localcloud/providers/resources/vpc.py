"""VPC, vSwitch, NAT gateway, SNAT entry, elastic IP address and its association."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.providers.client import Cloud, CloudError
from localcloud.providers.resources.base import Change, Resource, TableResource

NETWORK = TableResource(
    token="alicloud:vpc/network:Network",  # noqa: S106
    product="vpc",
    create_action="CreateVpc",
    parameters={
        "vpcName": "VpcName",
        "cidrBlock": "CidrBlock",
        "description": "Description",
        "enableIpv6": "EnableIpv6",
    },
    id_path="VpcId",
    id_parameter="VpcId",
    describe_action="DescribeVpcAttribute",
    describe_path="",
    attributes={
        "vpcName": "VpcName",
        "cidrBlock": "CidrBlock",
        "description": "Description",
        "routerId": "VRouterId",
        "regionId": "RegionId",
        "status": "Status",
        "createTime": "CreationTime",
    },
    delete_action="DeleteVpc",
    changes=(Change("ModifyVpcAttribute", {"vpcName": "VpcName", "description": "Description"}),),
    tag_kind="VPC",
    ready=("Status", "Available"),
)

SWITCH = TableResource(
    token="alicloud:vpc/switch:Switch",  # noqa: S106
    product="vpc",
    create_action="CreateVSwitch",
    parameters={
        "vpcId": "VpcId",
        "zoneId": "ZoneId",
        "cidrBlock": "CidrBlock",
        "vswitchName": "VSwitchName",
        "description": "Description",
    },
    id_path="VSwitchId",
    id_parameter="VSwitchId",
    describe_action="DescribeVSwitchAttributes",
    describe_path="",
    attributes={
        "vpcId": "VpcId",
        "zoneId": "ZoneId",
        "cidrBlock": "CidrBlock",
        "vswitchName": "VSwitchName",
        "description": "Description",
        "status": "Status",
    },
    delete_action="DeleteVSwitch",
    changes=(Change("ModifyVSwitchAttribute", {"vswitchName": "VSwitchName", "description": "Description"}),),
    tag_kind="VSWITCH",
    ready=("Status", "Available"),
)

NAT_GATEWAY = TableResource(
    token="alicloud:vpc/natGateway:NatGateway",  # noqa: S106
    product="vpc",
    create_action="CreateNatGateway",
    parameters={
        "vpcId": "VpcId",
        "vswitchId": "VSwitchId",
        "natGatewayName": "Name",
        "description": "Description",
        "natType": "NatType",
        "networkType": "NetworkType",
        "internetChargeType": "InternetChargeType",
        "paymentType": "InstanceChargeType",
        "eipBindMode": "EipBindMode",
    },
    id_path="NatGatewayId",
    id_parameter="NatGatewayId",
    describe_action="DescribeNatGateways",
    describe_path="NatGateways.NatGateway",
    attributes={
        "vpcId": "VpcId",
        "natGatewayName": "Name",
        "description": "Description",
        "natType": "NatType",
        "status": "Status",
        "snatTableIds": "SnatTableIds.SnatTableId.0",
        "forwardTableIds": "ForwardTableIds.ForwardTableId.0",
        "vswitchId": "NatGatewayPrivateInfo.VswitchId",
    },
    delete_action="DeleteNatGateway",
    changes=(Change("ModifyNatGatewayAttribute", {"natGatewayName": "Name", "description": "Description"}),),
    tag_kind="NATGATEWAY",
    ready=("Status", "Available"),
    gone=True,
    values={"paymentType": {"PayAsYouGo": "PostPaid", "Subscription": "PrePaid"}},
)

EIP_ADDRESS = TableResource(
    token="alicloud:ecs/eipAddress:EipAddress",  # noqa: S106
    product="vpc",
    create_action="AllocateEipAddress",
    parameters={
        "addressName": "Name",
        "description": "Description",
        "bandwidth": "Bandwidth",
        "internetChargeType": "InternetChargeType",
        "isp": "ISP",
    },
    id_path="AllocationId",
    id_parameter="AllocationId",
    describe_action="DescribeEipAddresses",
    describe_path="EipAddresses.EipAddress",
    attributes={
        "addressName": "Name",
        "description": "Descritpion",  # the API spells it so
        "bandwidth": "Bandwidth",
        "internetChargeType": "InternetChargeType",
        "ipAddress": "IpAddress",
        "isp": "ISP",
        "status": "Status",
        "createTime": "AllocationTime",
    },
    delete_action="ReleaseEipAddress",
    changes=(
        Change(
            "ModifyEipAddressAttribute",
            {"addressName": "Name", "description": "Description", "bandwidth": "Bandwidth"},
        ),
    ),
    tag_kind="EIP",
    ready=("Status", "Available"),
)


class SnatEntry(Resource):
    """A SNAT entry; its id is `<table>:<entry>`, as the real provider has it."""

    token = "alicloud:vpc/snatEntry:SnatEntry"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """CreateSnatEntry, then wait until it works."""
        table = inputs["snatTableId"]
        answer = cloud.call(
            "vpc",
            "CreateSnatEntry",
            {
                "SnatTableId": table,
                "SnatIp": inputs["snatIp"],
                "SourceVSwitchId": inputs.get("sourceVswitchId"),
                "SourceCIDR": inputs.get("sourceCidr"),
                "SnatEntryName": inputs.get("snatEntryName"),
            },
        )
        identity = f"{table}:{answer['SnatEntryId']}"
        cloud.wait("CreateSnatEntry", lambda: (self.read(cloud, identity) or {}).get("status") == "Available")
        return identity

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeSnatTableEntries."""
        table, entry = identity.split(":")
        try:
            answer = cloud.call("vpc", "DescribeSnatTableEntries", {"SnatTableId": table, "SnatEntryId": entry})
        except CloudError as error:
            if error.not_found:
                return None
            raise
        for found in answer["SnatTableEntries"]["SnatTableEntry"]:
            if found["SnatEntryId"] == entry:
                return {
                    "snatTableId": table,
                    "snatEntryId": entry,
                    "snatIp": found.get("SnatIp"),
                    "sourceVswitchId": found.get("SourceVSwitchId"),
                    "sourceCidr": found.get("SourceCIDR"),
                    "snatEntryName": found.get("SnatEntryName"),
                    "status": found.get("Status"),
                }
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """ModifySnatEntry."""
        table, entry = identity.split(":")
        cloud.call(
            "vpc",
            "ModifySnatEntry",
            {
                "SnatTableId": table,
                "SnatEntryId": entry,
                "SnatIp": new["snatIp"],
                "SnatEntryName": new.get("snatEntryName"),
            },
        )

    def delete(self, cloud: Cloud, identity: str) -> None:
        """DeleteSnatEntry, then wait until it is gone."""
        table, entry = identity.split(":")
        try:
            cloud.call("vpc", "DeleteSnatEntry", {"SnatTableId": table, "SnatEntryId": entry})
        except CloudError as error:
            if not error.not_found:
                raise
        cloud.wait("DeleteSnatEntry", lambda: self.read(cloud, identity) is None)


class EipAssociation(Resource):
    """An elastic IP address bound to an instance or NAT gateway; its id is `<allocation>:<instance>`."""

    token = "alicloud:ecs/eipAssociation:EipAssociation"  # noqa: S105

    def create(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        """AssociateEipAddress, then wait until it is in use."""
        instance = inputs["instanceId"]
        kind = inputs.get("instanceType") or ("Nat" if instance.startswith("ngw-") else "EcsInstance")
        cloud.call(
            "vpc",
            "AssociateEipAddress",
            {"AllocationId": inputs["allocationId"], "InstanceId": instance, "InstanceType": kind},
        )
        identity = f"{inputs['allocationId']}:{instance}"
        cloud.wait("AssociateEipAddress", lambda: self.read(cloud, identity) is not None)
        return identity

    def read(self, cloud: Cloud, identity: str) -> dict[str, Any] | None:
        """DescribeEipAddresses."""
        allocation, instance = identity.split(":")
        answer = cloud.call("vpc", "DescribeEipAddresses", {"AllocationId": allocation})
        for found in answer["EipAddresses"]["EipAddress"]:
            if found.get("InstanceId") == instance and found.get("Status") == "InUse":
                return {
                    "allocationId": allocation,
                    "instanceId": instance,
                    "instanceType": found.get("InstanceType"),
                }
        return None

    def update(self, cloud: Cloud, identity: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Nothing changes in place."""

    def delete(self, cloud: Cloud, identity: str) -> None:
        """UnassociateEipAddress, then wait until the address is free."""
        allocation, instance = identity.split(":")
        if self.read(cloud, identity) is None:
            return
        kind = "Nat" if instance.startswith("ngw-") else "EcsInstance"
        cloud.call(
            "vpc",
            "UnassociateEipAddress",
            {"AllocationId": allocation, "InstanceId": instance, "InstanceType": kind},
        )
        cloud.wait("UnassociateEipAddress", lambda: self.read(cloud, identity) is None)


RESOURCES: tuple[Resource, ...] = (NETWORK, SWITCH, NAT_GATEWAY, EIP_ADDRESS, SnatEntry(), EipAssociation())
