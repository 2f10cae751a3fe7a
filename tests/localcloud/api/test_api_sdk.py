"""Every action of the local cloud, called through the official Python SDKs; they must know all that is answered."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import oidc_issuer
import pytest
from alibabacloud_tea_openapi.models import Config
from direct_cloud import IMAGE
from oidc_issuer import Issuer

import localcloud.api.actions  # noqa: F401  (registers the actions)
from localcloud.api.client import LocalCloud
from localcloud.api.registry import ACTIONS, VERSIONS

PACKAGES = {
    "ecs": "alibabacloud_ecs20140526",
    "vpc": "alibabacloud_vpc20160428",
    "nas": "alibabacloud_nas20170626",
    "ram": "alibabacloud_ram20150501",
    "sts": "alibabacloud_sts20150401",
    "bss": "alibabacloud_bssopenapi20171214",
    "tag": "alibabacloud_tag20180828",
    "location": "alibabacloud_location20150612",
    "ims": "alibabacloud_ims20190815",
}
#: Members that other clients read (the Go clients of the provider) and the Python SDK does not know, and members that
#: an action shares with a sibling where the SDK lists them.
OTHERS = {
    "CPU", "Descritpion", "EipBandwidth", "PolicyDocument", "NextToken", "TotalCount", "PageNumber", "PageSize",
    "MaxResults", "HostId", "CoreCount", "ClassicLinkEnabled", "NatGatewayIds", "RouterTableIds",
    # of endpoints
    "ServiceCode", "Success",
    # of roles and policies
    "AttachmentCount", "AssumeRolePolicyDocument", "IsServiceLinkedRole", "RolePrincipalName", "UpdateDate",
}  # fmt: skip
TRUST = json.dumps({"Version": "1", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]})
POLICY = json.dumps({"Version": "1", "Statement": [{"Effect": "Allow", "Action": "ecs:*", "Resource": "*"}]})
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN7qVYtZ6wv7pJZ3m3t0m4g7l2G1jv6xYx2QY4h2q3aB t"
RULE = {"IpProtocol": "tcp", "PortRange": "22/22", "SourceCidrIp": "10.0.0.0/8"}
EGRESS = {"IpProtocol": "tcp", "PortRange": "22/22", "DestCidrIp": "10.0.0.0/8"}
EXTREME = {"FileSystemType": "extreme"}
ARNS = ["acs:vpc:cn-hangzhou:$account:vpc/$vpc"]


class Calls:
    """SDK clients of one cloud; `raw` is the answer before the SDK has made models of it."""

    def __init__(self, cloud: LocalCloud, issuer: Issuer) -> None:
        account = cloud.record.account_id
        self.names: dict[str, Any] = {
            "account": account,
            "issuer": issuer.url,
            "token": issuer.token(),
            "trust": oidc_issuer.trust(f"acs:ram::{account}:oidc-provider/ci"),
        }
        self.done: set[tuple[str, str]] = set()
        self.unknown: set[str] = set()
        self._raw: Any = None
        self._models: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        for product, package in PACKAGES.items():
            config = Config(
                access_key_id=cloud.record.access_key_id,
                access_key_secret=cloud.record.access_key_secret,
                endpoint=cloud.endpoint,
                protocol="http",
                region_id="cn-hangzhou",
            )
            client = importlib.import_module(package + ".client").Client(config)
            self._models[product] = importlib.import_module(package + ".models")
            self._clients[product] = client
            client.call_api = self._recording(client.call_api)
            client.do_rpcrequest = self._recording(client.do_rpcrequest)

    def _recording(self, call_api: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*arguments: Any, **options: Any) -> Any:
            self._raw = call_api(*arguments, **options)
            return self._raw

        return recorded

    def request_class(self, product: str, action: str) -> Any:
        wanted = f"{action}Request".lower()
        found = next((name for name in dir(self._models[product]) if name.lower() == wanted), None)
        return getattr(self._models[product], found) if found else None

    def _fill(self, value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\$(\w+)", lambda match: str(self.names[match.group(1)]), value)
        if isinstance(value, Mapping):
            return {name: self._fill(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._fill(item) for item in value]
        return value

    def method(self, product: str, action: str) -> Any:
        wanted = action.lower()
        for name, member in inspect.getmembers(self._clients[product], inspect.ismethod):
            if name.replace("_", "") == wanted:
                return member
        return None

    def call(self, product: str, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        request_class = self.request_class(product, action)
        filled = self._fill(dict(parameters))
        method = self.method(product, action)
        if request_class is None:
            response = method()
        else:
            request = request_class().from_map(filled)
            sent = {name for name, value in request.to_map().items() if value is not None}
            assert set(filled) <= sent, f"{action}: the SDK does not have {set(filled) - sent}"
            if "RegionId" not in filled and hasattr(request, "region_id"):
                request.region_id = "cn-hangzhou"
            response = method(request)
        assert getattr(response, "status_code", 200) == 200  # the oldest SDK does not tell
        body = response.body.to_map()
        assert body["RequestId"]
        raw = self._raw["body"]
        self._compare(f"{action}", raw, body)
        self.done.add((product, action.lower()))
        found: dict[str, Any] = raw
        return found

    def _compare(self, path: str, raw: Any, known: Any) -> None:
        if isinstance(raw, Mapping) and isinstance(known, Mapping):
            for name, value in raw.items():
                here = f"{path}.{name}"
                shared = path.endswith((".Role", ".Policy")) and name == "Tags"
                shared = shared or (path.startswith("DescribeVSwitch") and name == "RegionId")
                if shared or name in OTHERS or name.startswith("SystemDisk."):
                    continue
                if name not in known:
                    if value not in (None, {}, []):
                        self.unknown.add(here)
                else:
                    self._compare(here, value, known[name])
        elif isinstance(raw, list) and isinstance(known, list):
            for one, other in zip(raw, known, strict=False):
                self._compare(path, one, other)


def at(path: str) -> Callable[[Any], Any]:
    """The value at a path such as `SnatTableIds.SnatTableId.0`."""

    def find(document: Any) -> Any:
        for part in path.split("."):
            document = document[int(part)] if part.isdigit() else document[part]
        return document

    return find


DISKS = {"Category": "cloud_essd", "Size": 40}
#: Parameters that the Python SDK of today does not have and other clients, or older ones, send.
OTHER_CLIENTS = {
    "DescribeVpcs.MaxResults", "DescribeVpcs.NextToken", "DescribeKeyPairs.MaxResults", "DescribeKeyPairs.NextToken",
    "DescribeInstanceStatus.MaxResults", "DescribeInstanceStatus.NextToken", "DescribeAvailableResource.ResourceId",
    "ListTagResources.MaxResults", "ListTagResources.PageSize", "UntagResources.TagKey.N", "GetRole.Language",
    "DescribeNetworkInterfaces.Attributes.N", "DescribeNetworkInterfaces.NetworkInterfaceTrafficMode",
    "CreateLaunchTemplate.LaunchTemplateId", "CreateLaunchTemplate.SpotInterruptionBehavior",
    "CreateLaunchTemplateVersion.SpotInterruptionBehavior", "CreateLaunchTemplateVersion.TemplateResourceGroupId",
    "CreateLaunchTemplateVersion.TemplateTag.N.Key", "CreateLaunchTemplateVersion.TemplateTag.N.Value",
    "RunInstances.AdditionalInfo.EnableHighDensityMode", "StartInstance.SourceRegionId", "ModifyInstanceSpec.AsyncType",
    "DescribeEndpoint.Type", "DescribeEndpoint.Namespace", "AssumeRoleWithOIDC.SourceIdentity",
    "UnassociateEipAddress.InstanceRegionId", "ReleaseEipAddress.DryRun", "DescribeNatGateways.VSwitchId",
    # the same in both directions
    *(
        f"{action}.{peer}{name}"
        for action, peer in (
            ("AuthorizeSecurityGroup", "Dest"), ("RevokeSecurityGroup", "Dest"),
            ("AuthorizeSecurityGroupEgress", "Source"), ("RevokeSecurityGroupEgress", "Source"),
        )
        for name in ("GroupId", "GroupOwnerAccount", "GroupOwnerId")
    ),
}  # fmt: skip
Step = tuple[str, str, dict[str, Any], dict[str, str]]
#: What is called in which order: product, action, parameters, and what to keep of the answer for later ones.
STEPS: list[Step] = [
    ("ecs", "DescribeRegions", {}, {}),
    ("ecs", "DescribeZones", {}, {}),
    ("ecs", "DescribeAccountAttributes", {}, {}),
    ("ecs", "DescribeInstanceTypes", {"InstanceTypes": ["ecs.c8ae.4xlarge"]}, {}),
    ("ecs", "DescribeInstanceTypeFamilies", {}, {}),
    ("ecs", "DescribeAvailableResource", {"DestinationResource": "InstanceType", "InstanceType": "ecs.c7.large"}, {}),
    ("ecs", "DescribePrice", {"ResourceType": "instance", "InstanceType": "ecs.c7.large", "PriceUnit": "Hour"}, {}),
    ("ecs", "DescribeSpotPriceHistory", {"InstanceType": "ecs.c8ae.4xlarge", "NetworkType": "vpc"}, {}),
    ("ecs", "DescribeSpotAdvice", {"InstanceTypes": ["ecs.c8ae.4xlarge"]}, {}),
    ("ecs", "DescribeImages", {"PageSize": 20}, {}),
    ("ecs", "DescribeImageSupportInstanceTypes", {"ImageId": IMAGE}, {}),
    ("vpc", "DescribeRegions", {}, {}),
    ("vpc", "DescribeZones", {}, {}),
    ("vpc", "CreateVpc", {"CidrBlock": "10.0.0.0/8", "VpcName": "n"}, {"vpc": "VpcId", "table": "RouteTableId"}),
    ("vpc", "DescribeVpcs", {"VpcId": "$vpc"}, {}),
    ("vpc", "DescribeVpcAttribute", {"VpcId": "$vpc"}, {}),
    ("vpc", "ModifyVpcAttribute", {"VpcId": "$vpc", "VpcName": "m"}, {}),
    (
        "vpc",
        "CreateVSwitch",
        {"VpcId": "$vpc", "ZoneId": "cn-hangzhou-j", "CidrBlock": "10.1.0.0/16"},
        {"vsw": "VSwitchId"},
    ),
    ("vpc", "DescribeVSwitches", {"VpcId": "$vpc"}, {}),
    ("vpc", "DescribeVSwitchAttributes", {"VSwitchId": "$vsw"}, {}),
    ("vpc", "ModifyVSwitchAttribute", {"VSwitchId": "$vsw", "VSwitchName": "m"}, {}),
    ("vpc", "DescribeRouteTableList", {"VpcId": "$vpc"}, {}),
    ("vpc", "DescribeRouteTables", {"RouteTableId": "$table"}, {}),
    ("vpc", "ModifyRouteTableAttributes", {"RouteTableId": "$table", "RouteTableName": "t"}, {}),
    ("vpc", "TagResources", {"ResourceType": "VPC", "ResourceId": ["$vpc"], "Tag": [{"Key": "a", "Value": "b"}]}, {}),
    ("vpc", "ListTagResources", {"ResourceType": "VPC", "ResourceId": ["$vpc"]}, {}),
    ("vpc", "UntagResources", {"ResourceType": "VPC", "ResourceId": ["$vpc"], "TagKey": ["a"]}, {}),
    ("tag", "TagResources", {"ResourceARN": ARNS, "Tags": '{"a": "b"}', "RegionId": "cn-hangzhou"}, {}),
    ("tag", "ListTagResources", {"ResourceARN": ARNS, "RegionId": "cn-hangzhou"}, {}),
    ("tag", "UntagResources", {"ResourceARN": ARNS, "TagKey": ["a"], "RegionId": "cn-hangzhou"}, {}),
    ("location", "DescribeEndpoint", {"Id": "cn-hangzhou", "ServiceCode": "ecs"}, {}),
    ("location", "DescribeEndpoints", {"Id": "cn-hangzhou", "ServiceCode": "ecs", "Type": "openAPI"}, {}),
    ("location", "DescribeServices", {}, {}),
    (
        "vpc",
        "CreateNatGateway",
        {"VpcId": "$vpc", "VSwitchId": "$vsw", "NatType": "Enhanced"},
        {"nat": "NatGatewayId", "snats": "SnatTableIds.SnatTableId.0"},
    ),
    ("vpc", "DescribeNatGateways", {"NatGatewayId": "$nat"}, {}),
    ("vpc", "GetNatGatewayAttribute", {"NatGatewayId": "$nat"}, {}),
    ("vpc", "ModifyNatGatewayAttribute", {"NatGatewayId": "$nat", "Name": "m"}, {}),
    ("vpc", "DeletionProtection", {"InstanceId": "$nat", "Type": "NATGW", "ProtectionEnable": False}, {}),
    ("vpc", "AllocateEipAddress", {"Bandwidth": "5"}, {"eip": "AllocationId", "address": "EipAddress"}),
    ("vpc", "ModifyEipAddressAttribute", {"AllocationId": "$eip", "Bandwidth": "6"}, {}),
    ("vpc", "AssociateEipAddress", {"AllocationId": "$eip", "InstanceId": "$nat", "InstanceType": "Nat"}, {}),
    ("vpc", "DescribeEipAddresses", {"AllocationId": "$eip"}, {}),
    (
        "vpc",
        "CreateSnatEntry",
        {"SnatTableId": "$snats", "SnatIp": "$address", "SourceVSwitchId": "$vsw"},
        {"snat": "SnatEntryId"},
    ),
    ("vpc", "DescribeSnatTableEntries", {"SnatTableId": "$snats"}, {}),
    ("vpc", "ModifySnatEntry", {"SnatTableId": "$snats", "SnatEntryId": "$snat", "SnatEntryName": "m"}, {}),
    ("ecs", "CreateSecurityGroup", {"VpcId": "$vpc", "SecurityGroupName": "g"}, {"sg": "SecurityGroupId"}),
    ("ecs", "CreateSecurityGroup", {"VpcId": "$vpc"}, {"sg2": "SecurityGroupId"}),
    ("ecs", "AuthorizeSecurityGroup", {"SecurityGroupId": "$sg", "Permissions": [RULE]}, {}),
    (
        "ecs",
        "AuthorizeSecurityGroup",
        {
            "SecurityGroupId": "$sg",
            "Permissions": [{"IpProtocol": "all", "PortRange": "-1/-1", "SourceGroupId": "$sg2"}],
        },
        {},
    ),
    ("ecs", "AuthorizeSecurityGroupEgress", {"SecurityGroupId": "$sg", "Permissions": [EGRESS]}, {}),
    ("ecs", "DescribeSecurityGroupAttribute", {"SecurityGroupId": "$sg"}, {}),
    ("ecs", "DescribeSecurityGroups", {"VpcId": "$vpc"}, {}),
    ("ecs", "DescribeSecurityGroupReferences", {"SecurityGroupId": ["$sg2"]}, {}),
    ("ecs", "ModifySecurityGroupAttribute", {"SecurityGroupId": "$sg", "SecurityGroupName": "m"}, {}),
    ("ecs", "ModifySecurityGroupPolicy", {"SecurityGroupId": "$sg", "InnerAccessPolicy": "Accept"}, {}),
    ("ecs", "CreateKeyPair", {"KeyPairName": "made"}, {}),
    ("ecs", "ImportKeyPair", {"KeyPairName": "own", "PublicKeyBody": KEY}, {}),
    ("ecs", "DescribeKeyPairs", {}, {}),
    ("ecs", "CreateDeploymentSet", {"Strategy": "LowLatency", "DeploymentSetName": "d"}, {"ds": "DeploymentSetId"}),
    ("ecs", "DescribeDeploymentSets", {"DeploymentSetIds": '["$ds"]'}, {}),
    ("ecs", "ModifyDeploymentSetAttribute", {"DeploymentSetId": "$ds", "DeploymentSetName": "m"}, {}),
    (
        "ecs",
        "CreateLaunchTemplate",
        {
            "LaunchTemplateName": "lt",
            "ImageId": IMAGE,
            "InstanceType": "ecs.c8ae.4xlarge",
            "SystemDisk": DISKS,
            "DataDisk": [DISKS],
            "Tag": [{"Key": "a", "Value": "b"}],
            "HttpTokens": "required",
        },
        {"lt": "LaunchTemplateId"},
    ),
    (
        "ecs",
        "CreateLaunchTemplateVersion",
        {"LaunchTemplateId": "$lt", "ImageId": IMAGE, "InstanceType": "ecs.c7.large"},
        {},
    ),
    ("ecs", "ModifyLaunchTemplateDefaultVersion", {"LaunchTemplateId": "$lt", "DefaultVersionNumber": 2}, {}),
    ("ecs", "ModifyLaunchTemplateDefaultVersion", {"LaunchTemplateId": "$lt", "DefaultVersionNumber": 1}, {}),
    ("ecs", "DescribeLaunchTemplates", {"LaunchTemplateId": ["$lt"]}, {}),
    ("ecs", "DescribeLaunchTemplateVersions", {"LaunchTemplateId": "$lt"}, {}),
    ("ecs", "DeleteLaunchTemplateVersion", {"LaunchTemplateId": "$lt", "DeleteVersion": [2]}, {}),
    (
        "ecs",
        "RunInstances",
        {
            "LaunchTemplateId": "$lt",
            "Amount": 2,
            "MinAmount": 1,
            "InstanceName": "n[1,3]",
            "HostName": "n[1,3]",
            "SpotStrategy": "SpotAsPriceGo",
            "KeyPairName": "own",
            "UserData": "aGk=",
            "NetworkInterface": [
                {
                    "InstanceType": "Primary",
                    "VSwitchId": "$vsw",
                    "SecurityGroupIds": ["$sg"],
                    "NetworkInterfaceTrafficMode": "HighPerformance",
                }
            ],
        },
        {"i": "InstanceIdSets.InstanceIdSet.0", "i2": "InstanceIdSets.InstanceIdSet.1"},
    ),
    (
        "ecs",
        "DescribeInstances",
        {"InstanceIds": '["$i","$i2"]'},
        {"eni0": "Instances.Instance.0.NetworkInterfaces.NetworkInterface.0.NetworkInterfaceId"},
    ),
    ("ecs", "DescribeInstanceStatus", {"InstanceId": ["$i"]}, {}),
    ("ecs", "DescribeInstanceAttribute", {"InstanceId": "$i"}, {}),
    ("ecs", "DescribeUserData", {"InstanceId": "$i"}, {}),
    ("ecs", "GetInstanceConsoleOutput", {"InstanceId": "$i"}, {}),
    ("ecs", "DescribeInstanceMaintenanceAttributes", {"InstanceId": ["$i"]}, {}),
    ("ecs", "DescribeInstanceAttachmentAttributes", {"InstanceIds": '["$i"]'}, {}),
    ("ecs", "DescribeInstanceAutoRenewAttribute", {"InstanceId": "$i"}, {}),
    ("ecs", "ModifyInstanceAutoReleaseTime", {"InstanceId": "$i", "AutoReleaseTime": "2028-01-01T00:00:00Z"}, {}),
    ("ecs", "ModifyInstanceAttribute", {"InstanceId": "$i", "InstanceName": "m"}, {}),
    ("ecs", "ModifyInstanceMetadataOptions", {"InstanceId": "$i", "HttpEndpoint": "enabled"}, {}),
    ("ecs", "DetachKeyPair", {"KeyPairName": "own", "InstanceIds": '["$i"]'}, {}),
    ("ecs", "AttachKeyPair", {"KeyPairName": "own", "InstanceIds": '["$i"]'}, {}),
    ("ecs", "JoinSecurityGroup", {"SecurityGroupId": "$sg2", "InstanceId": "$i"}, {}),
    ("ecs", "LeaveSecurityGroup", {"SecurityGroupId": "$sg2", "InstanceId": "$i"}, {}),
    (
        "ecs",
        "TagResources",
        {"ResourceType": "instance", "ResourceId": ["$i"], "Tag": [{"Key": "x", "Value": "y"}]},
        {},
    ),
    ("ecs", "ListTagResources", {"ResourceType": "instance", "ResourceId": ["$i"]}, {}),
    ("ecs", "DescribeTags", {"ResourceType": "instance", "ResourceId": "$i"}, {}),
    ("ecs", "UntagResources", {"ResourceType": "instance", "ResourceId": ["$i"], "TagKey": ["x"]}, {}),
    ("ecs", "CreateNetworkInterface", {"VSwitchId": "$vsw", "SecurityGroupId": "$sg"}, {"eni": "NetworkInterfaceId"}),
    ("ecs", "DescribeNetworkInterfaces", {"NetworkInterfaceId": ["$eni", "$eni0"]}, {}),
    ("ecs", "DescribeNetworkInterfaceAttribute", {"NetworkInterfaceId": "$eni"}, {}),
    ("ecs", "ModifyNetworkInterfaceAttribute", {"NetworkInterfaceId": "$eni", "NetworkInterfaceName": "m"}, {}),
    ("ecs", "AttachNetworkInterface", {"NetworkInterfaceId": "$eni", "InstanceId": "$i"}, {}),
    ("ecs", "DetachNetworkInterface", {"NetworkInterfaceId": "$eni", "InstanceId": "$i"}, {}),
    ("ecs", "DeleteNetworkInterface", {"NetworkInterfaceId": "$eni"}, {}),
    ("ecs", "CreateDisk", {"ZoneId": "cn-hangzhou-j", "Size": 40, "DiskCategory": "cloud_essd"}, {"disk": "DiskId"}),
    ("ecs", "AttachDisk", {"DiskId": "$disk", "InstanceId": "$i"}, {}),
    ("ecs", "DescribeDisks", {"InstanceId": "$i"}, {}),
    ("ecs", "DetachDisk", {"DiskId": "$disk", "InstanceId": "$i"}, {}),
    ("ecs", "ModifyDiskAttribute", {"DiskId": "$disk", "DiskName": "m"}, {}),
    ("ecs", "ResizeDisk", {"DiskId": "$disk", "NewSize": 60}, {}),
    ("ecs", "DeleteDisk", {"DiskId": "$disk"}, {}),
    ("ecs", "CreateImage", {"InstanceId": "$i", "ImageName": "baked"}, {"image": "ImageId"}),
    ("ecs", "DescribeImages", {"ImageOwnerAlias": "self"}, {}),
    ("ecs", "ModifyImageAttribute", {"ImageId": "$image", "Description": "m"}, {}),
    ("ecs", "DeleteImage", {"ImageId": "$image"}, {}),
    ("ram", "CreateRole", {"RoleName": "role", "AssumeRolePolicyDocument": TRUST}, {}),
    ("ram", "GetRole", {"RoleName": "role"}, {}),
    ("ram", "ListRoles", {}, {}),
    ("ram", "UpdateRole", {"RoleName": "role", "NewMaxSessionDuration": 7200}, {}),
    ("ram", "CreatePolicy", {"PolicyName": "policy", "PolicyDocument": POLICY}, {}),
    ("ram", "GetPolicy", {"PolicyName": "policy", "PolicyType": "Custom"}, {}),
    ("ram", "ListPolicies", {}, {}),
    ("ram", "UpdatePolicyDescription", {"PolicyName": "policy", "NewDescription": "m"}, {}),
    ("ram", "CreatePolicyVersion", {"PolicyName": "policy", "PolicyDocument": POLICY}, {}),
    ("ram", "ListPolicyVersions", {"PolicyName": "policy", "PolicyType": "Custom"}, {}),
    ("ram", "GetPolicyVersion", {"PolicyName": "policy", "PolicyType": "Custom", "VersionId": "v2"}, {}),
    ("ram", "SetDefaultPolicyVersion", {"PolicyName": "policy", "VersionId": "v2"}, {}),
    ("ram", "DeletePolicyVersion", {"PolicyName": "policy", "VersionId": "v1"}, {}),
    ("ram", "AttachPolicyToRole", {"RoleName": "role", "PolicyType": "Custom", "PolicyName": "policy"}, {}),
    ("ram", "ListPoliciesForRole", {"RoleName": "role"}, {}),
    ("ram", "ListEntitiesForPolicy", {"PolicyName": "policy", "PolicyType": "Custom"}, {}),
    (
        "ram",
        "TagResources",
        {"ResourceType": "role", "ResourceNames": ["role"], "Tag": [{"Key": "a", "Value": "b"}]},
        {},
    ),
    ("ram", "ListTagResources", {"ResourceType": "role", "ResourceNames": ["role"]}, {}),
    ("ram", "UntagResources", {"ResourceType": "role", "ResourceNames": ["role"], "TagKeys": ["a"]}, {}),
    ("sts", "AssumeRole", {"RoleArn": "acs:ram::$account:role/role", "RoleSessionName": "me"}, {}),
    ("sts", "GetCallerIdentity", {}, {}),
    (
        "ims",
        "CreateOIDCProvider",
        {"OIDCProviderName": "ci", "IssuerUrl": "$issuer", "ClientIds": "sts.aliyuncs.com"},
        {},
    ),
    ("ims", "GetOIDCProvider", {"OIDCProviderName": "ci"}, {}),
    ("ims", "ListOIDCProviders", {}, {}),
    ("ram", "UpdateRole", {"RoleName": "role", "NewAssumeRolePolicyDocument": "$trust"}, {}),
    (
        "sts",
        "AssumeRoleWithOIDC",
        {
            "OIDCProviderArn": "acs:ram::$account:oidc-provider/ci",
            "RoleArn": "acs:ram::$account:role/role",
            "OIDCToken": "$token",
            "RoleSessionName": "job",
        },
        {},
    ),
    ("ims", "DeleteOIDCProvider", {"OIDCProviderName": "ci"}, {}),
    ("ecs", "AttachInstanceRamRole", {"RamRoleName": "role", "InstanceIds": '["$i"]'}, {}),
    ("ecs", "DescribeInstanceRamRole", {"InstanceIds": '["$i"]'}, {}),
    ("ecs", "DetachInstanceRamRole", {"RamRoleName": "role", "InstanceIds": '["$i"]'}, {}),
    ("nas", "DescribeRegions", {}, {}),
    ("nas", "DescribeZones", {}, {}),
    ("nas", "CreateAccessGroup", {"AccessGroupName": "g", "AccessGroupType": "Vpc", **EXTREME}, {}),
    ("nas", "DescribeAccessGroups", EXTREME, {}),
    ("nas", "ModifyAccessGroup", {"AccessGroupName": "g", "Description": "m", **EXTREME}, {}),
    (
        "nas",
        "CreateAccessRule",
        {"AccessGroupName": "g", "SourceCidrIp": "10.0.0.0/8", **EXTREME},
        {"rule": "AccessRuleId"},
    ),
    ("nas", "DescribeAccessRules", {"AccessGroupName": "g", **EXTREME}, {}),
    (
        "nas",
        "ModifyAccessRule",
        {
            "AccessGroupName": "g",
            "AccessRuleId": "$rule",
            "RWAccessType": "RDONLY",
            "SourceCidrIp": "10.0.0.0/8",
            **EXTREME,
        },
        {},
    ),
    (
        "nas",
        "CreateFileSystem",
        {"StorageType": "standard", "ProtocolType": "NFS", "Capacity": 100, "ZoneId": "cn-hangzhou-j", **EXTREME},
        {"fs": "FileSystemId"},
    ),
    ("nas", "DescribeFileSystems", {"FileSystemId": "$fs"}, {}),
    ("nas", "ModifyFileSystem", {"FileSystemId": "$fs", "Description": "m"}, {}),
    ("nas", "UpgradeFileSystem", {"FileSystemId": "$fs", "Capacity": 200}, {}),
    ("nas", "DescribeNfsAcl", {"FileSystemId": "$fs"}, {}),
    ("nas", "DescribeSmbAcl", {"FileSystemId": "$fs"}, {}),
    ("nas", "GetRecycleBinAttribute", {"FileSystemId": "$fs"}, {}),
    (
        "nas",
        "TagResources",
        {"ResourceType": "filesystem", "ResourceId": ["$fs"], "Tag": [{"Key": "a", "Value": "b"}]},
        {},
    ),
    ("nas", "ListTagResources", {"ResourceType": "filesystem", "ResourceId": ["$fs"]}, {}),
    ("nas", "UntagResources", {"ResourceType": "filesystem", "ResourceId": ["$fs"], "TagKey": ["a"]}, {}),
    (
        "nas",
        "CreateMountTarget",
        {"FileSystemId": "$fs", "AccessGroupName": "g", "NetworkType": "Vpc", "VpcId": "$vpc", "VSwitchId": "$vsw"},
        {"target": "MountTargetDomain"},
    ),
    ("nas", "DescribeMountTargets", {"FileSystemId": "$fs"}, {}),
    ("nas", "ModifyMountTarget", {"FileSystemId": "$fs", "MountTargetDomain": "$target", "Status": "Inactive"}, {}),
    ("bss", "QueryAvailableInstances", {}, {}),
    ("bss", "QueryAccountBalance", {}, {}),
    (
        "bss",
        "GetPayAsYouGoPrice",
        {
            "ProductCode": "ecs",
            "SubscriptionType": "PayAsYouGo",
            "ModuleList": [{"ModuleCode": "InstanceType", "Config": "InstanceType:ecs.c7.large", "PriceType": "Hour"}],
        },
        {},
    ),
    # and back again
    ("nas", "DeleteMountTarget", {"FileSystemId": "$fs", "MountTargetDomain": "$target"}, {}),
    ("nas", "DeleteFileSystem", {"FileSystemId": "$fs"}, {}),
    ("nas", "DeleteAccessRule", {"AccessGroupName": "g", "AccessRuleId": "$rule", **EXTREME}, {}),
    ("nas", "DeleteAccessGroup", {"AccessGroupName": "g", **EXTREME}, {}),
    ("ram", "DetachPolicyFromRole", {"RoleName": "role", "PolicyType": "Custom", "PolicyName": "policy"}, {}),
    ("ram", "DeletePolicy", {"PolicyName": "policy"}, {}),
    ("ram", "DeleteRole", {"RoleName": "role"}, {}),
    ("ecs", "RebootInstance", {"InstanceId": "$i"}, {}),
    ("ecs", "RebootInstances", {"InstanceId": ["$i"]}, {}),
    ("ecs", "StopInstance", {"InstanceId": "$i"}, {}),
    ("ecs", "ModifyInstanceSpec", {"InstanceId": "$i", "InstanceType": "ecs.c8ae.8xlarge"}, {}),
    ("ecs", "StartInstance", {"InstanceId": "$i"}, {}),
    ("ecs", "StopInstances", {"InstanceId": ["$i"]}, {}),
    ("ecs", "StartInstances", {"InstanceId": ["$i"]}, {}),
    ("ecs", "DeleteInstance", {"InstanceId": "$i", "Force": True}, {}),
    ("ecs", "DeleteInstances", {"InstanceId": ["$i2"], "Force": True}, {}),
    (
        "ecs",
        "RunInstances",
        {"ImageId": IMAGE, "InstanceType": "ecs.c7.large", "VSwitchId": "$vsw", "SecurityGroupId": "$sg"},
        {"i": "InstanceIdSets.InstanceIdSet.0"},
    ),
    ("ecs", "ModifyInstanceChargeType", {"InstanceIds": '["$i"]', "Period": 1, "PeriodUnit": "Month"}, {}),
    (
        "ecs",
        "ModifyInstanceAutoRenewAttribute",
        {"InstanceId": "$i", "RenewalStatus": "AutoRenewal", "Duration": 1, "PeriodUnit": "Month"},
        {},
    ),
    ("ecs", "DescribeInstanceAutoRenewAttribute", {"InstanceId": "$i"}, {}),
    (
        "ecs",
        "ModifyInstanceChargeType",
        {"InstanceIds": '["$i"]', "InstanceChargeType": "PostPaid", "IsDetailFee": True},
        {},
    ),
    ("ecs", "DeleteInstance", {"InstanceId": "$i", "Force": True}, {}),
    ("ecs", "DeleteLaunchTemplate", {"LaunchTemplateId": "$lt"}, {}),
    ("ecs", "DeleteDeploymentSet", {"DeploymentSetId": "$ds"}, {}),
    ("ecs", "DeleteKeyPairs", {"KeyPairNames": '["made","own"]'}, {}),
    (
        "ecs",
        "RevokeSecurityGroup",
        {
            "SecurityGroupId": "$sg",
            "Permissions": [RULE, {"IpProtocol": "all", "PortRange": "-1/-1", "SourceGroupId": "$sg2"}],
        },
        {},
    ),
    ("ecs", "RevokeSecurityGroupEgress", {"SecurityGroupId": "$sg", "Permissions": [EGRESS]}, {}),
    ("ecs", "DeleteSecurityGroup", {"SecurityGroupId": "$sg"}, {}),
    ("ecs", "DeleteSecurityGroup", {"SecurityGroupId": "$sg2"}, {}),
    ("vpc", "DeleteSnatEntry", {"SnatTableId": "$snats", "SnatEntryId": "$snat"}, {}),
    ("vpc", "UnassociateEipAddress", {"AllocationId": "$eip", "InstanceId": "$nat", "InstanceType": "Nat"}, {}),
    ("vpc", "ReleaseEipAddress", {"AllocationId": "$eip"}, {}),
    ("vpc", "DeleteNatGateway", {"NatGatewayId": "$nat"}, {}),
    ("vpc", "DeleteVSwitch", {"VSwitchId": "$vsw"}, {}),
    ("vpc", "DeleteVpc", {"VpcId": "$vpc"}, {}),
]


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with oidc_issuer.running() as made:
        yield made


@pytest.fixture(scope="module")
def calls(cloud: LocalCloud, issuer: Issuer) -> Calls:
    """All steps, taken once."""
    assert cloud.counts() == {}
    made = Calls(cloud, issuer)
    for product, action, parameters, keep in STEPS:
        try:
            answer = made.call(product, action, parameters)
        except Exception as error:
            error.add_note(f"{product} {action} {parameters}")
            raise
        for name, path in keep.items():
            made.names[name] = at(path)(answer)
    return made


def test_the_sdks_have_every_action(calls: Calls) -> None:
    """Nothing is made up: the local cloud has no action that the real one does not have."""
    assert set(VERSIONS.values()) == set(PACKAGES)
    assert [key for key, item in ACTIONS.items() if calls.method(item.product, item.name) is None] == []


def test_every_action_was_called(calls: Calls) -> None:
    assert sorted(set(ACTIONS) - calls.done) == []


def test_every_parameter_is_one_that_the_sdks_send(calls: Calls) -> None:
    """A parameter that no client can send is a misspelt one."""
    wrong = []
    for (product, _), item in ACTIONS.items():
        request_class = calls.request_class(product, item.name)
        known = parameters_of(request_class) if request_class else set()
        known |= {"RegionId"}
        wrong += [
            f"{item.name}.{name}"
            for name in item.declared.names
            if name.partition(".")[0] not in known | {"ClientToken"} and f"{item.name}.{name}" not in OTHER_CLIENTS
        ]
    assert wrong == []


def parameters_of(request_class: Any) -> set[str]:
    """The names that a request is sent with, from the source of its `from_map`."""
    source = inspect.getsource(request_class.from_map)
    return {name.partition(".")[0] for name in re.findall(r"m\.get\('([^']+)'\)", source)}


def test_nothing_is_left_of_them(calls: Calls, cloud: LocalCloud) -> None:
    assert cloud.counts() == {}


def test_every_member_of_the_answers_is_known_to_the_sdks(calls: Calls) -> None:
    assert sorted(calls.unknown) == []
