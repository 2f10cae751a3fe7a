"""Rules between resources, launches, time and money, without HTTP."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from direct_cloud import IMAGE, Direct

from localcloud.api.errors import ApiError


def utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- dependencies ------------------------------------------------------------------------------------------------


def test_network_is_deleted_from_the_inside_out(direct: Direct) -> None:
    vpc, vswitch, group = direct.network()
    (instance,) = direct.run(vswitch, group)
    assert direct.code("vpc", "DeleteVSwitch", VSwitchId=vswitch) == "DependencyViolation"
    assert direct.code("ecs", "DeleteSecurityGroup", SecurityGroupId=group) == "DependencyViolation"
    assert direct.code("vpc", "DeleteVpc", VpcId=vpc) == "DependencyViolation.VSwitch"
    direct.call("ecs", "DeleteInstance", InstanceId=instance, Force="true")
    direct.call("vpc", "DeleteVSwitch", VSwitchId=vswitch)
    assert direct.code("vpc", "DeleteVpc", VpcId=vpc) == "DependencyViolation.SecurityGroup"
    direct.call("ecs", "DeleteSecurityGroup", SecurityGroupId=group)
    direct.call("vpc", "DeleteVpc", VpcId=vpc)
    assert direct.server.store.counts() == {}


def test_group_named_by_another_group_cannot_be_deleted(direct: Direct) -> None:
    vpc, _, first = direct.network()
    second = direct.call("ecs", "CreateSecurityGroup", VpcId=vpc)["SecurityGroupId"]
    rule = {"IpProtocol": "tcp", "PortRange": "22/22", "SourceGroupId": first}
    direct.call("ecs", "AuthorizeSecurityGroup", SecurityGroupId=second, **rule)
    assert direct.code("ecs", "DeleteSecurityGroup", SecurityGroupId=first) == "DependencyViolation"
    direct.call("ecs", "RevokeSecurityGroup", SecurityGroupId=second, **rule)
    direct.call("ecs", "DeleteSecurityGroup", SecurityGroupId=first)


def test_rules_are_sets_and_revoking_an_unknown_one_is_no_error(direct: Direct) -> None:
    _, _, group = direct.network()
    rule = {"IpProtocol": "tcp", "PortRange": "30000/31000", "SourceCidrIp": "10.0.0.0/8", "Priority": 5}
    for _ in range(2):
        direct.call("ecs", "AuthorizeSecurityGroup", SecurityGroupId=group, **rule)
    found = direct.call("ecs", "DescribeSecurityGroupAttribute", SecurityGroupId=group)["Permissions"]["Permission"]
    assert [(item["PortRange"], item["Priority"], item["Direction"]) for item in found] == [
        ("30000/31000", "5", "ingress")
    ]
    direct.call("ecs", "RevokeSecurityGroup", SecurityGroupId=group, **{**rule, "Priority": 6})
    direct.call("ecs", "RevokeSecurityGroup", SecurityGroupId=group, **rule)
    assert direct.server.store.count("rule") == 0


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({"PortRange": "22/22", "SourceCidrIp": "0.0.0.0/0"}, "MissingParameter.IpProtocol"),
        ({"IpProtocol": "tcp", "PortRange": "0/22", "SourceCidrIp": "0.0.0.0/0"}, "InvalidPortRange.Malformed"),
        ({"IpProtocol": "tcp", "PortRange": "-1/-1", "SourceCidrIp": "0.0.0.0/0"}, "InvalidPortRange.Malformed"),
        ({"IpProtocol": "all", "PortRange": "1/2", "SourceCidrIp": "0.0.0.0/0"}, "InvalidPortRange.Malformed"),
        ({"IpProtocol": "tcp", "PortRange": "22/22", "SourceCidrIp": "300.0.0.0/8"}, "InvalidSourceCidrIp.Malformed"),
        ({"IpProtocol": "tcp", "PortRange": "22/22"}, "MissingParameter.Source"),
        (
            {"IpProtocol": "tcp", "PortRange": "22/22", "SourceCidrIp": "0.0.0.0/0", "Priority": "101"},
            "InvalidParameter.Priority",
        ),
    ],
)
def test_bad_rules(direct: Direct, rule: dict[str, str], code: str) -> None:
    _, _, group = direct.network()
    assert direct.code("ecs", "AuthorizeSecurityGroup", SecurityGroupId=group, **rule) == code


def test_nas_order_of_deletion(direct: Direct) -> None:
    vpc, vswitch, _ = direct.network()
    group = {"AccessGroupName": "g", "FileSystemType": "standard"}
    direct.call("nas", "CreateAccessGroup", AccessGroupType="Vpc", **group)
    system = direct.call("nas", "CreateFileSystem", StorageType="Performance", ProtocolType="NFS")["FileSystemId"]
    domain = direct.call(
        "nas", "CreateMountTarget", FileSystemId=system, AccessGroupName="g", NetworkType="Vpc", VpcId=vpc,
        VSwitchId=vswitch,
    )["MountTargetDomain"]  # fmt: skip
    assert domain.endswith(".cn-hangzhou.nas.aliyuncs.com")
    assert direct.code("nas", "DeleteFileSystem", FileSystemId=system) == "OperationDenied.ExistMountTarget"
    assert direct.code("nas", "DeleteAccessGroup", **group) == "InvalidAccessGroup.InUse"
    assert direct.code("vpc", "DeleteVSwitch", VSwitchId=vswitch) == "DependencyViolation"
    direct.call("nas", "DeleteMountTarget", FileSystemId=system, MountTargetDomain=domain)
    direct.call("nas", "DeleteFileSystem", FileSystemId=system)
    direct.call("nas", "DeleteAccessGroup", **group)


def test_extreme_nas_needs_zone_and_capacity_and_takes_its_time(direct: Direct) -> None:
    direct.knobs(nas_creation=60)
    extreme = {"StorageType": "standard", "ProtocolType": "NFS", "FileSystemType": "extreme"}
    assert direct.code("nas", "CreateFileSystem", Capacity=100, **extreme) == "MissingParameter.ZoneId"
    assert direct.code("nas", "CreateFileSystem", ZoneId="cn-hangzhou-j", **extreme) == "MissingParameter.Capacity"
    zone = {"ZoneId": "cn-hangzhou-j"}
    assert direct.code("nas", "CreateFileSystem", Capacity=99, **zone, **extreme) == "InvalidParameter.Capacity"
    system = direct.call("nas", "CreateFileSystem", Capacity=100, **zone, **extreme)["FileSystemId"]

    def status() -> str:
        (found,) = direct.call("nas", "DescribeFileSystems", FileSystemId=system)["FileSystems"]["FileSystem"]
        assert found["VpcId"] == found["QuorumVswId"] == ""
        return str(found["Status"])

    assert status() == "Pending"
    direct.server.advance(61)
    assert status() == "Running"
    direct.call("nas", "UpgradeFileSystem", FileSystemId=system, Capacity=200)
    assert direct.code("nas", "UpgradeFileSystem", FileSystemId=system, Capacity=200) == "InvalidParameter.Capacity"


def test_ram_order_of_deletion(direct: Direct) -> None:
    make_role(direct, "r", ["ecs:*"])
    assert direct.code("ram", "DeleteRole", RoleName="r") == "DeleteConflict.Role.Policy"
    assert direct.code("ram", "DeletePolicy", PolicyName="r") == "DeleteConflict.Policy.Role"
    direct.call("ram", "DetachPolicyFromRole", RoleName="r", PolicyType="Custom", PolicyName="r")
    direct.call("ram", "DeletePolicy", PolicyName="r")
    direct.call("ram", "DeleteRole", RoleName="r")


def test_snat_needs_an_address_of_the_gateway(direct: Direct) -> None:
    vpc, vswitch, _ = direct.network()
    nat = direct.call("vpc", "CreateNatGateway", VpcId=vpc, VSwitchId=vswitch)
    table = nat["SnatTableIds"]["SnatTableId"][0]
    eip = direct.call("vpc", "AllocateEipAddress")
    entry = {"SnatTableId": table, "SnatIp": eip["EipAddress"], "SourceVSwitchId": vswitch}
    assert direct.code("vpc", "CreateSnatEntry", **entry) == "InvalidParameter.SnatIp"
    bind = {"AllocationId": eip["AllocationId"], "InstanceId": nat["NatGatewayId"], "InstanceType": "Nat"}
    direct.call("vpc", "AssociateEipAddress", **bind)
    direct.call("vpc", "CreateSnatEntry", **entry)
    assert direct.code("vpc", "CreateSnatEntry", **entry) == "Forbidden.SourceVSwitchId.Duplicated"
    assert direct.code("vpc", "ReleaseEipAddress", AllocationId=eip["AllocationId"]) == "IncorrectEipStatus"
    assert direct.code("vpc", "DeleteNatGateway", NatGatewayId=nat["NatGatewayId"]) == "DependencyViolation.SnatEntry"
    direct.call("vpc", "DeleteNatGateway", NatGatewayId=nat["NatGatewayId"], Force="true")
    direct.call("vpc", "ReleaseEipAddress", AllocationId=eip["AllocationId"])


# -- addresses ---------------------------------------------------------------------------------------------------


def test_first_and_last_three_addresses_are_reserved(direct: Direct) -> None:
    _, vswitch, group = direct.network("10.0.0.0/28")
    direct.run(vswitch, group, Amount=12)
    found = {item["VpcAttributes"]["PrivateIpAddress"]["IpAddress"][0] for item in direct.instances()}
    assert found == {f"10.0.0.{number}" for number in range(1, 13)}
    assert direct.run_code(vswitch, group) == "QuotaExceeded.PrivateIpAddress"
    view = direct.call("vpc", "DescribeVSwitchAttributes", VSwitchId=vswitch)
    assert view["AvailableIpAddressCount"] == 0


def test_released_addresses_are_given_out_again(direct: Direct) -> None:
    _, vswitch, group = direct.network("10.0.0.0/29")
    for _ in range(3):
        for instance in direct.run(vswitch, group, Amount=4):
            direct.call("ecs", "DeleteInstance", InstanceId=instance, Force="true")


def test_an_address_can_be_asked_for(direct: Direct) -> None:
    _, vswitch, group = direct.network("10.0.0.0/28")
    direct.run(vswitch, group, PrivateIpAddress="10.0.0.9")
    assert direct.run_code(vswitch, group, PrivateIpAddress="10.0.0.9") == "InvalidIPAddress.AlreadyUsed"
    assert direct.run_code(vswitch, group, PrivateIpAddress="10.0.0.13") == "InvalidPrivateIpAddress"
    assert direct.run_code(vswitch, group, PrivateIpAddress="10.0.0.3", Amount=2) == "InvalidParameter.PrivateIpAddress"


def test_vswitches_do_not_overlap(direct: Direct) -> None:
    vpc, _, _ = direct.network("10.0.0.0/20")
    where = {"VpcId": vpc, "ZoneId": "cn-hangzhou-j"}
    assert direct.code("vpc", "CreateVSwitch", CidrBlock="10.0.8.0/24", **where) == "InvalidCidrBlock.Overlapped"
    assert direct.code("vpc", "CreateVSwitch", CidrBlock="192.168.0.0/24", **where) == "InvalidCidrBlock.Malformed"
    assert direct.code("vpc", "CreateVSwitch", CidrBlock="10.1.0.0/30", **where) == "InvalidCidrBlock.Malformed"
    wrong = {**where, "ZoneId": "cn-hangzhou-x"}
    assert direct.code("vpc", "CreateVSwitch", CidrBlock="10.1.0.0/24", **wrong) == "InvalidZoneId.NotFound"


# -- RunInstances ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"Amount": "0"}, "InvalidParameter.Amount"),
        ({"Amount": "101"}, "InvalidParameter.Amount"),
        ({"Amount": "2", "MinAmount": "3"}, "InvalidParameter.MinAmount"),
        ({"InstanceType": "ecs.none.large"}, "InvalidInstanceType.ValueNotSupported"),
        ({"ImageId": "m-none"}, "InvalidImageId.NotFound"),
        ({"VSwitchId": "vsw-none"}, "InvalidVSwitchId.NotFound"),
        ({"SecurityGroupId": "sg-none"}, "InvalidSecurityGroupId.NotFound"),
        ({"SecurityGroupId": ""}, "MissingParameter.SecurityGroupId"),
        ({"KeyPairName": "none"}, "InvalidKeyPairName.NotFound"),
        ({"RamRoleName": "none"}, "InvalidRamRole.NotFound"),
        ({"DeploymentSetId": "ds-none"}, "DeploymentSet.NotFound"),
        ({"UserData": "not base64"}, "InvalidUserData.Base64FormatInvalid"),
        ({"UserData": base64.b64encode(b"x" * 32769).decode()}, "InvalidUserData.SizeExceeded"),
        ({"AutoReleaseTime": "2020-01-01T00:00:00Z"}, "InvalidAutoReleaseTime.Malformed"),
        ({"AutoReleaseTime": "soon"}, "InvalidParameter.AutoReleaseTime"),
        ({"SpotStrategy": "SpotWithPriceLimit"}, "MissingParameter.SpotPriceLimit"),
        (
            {"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": "0.001"},
            "InvalidSpotPriceLimit.LowerThanPublicPrice",
        ),
        ({"SpotStrategy": "SpotAsPriceGo", "InstanceChargeType": "PrePaid"}, "InvalidSpotStrategy"),
        ({"SystemDisk.Size": "10"}, "InvalidSystemDiskSize"),
        ({"InternetMaxBandwidthOut": "5"}, "UnsupportedOperation"),
        ({"LaunchTemplateId": "lt-none"}, "InvalidLaunchTemplate.NotFound"),
        ({"ZoneId": "cn-hangzhou-k"}, "InvalidParameter.Mismatch"),
        ({"Tag.1.Key": "acs:x"}, "InvalidTagKey.Malformed"),
        ({"Ipv6AddressCount": "1"}, "InvalidParameter"),
        ({"DryRun": "true"}, "DryRunOperation"),
    ],
)
def test_launches_that_are_refused_leave_nothing(direct: Direct, parameters: dict[str, str], code: str) -> None:
    _, vswitch, group = direct.network()
    before = direct.server.store.counts()
    assert direct.run_code(vswitch, group, **parameters) == code
    assert direct.server.store.counts() == before


def test_erdma_only_where_the_type_has_it(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    primary = {
        "NetworkInterface.1.InstanceType": "Primary",
        "NetworkInterface.1.VSwitchId": vswitch,
        "NetworkInterface.1.SecurityGroupIds.1": group,
        "NetworkInterface.1.NetworkInterfaceTrafficMode": "HighPerformance",
    }
    common = {"ImageId": IMAGE, **primary}
    assert (
        direct.code("ecs", "RunInstances", InstanceType="ecs.c7.large", **common)
        == "InvalidNetworkInterfaceTrafficMode.NotSupported"
    )
    direct.call("ecs", "RunInstances", InstanceType="ecs.c8ae.4xlarge", **common)
    (eni,) = direct.call("ecs", "DescribeNetworkInterfaces")["NetworkInterfaceSets"]["NetworkInterfaceSet"]
    assert (eni["NetworkInterfaceTrafficMode"], eni["Type"]) == ("HighPerformance", "Primary")
    assert direct.run_code(vswitch, group, **primary) == "InvalidParameter.Conflict"


def test_launch_template_gives_what_the_request_does_not(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    made = direct.call(
        "ecs", "CreateLaunchTemplate", LaunchTemplateName="pool", ImageId=IMAGE, InstanceType="ecs.c7.large",
        HttpTokens="required", UserData="aGk=", **{"SystemDisk.Size": 60, "Tag.1.Key": "from", "Tag.1.Value": "v1"},
    )  # fmt: skip
    where = {"VSwitchId": vswitch, "SecurityGroupIds.1": group}
    template = {"LaunchTemplateId": made["LaunchTemplateId"]}
    direct.call("ecs", "RunInstances", **template, **where)
    direct.call("ecs", "RunInstances", InstanceType="ecs.c8i.large", **template, **where)
    first, second = direct.instances()
    assert (first["InstanceType"], second["InstanceType"]) == ("ecs.c7.large", "ecs.c8i.large")
    assert first["MetadataOptions"]["HttpTokens"] == "required"
    assert first["Tags"]["Tag"] == [{"TagKey": "from", "TagValue": "v1"}]
    disks = direct.call("ecs", "DescribeDisks", InstanceId=first["InstanceId"])["Disks"]["Disk"]
    assert [disk["Size"] for disk in disks] == [60]
    direct.call("ecs", "CreateLaunchTemplateVersion", **template, ImageId=IMAGE, InstanceType="ecs.c8ae.4xlarge")
    direct.call("ecs", "RunInstances", **template, **where)
    direct.call("ecs", "RunInstances", LaunchTemplateVersion=2, **template, **where)
    direct.call("ecs", "ModifyLaunchTemplateDefaultVersion", DefaultVersionNumber=2, **template)
    direct.call("ecs", "RunInstances", **template, **where)
    assert [item["InstanceType"] for item in direct.instances()][2:] == [
        "ecs.c7.large", "ecs.c8ae.4xlarge", "ecs.c8ae.4xlarge",
    ]  # fmt: skip
    refused = direct.code("ecs", "RunInstances", LaunchTemplateVersion=9, **template, **where)
    assert refused == "InvalidLaunchTemplateVersion.NotFound"


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"InstanceName": "n"}, ["n", "n"]),
        ({"InstanceName": "n", "UniqueSuffix": "true"}, ["n001", "n002"]),
        ({"InstanceName": "n[7,4]x"}, ["n0007x", "n0008x"]),
        ({"InstanceName": "n[,]"}, ["n000", "n001"]),
    ],
)
def test_names(direct: Direct, parameters: dict[str, str], names: list[str]) -> None:
    _, vswitch, group = direct.network()
    direct.run(vswitch, group, Amount=2, **parameters)
    assert [item["InstanceName"] for item in direct.instances()] == names


def test_stock_all_or_nothing_unless_a_minimum_is_given(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(stock=[{"zone": "cn-hangzhou-j", "instance_type": "ecs.c8ae.4xlarge", "charge": "spot", "count": 5}])
    spot = {"SpotStrategy": "SpotAsPriceGo"}
    assert direct.run_code(vswitch, group, Amount=6, **spot) == "OperationDenied.NoStock"
    assert len(direct.run(vswitch, group, Amount=6, MinAmount=1, **spot)) == 5
    assert direct.run_code(vswitch, group, Amount=1, **spot) == "OperationDenied.NoStock"
    assert len(direct.run(vswitch, group, Amount=6)) == 6, "pay-as-you-go has a stock of its own"
    sold_out = direct.call(
        "ecs", "DescribeAvailableResource", DestinationResource="InstanceType", InstanceType="ecs.c8ae.4xlarge",
        ZoneId="cn-hangzhou-j", **spot,
    )["AvailableZones"]["AvailableZone"][0]  # fmt: skip
    assert sold_out["StatusCategory"] == "WithoutStock"


def test_quota_is_not_stock(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(quotas={"spot_vcpus": 40})
    spot = {"SpotStrategy": "SpotAsPriceGo"}  # the type has 16 vCPUs
    assert direct.run_code(vswitch, group, Amount=3, **spot) == "QuotaExceed.ElasticQuota"
    assert len(direct.run(vswitch, group, Amount=3, MinAmount=1, **spot)) == 2
    assert direct.run_code(vswitch, group, Amount=1, **spot) == "QuotaExceed.ElasticQuota"
    direct.run(vswitch, group, Amount=3)


def test_client_token_never_buys_twice(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    first = direct.run(vswitch, group, Amount=3, ClientToken="t")
    assert direct.run(vswitch, group, Amount=3, ClientToken="t") == first
    direct.reopen()
    assert direct.run(vswitch, group, Amount=3, ClientToken="t") == first
    assert direct.server.store.count("instance") == 3
    assert direct.run_code(vswitch, group, Amount=2, ClientToken="t") == "IdempotentParameterMismatch"
    assert direct.run_code(vswitch, group, ClientToken="t" * 65) == "InvalidClientToken.ValueNotSupported"


def test_failed_request_does_not_use_up_its_token(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(stock=[{"count": 0}])
    assert direct.run_code(vswitch, group, ClientToken="t") == "OperationDenied.NoStock"
    direct.knobs(stock=[])
    assert len(direct.run(vswitch, group, ClientToken="t")) == 1


def test_launches_a_minute(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(instances_per_minute=3)
    direct.server.advance(60 - direct.server.cloud.clock.now() % 60 + 1)  # at the start of a minute
    direct.run(vswitch, group, Amount=3)
    assert direct.run_code(vswitch, group) == "Throttling.User"
    direct.server.advance(60)
    direct.run(vswitch, group, Amount=3)


# -- life of an instance -----------------------------------------------------------------------------------------


def test_states(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(instance_start=10, instance_stop=10)
    (instance,) = direct.run(vswitch, group)

    def status() -> str:
        return str(direct.instances()[0]["Status"])

    assert status() == "Pending"
    assert direct.code("ecs", "RebootInstance", InstanceId=instance) == "IncorrectInstanceStatus"
    direct.server.advance(11)
    assert status() == "Running"
    assert direct.code("ecs", "DeleteInstance", InstanceId=instance) == "IncorrectInstanceStatus"
    direct.call("ecs", "StopInstances", InstanceId_1=instance)
    assert status() == "Stopping"
    direct.server.advance(11)
    assert status() == "Stopped"
    direct.call("ecs", "StartInstance", InstanceId=instance)
    assert status() == "Starting"
    direct.server.advance(11)
    assert status() == "Running"


def test_deleting_many_is_all_or_nothing(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    found = direct.run(vswitch, group, Amount=2)
    wanted = {f"InstanceId.{number}": item for number, item in enumerate([*found, "i-none"], 1)}
    assert direct.code("ecs", "DeleteInstances", Force="true", **wanted) == "InvalidInstanceId.NotFound"
    assert direct.server.store.count("instance") == 2
    wanted.popitem()
    direct.call("ecs", "DeleteInstances", Force="true", **wanted)
    assert not {"instance", "eni", "disk"} & set(direct.server.store.counts())


def test_protected_and_subscribed_instances_are_not_deleted(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (protected,) = direct.run(vswitch, group, DeletionProtection="true")
    (subscribed,) = direct.run(vswitch, group, InstanceChargeType="PrePaid", Period=1)
    force = {"Force": "true"}
    assert direct.code("ecs", "DeleteInstance", InstanceId=protected, **force) == "InvalidOperation.DeletionProtection"
    assert direct.code("ecs", "DeleteInstance", InstanceId=subscribed, **force) == "ChargeTypeViolation"
    direct.call("ecs", "ModifyInstanceAttribute", InstanceId=protected, DeletionProtection="false")
    direct.call("ecs", "DeleteInstance", InstanceId=protected, **force)


def test_the_cloud_releases_what_nobody_renews(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    now = direct.server.cloud.clock.now()
    left, kept = direct.run(vswitch, group, Amount=2, AutoReleaseTime=utc(now + 1900))
    direct.server.advance(1000)
    direct.call("ecs", "ModifyInstanceAutoReleaseTime", InstanceId=kept, AutoReleaseTime=utc(now + 1000 + 7200))
    soon = direct.code("ecs", "ModifyInstanceAutoReleaseTime", InstanceId=kept, AutoReleaseTime=utc(now + 1100))
    assert soon == "InvalidAutoReleaseTime.Malformed"
    direct.reopen()
    direct.server.advance(1000)
    assert [item["InstanceId"] for item in direct.instances()] == [kept]
    assert left != kept
    direct.call("ecs", "ModifyInstanceAutoReleaseTime", InstanceId=kept)
    direct.server.advance(100_000)
    assert len(direct.instances()) == 1


def test_spot_notice_comes_before_the_end(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (instance,) = direct.run(vswitch, group, SpotStrategy="SpotAsPriceGo")
    from localcloud.api.actions import instance_ops
    from localcloud.api.hosts_view import Source

    call = direct.server.call("test")
    with direct.server.store.transaction():
        at = instance_ops.reclaim(call, direct.server.store.get("instance", instance))
    (view,) = direct.instances()
    assert view["OperationLocks"]["LockReason"][0]["LockReason"] == "Recycling"
    source = Source(direct.server.store, direct.server.cloud.offers, direct.server.account_id)
    vpc = view["VpcAttributes"]
    metadata = source.metadata(vpc["VpcId"], vpc["PrivateIpAddress"]["IpAddress"][0])
    assert metadata is not None
    assert metadata.spot_termination_time == datetime.fromtimestamp(at, UTC)
    direct.server.advance(290)
    assert len(direct.instances()) == 1
    direct.server.advance(20)
    assert direct.instances() == []


def test_describe_lags_behind(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(describe_lag=30)
    (instance,) = direct.run(vswitch, group)
    assert direct.instances() == []
    assert direct.call("ecs", "DescribeInstances", InstanceIds=json.dumps([instance]))["TotalCount"] == 0
    direct.server.advance(31)
    assert len(direct.instances()) == 1


# -- lists -------------------------------------------------------------------------------------------------------


def walk(direct: Direct, **parameters: Any) -> list[str]:
    token, found = "", []
    while True:
        more = {"NextToken": token} if token else {}
        page = direct.call("ecs", "DescribeInstances", MaxResults=10, **more, **parameters)
        found += [item["InstanceId"] for item in page["Instances"]["Instance"]]
        token = page["NextToken"]
        if not token:
            return found


def test_pages_by_token_stay_right_while_instances_come_and_go(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    found = direct.run(vswitch, group, Amount=35)
    assert walk(direct) == found
    first = direct.call("ecs", "DescribeInstances", MaxResults=10)
    assert first["TotalCount"] == 35
    direct.call("ecs", "DeleteInstance", InstanceId=found[3], Force="true")
    direct.run(vswitch, group, Amount=2)
    second = direct.call("ecs", "DescribeInstances", MaxResults=10, NextToken=first["NextToken"])
    assert [item["InstanceId"] for item in second["Instances"]["Instance"]] == found[10:20]
    assert direct.code("ecs", "DescribeInstances", NextToken="nonsense") == "InvalidParameter.NextToken"


def test_pages_by_number(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    found = direct.run(vswitch, group, Amount=25)
    pages = [
        [
            item["InstanceId"]
            for item in direct.call("ecs", "DescribeInstances", PageSize=10, PageNumber=number)["Instances"]["Instance"]
        ]
        for number in (1, 2, 3, 4)
    ]
    assert pages == [found[:10], found[10:20], found[20:], []]
    assert direct.code("ecs", "DescribeInstances", PageSize=101) == "InvalidParameter.PageSize"


def test_filters(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (one,) = direct.run(vswitch, group, InstanceName="a", **{"Tag.1.Key": "pool", "Tag.1.Value": "mpi"})
    (two,) = direct.run(vswitch, group, InstanceName="ab", **{"Tag.1.Key": "pool", "Tag.1.Value": "gpu"})

    def found(**parameters: Any) -> list[str]:
        return [item["InstanceId"] for item in direct.instances(**parameters)]

    assert found(**{"Tag.1.Key": "pool", "Tag.1.Value": "mpi"}) == [one]
    assert found(InstanceName="ab") == [two]
    assert found(InstanceName="a*") == [one, two]
    assert found(VSwitchId=vswitch, SecurityGroupId=group) == [one, two]
    assert found(ZoneId="cn-hangzhou-k") == []
    assert found(InstanceIds=json.dumps([two, "i-none"])) == [two]
    assert found(PrivateIpAddresses='["10.0.0.1"]') == [one]
    assert found(RegionId="cn-beijing") == []
    direct.call("ecs", "UntagResources", ResourceType="instance", ResourceId_1=one, TagKey_1="pool")
    assert found(**{"Tag.1.Key": "pool", "Tag.1.Value": "mpi"}) == []


# -- RAM ---------------------------------------------------------------------------------------------------------


def make_role(direct: Direct, name: str, actions: list[str], **statement: Any) -> None:
    trust = {"Version": "1", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {}}]}
    document = {
        "Version": "1",
        "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*", **statement}],
    }
    direct.call("ram", "CreateRole", RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    direct.call("ram", "CreatePolicy", PolicyName=name, PolicyDocument=json.dumps(document))
    direct.call("ram", "AttachPolicyToRole", RoleName=name, PolicyType="Custom", PolicyName=name)


def test_roles_may_do_what_their_policies_say(direct: Direct) -> None:
    make_role(direct, "r", ["ecs:Describe*"])
    direct.call("ecs", "DescribeInstances", "r")
    assert direct.code("ecs", "CreateKeyPair", "r", KeyPairName="k") == "Forbidden.RAM"
    assert direct.code("vpc", "DescribeVpcs", "r") == "Forbidden.RAM"
    assert direct.code("ram", "ListRoles", "r") == "NoPermission"
    direct.call("ram", "AttachPolicyToRole", RoleName="r", PolicyType="System", PolicyName="AliyunVPCReadOnlyAccess")
    direct.call("vpc", "DescribeVpcs", "r")


def test_deny_beats_allow(direct: Direct) -> None:
    make_role(direct, "r", ["ecs:DescribeInstances"], Effect="Deny")
    direct.call("ram", "AttachPolicyToRole", RoleName="r", PolicyType="System", PolicyName="AdministratorAccess")
    with pytest.raises(ApiError) as caught:
        direct.call("ecs", "DescribeInstances", "r", DryRun="true")
    assert caught.value.status == 403
    detail = caught.value.extra["AccessDeniedDetail"]
    assert isinstance(detail, dict)
    assert detail["NoPermissionType"] == "ExplicitDeny"
    direct.call("ecs", "DescribeZones", "r")


def test_passing_a_role_needs_permission_for_that_role(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    make_role(direct, "node", ["ecs:DescribeInstances"])
    make_role(direct, "other", ["ecs:DescribeInstances"])
    make_role(direct, "daemon", ["ecs:RunInstances"])
    request = {
        "InstanceType": "ecs.c7.large", "ImageId": IMAGE, "VSwitchId": vswitch, "SecurityGroupId": group,
        "RamRoleName": "node",
    }  # fmt: skip
    assert direct.code("ecs", "RunInstances", "daemon", **request) == "InvalidUser.PassRoleForbidden"
    document = {
        "Version": "1",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": "ram:PassRole",
                "Resource": f"acs:ram:*:{direct.server.account_id}:role/node",
                "Condition": {"StringEquals": {"acs:Service": "ecs.aliyuncs.com"}},
            }
        ],
    }
    direct.call("ram", "CreatePolicy", PolicyName="pass", PolicyDocument=json.dumps(document))
    direct.call("ram", "AttachPolicyToRole", RoleName="daemon", PolicyType="Custom", PolicyName="pass")
    direct.call("ecs", "RunInstances", "daemon", **request)
    assert direct.code("ecs", "RunInstances", "daemon", **{**request, "RamRoleName": "other"}) == (
        "InvalidUser.PassRoleForbidden"
    )


# -- the store ---------------------------------------------------------------------------------------------------


def test_a_failing_action_changes_nothing(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    store = direct.server.store
    with pytest.raises(RuntimeError), store.transaction():
        store.insert("key_pair", {"id": "x/y", "region": "x", "name": "y"})
        store.set_timer("instance", "i", "started", 1.0)
        raise RuntimeError
    assert store.get("key_pair", "x/y") is None
    assert store.next_timer is None
    direct.run(vswitch, group)


def test_index_follows_changes(direct: Direct) -> None:
    store = direct.server.store
    with store.transaction():
        store.insert("eip", {"id": "e", "region": "r", "address": "1.2.3.4", "tags": {"a": "1"}})
        store.update("eip", {"id": "e", "region": "r", "address": "1.2.3.5", "tags": {"b": "2"}})
    assert store.count("eip", {"address": "1.2.3.4"}) == 0
    assert store.count("eip", {"address": "1.2.3.5", "tag:b": "2"}) == 1
    with store.transaction():
        store.delete("eip", "e")
    assert store.count("eip", {"address": "1.2.3.5"}) == 0
    assert store.values("eip", "region") == []
