"""Details of the real API that programs run into: filters, pages, dry runs, protection, charge types, quotas."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from direct_cloud import TYPE, Direct

from localcloud.api import rpc
from localcloud.api.errors import ApiError


def utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def found(direct: Direct, **parameters: Any) -> set[str]:
    return {item["InstanceId"] for item in direct.instances(**parameters)}


# -- DescribeInstances -------------------------------------------------------------------------------------------


def test_every_filter_filters(direct: Direct) -> None:
    vpc, vswitch, group = direct.network()
    (one,) = direct.run(vswitch, group, InstanceName="web-1", Tag_1_Key="pool", Tag_1_Value="a", HttpTokens="required")
    (two,) = direct.run(
        vswitch, group, InstanceType="ecs.c7.large", InstanceName="db-1", InstanceChargeType="PrePaid",
        Tag_1_Key="pool", Tag_1_Value="b", ResourceGroupId="rg-x",
    )  # fmt: skip
    (three,) = direct.run(vswitch, group, SpotStrategy="SpotAsPriceGo")
    direct.server.advance(5)
    eip = direct.call("vpc", "AllocateEipAddress")
    direct.call("vpc", "AssociateEipAddress", AllocationId=eip["AllocationId"], InstanceId=two)
    everything = {one, two, three}
    private = next(item for item in direct.instances() if item["InstanceId"] == one)["VpcAttributes"]
    cases: list[tuple[dict[str, str], set[str]]] = [
        ({}, everything),
        ({"VpcId": vpc}, everything),
        ({"VpcId": "vpc-none"}, set()),
        ({"InstanceType": "ecs.c7.large"}, {two}),
        ({"InstanceTypeFamily": "ecs.c7"}, {two}),
        ({"InstanceChargeType": "PrePaid"}, {two}),
        ({"InstanceChargeType": "PostPaid"}, {one, three}),
        ({"InstanceName": "web-1"}, {one}),
        ({"InstanceName": "*-1"}, {one, two}),
        ({"InstanceName": "w*"}, {one}),
        ({"HttpTokens": "required"}, {one}),
        ({"ResourceGroupId": "rg-x"}, {two}),
        ({"EipAddresses": json.dumps([eip["EipAddress"]])}, {two}),
        ({"EipAddresses": '["1.2.3.4"]'}, set()),
        ({"PrivateIpAddresses": json.dumps(private["PrivateIpAddress"]["IpAddress"])}, {one}),
        ({"InstanceNetworkType": "vpc"}, everything),
        ({"InstanceNetworkType": "classic"}, set()),
        ({"PublicIpAddresses": '["1.2.3.4"]'}, set()),
        ({"IoOptimized": "false"}, set()),
        ({"LockReason": "Recycling"}, set()),
        ({"Tag_1_Key": "pool"}, {one, two}),
        ({"Tag_1_Key": "pool", "Tag_1_Value": "b"}, {two}),
        ({"Tag_1_Key": "none"}, set()),
        ({"InstanceIds": "[]"}, set()),
        ({"Status": "Running"}, everything),
        ({"Status": "Stopped"}, set()),
    ]
    for parameters, expected in cases:
        assert found(direct, **parameters) == expected, parameters


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"Status": "Happy"}, "InvalidStatus.NotFound"),
        ({"InstanceNetworkType": "x"}, "InvalidNetworkType.NotFound"),
        ({"LockReason": "x"}, "InvalidLockReason.NotFound"),
        ({"InternetChargeType": "x"}, "InvalidInternetChargeType.ValueNotSupported"),
        ({"InstanceChargeType": "x"}, "InvalidInstanceChargeType.NotFound"),
        ({"InstanceIds": "i-1"}, "InvalidParameter.InstanceIds"),
        ({"InstanceIds": json.dumps(["i-1"] * 101)}, "InvalidParameter.InstanceIds"),
        ({"PageSize": "101"}, "InvalidParameter.PageSize"),
        ({"PageSize": "0"}, "InvalidParameter.PageSize"),
        ({"MaxResults": "many"}, "InvalidParameter.MaxResults"),
        ({"DryRun": "true"}, "DryRunOperation"),
        ({"Tag_1_Value": "x"}, "InvalidTagKey.Malformed"),
    ],
)
def test_values_that_filters_do_not_have(direct: Direct, parameters: dict[str, str], code: str) -> None:
    assert direct.code("ecs", "DescribeInstances", **parameters) == code


def test_filters_count_over_all_pages(direct: Direct) -> None:
    """A name with an asterisk is looked for among all instances, not among those of one page."""
    _, vswitch, group = direct.network()
    direct.run(vswitch, group, Amount=30, InstanceName="other")
    wanted = set(direct.run(vswitch, group, Amount=25, InstanceName="wanted-[1,2]"))
    seen: list[str] = []
    token = ""
    while True:
        more = {"NextToken": token} if token else {}
        page = direct.call("ecs", "DescribeInstances", InstanceName="wanted*", MaxResults=10, **more)
        assert page["TotalCount"] == 25
        seen += [item["InstanceId"] for item in page["Instances"]["Instance"]]
        token = page["NextToken"]
        if not token:
            break
    assert len(seen) == 25
    assert set(seen) == wanted
    third = direct.call("ecs", "DescribeInstances", InstanceName="wanted*", PageNumber=3, PageSize=10)
    assert len(third["Instances"]["Instance"]) == 5


@pytest.mark.parametrize(("asked", "given"), [("1", 10), ("0", 10), ("-5", 10), ("10", 10), ("99", 99), ("5000", 100)])
def test_max_results_is_brought_into_its_range(direct: Direct, asked: str, given: int) -> None:
    assert direct.call("ecs", "DescribeInstances", MaxResults=asked)["MaxResults"] == given


def test_a_token_is_good_for_its_own_query_only(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.run(vswitch, group, Amount=15, Tag_1_Key="a", Tag_1_Value="b")
    token = direct.call("ecs", "DescribeInstances", MaxResults=10, Tag_1_Key="a")["NextToken"]
    assert direct.code("ecs", "DescribeInstances", NextToken=token) == "InvalidParameter.NextToken"
    assert direct.code("ecs", "DescribeNetworkInterfaces", NextToken=token) == "InvalidParameter.NextToken"
    direct.run(vswitch, group, Amount=3)  # comings and goings do not spoil it
    page = direct.call("ecs", "DescribeInstances", NextToken=token, MaxResults=100, Tag_1_Key="a", PageNumber=7)
    assert len(page["Instances"]["Instance"]) == 5


def test_who_may_not_look_sees_nothing_and_learns_why_by_a_dry_run(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.run(vswitch, group)
    trust = json.dumps({"Version": "1", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]})
    direct.call("ram", "CreateRole", RoleName="blind", AssumeRolePolicyDocument=trust)
    answer = direct.call("ecs", "DescribeInstances", "blind")
    assert (answer["Instances"]["Instance"], answer["TotalCount"]) == ([], 0)
    assert direct.code("ecs", "DescribeInstances", "blind", DryRun="true") == "Forbidden.RAM"
    assert direct.code("ecs", "DescribeDisks", "blind") == "Forbidden.RAM"


# -- dry runs, protection, release -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("StopInstance", "DryRunOperation"),
        ("StopInstances", "DRYRUN.SUCCESS"),
        ("RebootInstances", "DRYRUN.SUCCESS"),
        ("DeleteInstances", "DRYRUN.SUCCESS"),
        ("DeleteInstance", "DryRunOperation"),
    ],
)
def test_codes_of_dry_runs(direct: Direct, action: str, code: str) -> None:
    _, vswitch, group = direct.network()
    (instance,) = direct.run(vswitch, group)
    direct.server.advance(5)
    name = "InstanceId_1" if action.endswith("s") else "InstanceId"
    more = {"Force": "true"} if action.startswith("Delete") else {}
    assert direct.code("ecs", action, DryRun="true", **{name: instance}, **more) == code
    assert found(direct, Status="Running") == {instance}


def test_more_than_a_hundred_instances_at_once(direct: Direct) -> None:
    many = {f"InstanceId_{number}": f"i-{number}" for number in range(1, 102)}
    for action in ("StartInstances", "StopInstances", "RebootInstances", "DeleteInstances"):
        assert direct.code("ecs", action, **many) == "InvalidParameter.TooManyInstanceIds"


def test_protection_keeps_a_stopped_instance_and_not_a_release_time(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (instance,) = direct.run(vswitch, group, DeletionProtection="true")
    direct.server.advance(5)
    direct.call("ecs", "StopInstance", InstanceId=instance)
    direct.server.advance(5)
    for force in ("true", "false"):
        assert direct.code("ecs", "DeleteInstance", InstanceId=instance, Force=force) == (
            "InvalidOperation.DeletionProtection"
        )
    at = utc(direct.server.cloud.clock.now() + 3600)
    direct.call("ecs", "ModifyInstanceAutoReleaseTime", InstanceId=instance, AutoReleaseTime=at)
    direct.server.advance(3700)
    assert found(direct) == set()


def test_one_instance_that_cannot_go_keeps_all_of_a_batch(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    one, two = direct.run(vswitch, group, Amount=2)
    direct.server.advance(5)
    direct.call("ecs", "ModifyInstanceAttribute", InstanceId=two, DeletionProtection="true")
    both = {"InstanceId_1": one, "InstanceId_2": two, "Force": "true"}
    assert direct.code("ecs", "DeleteInstances", **both) == "InvalidOperation.DeletionProtection"
    assert found(direct) == {one, two}


def test_an_instance_in_its_first_moments_can_be_kept_from_release(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(delete_while_pending=False, instance_start=30)
    (instance,) = direct.run(vswitch, group)
    assert direct.code("ecs", "DeleteInstance", InstanceId=instance, Force="true") == (
        "IncorrectInstanceStatus.Initializing"
    )
    direct.server.advance(31)
    direct.call("ecs", "DeleteInstance", InstanceId=instance, Force="true")


def test_seconds_of_a_release_time_do_not_count(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (instance,) = direct.run(vswitch, group)
    now = direct.server.cloud.clock.now()
    at = now - now % 60 + 7200 + 59
    direct.call("ecs", "ModifyInstanceAutoReleaseTime", InstanceId=instance, AutoReleaseTime=utc(at))
    (shown,) = direct.instances()
    assert shown["AutoReleaseTime"] == utc(at)[:16] + "Z"
    direct.server.advance(at - 58 - now)
    assert found(direct) == set()


# -- subscription and pay-as-you-go ------------------------------------------------------------------------------


def charge(direct: Direct, instance: str, **parameters: Any) -> dict[str, Any]:
    return direct.call("ecs", "ModifyInstanceChargeType", InstanceIds=json.dumps([instance]), **parameters)


def test_from_pay_as_you_go_to_subscription_and_back(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (instance,) = direct.run(vswitch, group, DataDisk_1_Size=40)
    direct.server.advance(5)

    def disks() -> dict[str, str]:
        views = direct.call("ecs", "DescribeDisks", InstanceId=instance)["Disks"]["Disk"]
        return {view["Type"]: view["DiskChargeType"] for view in views}

    assert charge(direct, instance, InstanceChargeType="PrePaid", Period=1, PeriodUnit="Month")["OrderId"].isdigit()
    (shown,) = direct.instances()
    days = (datetime.fromisoformat(shown["ExpiredTime"]) - datetime.fromisoformat(shown["CreationTime"])).days
    assert (shown["InstanceChargeType"], days) == ("PrePaid", 30)
    assert disks() == {"system": "PrePaid", "data": "PostPaid"}
    assert direct.code("ecs", "DeleteInstance", InstanceId=instance, Force="true") == "ChargeTypeViolation"
    renewal = {"InstanceId": instance}
    direct.call("ecs", "ModifyInstanceAutoRenewAttribute", RenewalStatus="AutoRenewal", Duration=3, **renewal)
    (state,) = direct.call("ecs", "DescribeInstanceAutoRenewAttribute", **renewal)["InstanceRenewAttributes"][
        "InstanceRenewAttribute"
    ]
    assert (state["RenewalStatus"], state["Duration"], state["AutoRenewEnabled"]) == ("AutoRenewal", 3, True)
    direct.call("ecs", "ModifyInstanceAutoRenewAttribute", RenewalStatus="NotRenewal", **renewal)
    listed = direct.call("ecs", "DescribeInstanceAutoRenewAttribute", RenewalStatus="NotRenewal")
    assert listed["TotalCount"] == 1
    back = charge(direct, instance, InstanceChargeType="PostPaid", IsDetailFee="true")
    assert "OrderId" not in back
    assert back["FeeOfInstances"]["FeeOfInstance"][0]["InstanceId"] == instance
    (shown,) = direct.instances()
    assert (shown["InstanceChargeType"], shown["ExpiredTime"]) == ("PostPaid", "2099-12-31T15:59Z")
    assert disks() == {"system": "PostPaid", "data": "PostPaid"}
    assert direct.code("ecs", "ModifyInstanceAutoRenewAttribute", RenewalStatus="Normal", **renewal) == (
        "ChargeTypeViolation"
    )
    direct.call("ecs", "DeleteInstance", InstanceId=instance, Force="true")


def test_changes_of_charge_type_that_are_refused(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (spot,) = direct.run(vswitch, group, SpotStrategy="SpotAsPriceGo")
    at = utc(direct.server.cloud.clock.now() + 7200)
    (leaving,) = direct.run(vswitch, group, AutoReleaseTime=at)
    direct.server.advance(5)
    (plain,) = direct.run(vswitch, group)

    def code(instances: list[str], **parameters: Any) -> str:
        return direct.code("ecs", "ModifyInstanceChargeType", InstanceIds=json.dumps(instances), **parameters)

    assert code([plain]) == "InvalidStatus.ValueNotSupported"  # still Pending
    direct.server.advance(5)
    assert code([spot]) == "InvalidInstanceChargeType.ValueNotSupported"
    assert code([plain], InstanceChargeType="PostPaid") == "InvalidInstanceChargeType.ValueNotSupported"
    assert code([leaving]) == "ReleaseTimeHaveBeenSet"
    assert code([plain, "i-none"]) == "InvalidParameter.InstanceIds"
    assert code([]) == "InvalidParameter.InstanceIds"
    assert code([f"i-{number}" for number in range(21)]) == "InstancesIdQuotaExceed"
    assert code([plain], Period=10) == "InvalidPeriod"
    assert code([plain], Period=5, PeriodUnit="Week") == "InvalidPeriod"
    assert code([plain], DryRun="true") == "DryRunOperation"
    assert code([plain, leaving]) == "ReleaseTimeHaveBeenSet"
    assert found(direct, InstanceChargeType="PrePaid") == set(), "all or none"


def test_an_expired_subscription_can_be_released_if_that_is_said(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    (instance,) = direct.run(vswitch, group, InstanceChargeType="PrePaid", Period=1, PeriodUnit="Week")
    direct.server.advance(6 * 86_400)
    ending = {"InstanceId_1": instance, "Force": "true", "TerminateSubscription": "true"}
    assert direct.code("ecs", "DeleteInstances", **ending) == "ChargeTypeViolation"
    direct.server.advance(2 * 86_400)
    assert direct.code("ecs", "DeleteInstances", InstanceId_1=instance, Force="true") == "ChargeTypeViolation"
    direct.call("ecs", "DeleteInstances", **ending)


# -- quotas ------------------------------------------------------------------------------------------------------


def attributes(direct: Direct, *names: str) -> dict[str, list[str]]:
    named = {f"AttributeName_{number}": name for number, name in enumerate(names, 1)}
    items = direct.call("ecs", "DescribeAccountAttributes", **named)["AccountAttributeItems"]["AccountAttributeItem"]
    return {item["AttributeName"]: [value["Value"] for value in item["AttributeValues"]["ValueItem"]] for item in items}


def test_quotas_and_what_is_used_of_them(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    direct.knobs(quotas={"vcpus": 100, "spot_vcpus": 40})
    direct.run(vswitch, group, Amount=2)
    direct.run(vswitch, group, SpotStrategy="SpotAsPriceGo", InstanceType="ecs.c7.large")
    kinds = ("max-postpaid-instance-vcpu-count", "used-postpaid-instance-vcpu-count", "max-spot-instance-vcpu-count",
             "used-spot-instance-vcpu-count")  # fmt: skip
    assert attributes(direct, *kinds) == dict(zip(kinds, (["100"], ["32"], ["40"], ["2"]), strict=True))
    assert direct.run_code(vswitch, group, Amount=5) == "QuotaExceed.ElasticQuota"
    direct.run(vswitch, group, Amount=4)
    assert attributes(direct, kinds[1])[kinds[1]] == ["96"]
    everything = attributes(direct)
    assert set(kinds) < set(everything)
    assert TYPE in everything["supported-postpaid-instance-types"]
    other = direct.call("ecs", "DescribeAccountAttributes", RegionId="cn-beijing", AttributeName_1=kinds[1])
    assert '"0"' in json.dumps(other), "each region has its own"


def test_attributes_that_there_are_not(direct: Direct) -> None:
    assert direct.code("ecs", "DescribeAccountAttributes", AttributeName_1="none") == "InvalidParameter.AttributeName"
    assert direct.code("ecs", "DescribeAccountAttributes", ZoneId="mars-a") == "InvalidZoneId.NotFound"
    with pytest.raises(ApiError):
        attributes(direct, *[f"x{number}" for number in range(9)])


# -- tags and tokens ---------------------------------------------------------------------------------------------


def test_a_tag_key_twice(direct: Direct) -> None:
    tags = {"Tag_1_Key": "a", "Tag_1_Value": "b", "Tag_2_Key": "a", "Tag_2_Value": "c"}
    assert direct.code("vpc", "CreateVpc", **tags) == "Duplicate.TagKey"


def test_tokens_that_are_none(direct: Direct) -> None:
    assert direct.code("ecs", "CreateDisk", ClientToken="x" * 65) == "InvalidClientToken.ValueNotSupported"
    assert direct.code("vpc", "CreateVpc", ClientToken="\u00e9") == "InvalidClientToken"


def test_a_token_is_forgotten_after_a_day(direct: Direct) -> None:
    first = direct.call("vpc", "CreateVpc", ClientToken="t")["VpcId"]
    direct.server.advance(23 * 3600)
    assert direct.call("vpc", "CreateVpc", ClientToken="t")["VpcId"] == first
    direct.server.advance(2 * 3600)
    direct.call("vpc", "CreateVpc", ClientToken="other")
    assert direct.call("vpc", "CreateVpc", ClientToken="t")["VpcId"] != first


def test_nonces_are_remembered_for_half_an_hour_at_least() -> None:
    nonces = rpc._Nonces()
    assert not nonces.used("a", 10_000)
    assert nonces.used("a", 10_000 + 1799)
    assert nonces.used("a", 10_000 + 1801)
    assert not nonces.used("b", 10_000 + 3500)
    assert nonces.used("b", 10_000 + 3700)
    assert not nonces.used("a", 10_000 + 3700)
