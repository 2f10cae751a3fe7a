"""The adapter on the official SDK against the local cloud's API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from alibabacloud_ecs20140526 import models as ecs
from alibabacloud_tea_openapi.models import Config
from alibabacloud_vpc20160428 import models as vpc
from alibabacloud_vpc20160428.client import Client as VpcClient

from hpc.elastic.actions import ACTIONS
from hpc.elastic.ecs import Cloud, CloudError, Connection, release_time
from hpc.elastic.failures import Failure, classify, is_gone
from hpc.elastic.launch import BATCH_LIMIT, Candidate, batches
from hpc.elastic.settings import PoolSettings
from localcloud.api import launch
from localcloud.api.client import LocalCloud
from localcloud.providers.client import Cloud as Api
from tests.hpc.elastic.settings_for_tests import pool, settings

IMAGE = "debian_12_13_x64_20G_alibase_20241201.vhd"
TYPE = "ecs.c8ae.4xlarge"
ZONE = "cn-hangzhou-j"
CLUSTER = "cfd"


class Account:
    """A cloud with a network, a launch template and the adapter."""

    def __init__(self, local: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> None:
        self.local = local
        monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", local.record.access_key_id)
        monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", local.record.access_key_secret)
        monkeypatch.delenv("ALIBABA_CLOUD_SECURITY_TOKEN", raising=False)
        connection = Connection("cn-hangzhou", local.endpoint, "http")
        self.waits: list[float] = []
        self.cloud = Cloud(connection, CLUSTER, sleep=self.waits.append)
        self.ecs: Any = connection.client()
        config: Any = Config(
            access_key_id=local.record.access_key_id, access_key_secret=local.record.access_key_secret,
            endpoint=local.endpoint, protocol="http", region_id="cn-hangzhou",
        )  # fmt: skip
        net: Any = VpcClient(config)
        network = net.create_vpc(vpc.CreateVpcRequest(region_id="cn-hangzhou", cidr_block="10.0.0.0/8")).body.vpc_id
        vswitch = net.create_vswitch(
            vpc.CreateVSwitchRequest(region_id="cn-hangzhou", vpc_id=network, zone_id=ZONE, cidr_block="10.1.0.0/16")
        ).body.v_switch_id
        group = self.ecs.create_security_group(
            ecs.CreateSecurityGroupRequest(region_id="cn-hangzhou", vpc_id=network)
        ).body.security_group_id
        template = self.ecs.create_launch_template(
            ecs.CreateLaunchTemplateRequest(
                region_id="cn-hangzhou", launch_template_name="mpi", image_id=IMAGE, http_tokens="required",
                system_disk=ecs.CreateLaunchTemplateRequestSystemDisk(category="cloud_essd", size=40),
            )
        ).body.launch_template_id  # fmt: skip
        self.entry = pool(
            types=[{"name": TYPE, "vcpus": 16, "threads_per_core": None, "payg_price": "4", "spot_price": "1"}],
            zones=[{"zone": ZONE, "vswitch_id": vswitch}],
            launch_template_id=template, security_group_id=group, traffic_mode="HighPerformance",
        )  # fmt: skip

    def pool(self, **changes: Any) -> PoolSettings:
        return settings(self.entry | changes).pools["mpi"]

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.local.now(), UTC)

    def buy(self, *numbers: int, token: str = "", minimum: int = 0, charge: str = "payg", **changes: Any) -> list[str]:
        """Launch nodes by their numbers; `minimum` 0 is all of a batch."""
        mine = self.pool(**changes)
        ids: list[str] = []
        for row in batches("mpi", [f"mpi-{n}" for n in numbers]):
            way = Candidate(mine.types[0], mine.zones[0], charge)
            key = token or row.token(len(self.local.calls()), way)
            ids += self.cloud.launch(mine, row, way, key, minimum or len(row.nodes), self.now)
        return ids

    def names(self) -> dict[str, str]:
        return {instance.id: instance.name for instance in self.cloud.instances()}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    state = tmp_path_factory.mktemp("cloud")
    running = launch.start(state, hosts=False)
    running.set(instance_start=0, instance_stop=0)
    running.set_quota(vpcs=100)  # one for each test
    yield running
    launch.stop(state)


@pytest.fixture
def account(local: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    made = Account(local, monkeypatch)
    yield made
    local.set(throttle={}, faults=[], stock=[], describe_lag=0)
    local.set_quota(vcpus=10_000_000)
    made.cloud.delete(list(made.names()))
    made.ecs.delete_launch_template(
        ecs.DeleteLaunchTemplateRequest(region_id="cn-hangzhou", launch_template_id=made.entry["launch_template_id"])
    )


def test_a_launch_as_the_cloud_shows_it(account: Account) -> None:
    ids = account.buy(7)
    (seen,) = account.cloud.instances()
    assert [seen.id] == ids and seen.name == "mpi-7" and seen.pool == "mpi"
    assert (seen.type, seen.zone, seen.charge, seen.reclaimed) == (TYPE, ZONE, "payg", False)
    assert seen.address and seen.address.startswith("10.1.")
    assert seen.release and abs((seen.release - account.now).total_seconds() - 3600) < 120
    assert abs((account.now - seen.created).total_seconds()) < 90
    shown = account.ecs.describe_instances(
        ecs.DescribeInstancesRequest(region_id="cn-hangzhou")
    ).body.instances.instance[0]
    assert shown.host_name == "mpi-7"
    assert {tag.tag_key: tag.tag_value for tag in shown.tags.tag} == account.entry["tags"]
    assert shown.metadata_options.http_tokens == "required"
    interface = account.ecs.describe_network_interfaces(
        ecs.DescribeNetworkInterfacesRequest(region_id="cn-hangzhou", instance_id=ids[0])
    ).body.network_interface_sets.network_interface_set[0]
    assert interface.network_interface_traffic_mode == "HighPerformance"


def test_names_over_nine_and_ninety_nine(account: Account) -> None:
    ids = account.buy(*range(8, 13), *range(98, 103), 105)
    assert sorted(account.names().values(), key=lambda name: int(name[4:])) == [
        f"mpi-{n}" for n in (*range(8, 13), *range(98, 103), 105)
    ]
    assert len(set(ids)) == 11


def test_the_ids_are_in_the_order_of_the_names(account: Account) -> None:
    ids = account.buy(*range(20, 30))
    names = account.names()
    assert [names[instance_id] for instance_id in ids] == [f"mpi-{n}" for n in range(20, 30)]


def test_more_than_one_page(account: Account) -> None:
    account.buy(*range(100, 100 + 2 * BATCH_LIMIT + 5))
    assert len(account.names()) == 205
    assert len(set(account.names().values())) == 205


def test_part_of_a_batch(account: Account) -> None:
    account.local.set_stock(3, instance_type=TYPE, zone=ZONE)
    ids = account.buy(1, 2, 3, 4, 5, minimum=1)
    assert sorted(account.names().values()) == ["mpi-1", "mpi-2", "mpi-3"] and len(ids) == 3


def test_all_of_a_batch_or_nothing(account: Account) -> None:
    account.local.set_stock(4, instance_type=TYPE, zone=ZONE)
    with pytest.raises(CloudError) as caught:
        account.buy(1, 2, 3, 4, 5)
    assert caught.value.failure is Failure.STOCK and caught.value.code == "OperationDenied.NoStock"
    assert account.names() == {}


def test_quota_is_not_stock(account: Account) -> None:
    account.local.set_quota(vcpus=16 * 4)
    with pytest.raises(CloudError) as caught:
        account.buy(1, 2, 3, 4, 5)
    assert caught.value.failure is Failure.QUOTA
    assert account.names() == {}


def test_the_same_token_buys_once(account: Account) -> None:
    now, mine = account.now, account.pool()
    (row,) = batches("mpi", ["mpi-1", "mpi-2"])
    way = Candidate(mine.types[0], mine.zones[0], "payg")
    first = account.cloud.launch(mine, row, way, "token-1", 2, now)
    assert account.cloud.launch(mine, row, way, "token-1", 2, now) == first
    assert len(account.names()) == 2


def test_an_answer_that_was_lost_buys_once(account: Account) -> None:
    account.local.fail("RunInstances", "ServiceUnavailable", status=503, when="after")
    ids = account.buy(1, 2)
    assert len(ids) == 2 and len(account.names()) == 2
    assert account.waits, "the call was made again"


def test_throttling_is_waited_out(account: Account) -> None:
    account.local.fail("RunInstances", "Throttling.User", status=400, count=3)
    assert len(account.buy(1)) == 1
    assert len(account.waits) == 3


def test_a_wrong_parameter_is_not_tried_again(account: Account) -> None:
    with pytest.raises(CloudError) as caught:
        account.buy(1, security_group_id="sg-nobody")
    assert caught.value.failure is Failure.REFUSED and not account.waits


def test_release_times_are_pushed_forward(account: Account) -> None:
    ids = account.buy(1, 2, auto_release=1800)
    before = {i.id: i.release for i in account.cloud.instances()}
    account.cloud.extend([ids[0], "i-nobody", ids[1]], 7200, account.now)
    after = {i.id: i.release for i in account.cloud.instances()}
    assert all((after[i] or account.now) - (before[i] or account.now) > timedelta(minutes=60) for i in ids)


def test_the_cloud_releases_what_nobody_extends(account: Account) -> None:
    account.buy(1, 2, auto_release=1800)
    account.local.advance_clock(1800 + 300)
    assert account.names() == {}


def test_deleting_what_is_gone(account: Account) -> None:
    ids = account.buy(*range(1, 6))
    account.local.vanish(ids[1])
    account.cloud.delete([ids[0], "i-nobody", ids[1], ids[2]])
    assert sorted(account.names().values()) == ["mpi-4", "mpi-5"]
    account.cloud.delete([])


def test_deleting_more_than_a_call_takes(account: Account) -> None:
    ids = account.buy(*range(100, 250))
    account.cloud.delete(ids)
    assert account.names() == {}


def test_a_reclaimed_spot_instance_is_seen(account: Account) -> None:
    ids = account.buy(1, 2, charge="spot", spot_price_limit="9.5", spot_duration=1)
    assert {i.charge for i in account.cloud.instances()} == {"spot"}
    account.local.reclaim(ids[0])
    assert {i.id: i.reclaimed for i in account.cloud.instances()} == {ids[0]: True, ids[1]: False}


def test_other_clusters_are_not_seen(account: Account) -> None:
    tags = {"hpc:cluster": "other", "hpc:role": "compute", "hpc:pool": "mpi"}
    other = account.buy(1, tags=tags) + account.buy(2, tags=tags | {"hpc:cluster": CLUSTER, "hpc:role": "login"})
    assert account.names() == {}
    account.cloud.delete(other)


def test_no_server_is_an_error_that_passes(account: Account) -> None:
    cloud = Cloud(Connection("cn-hangzhou", "127.0.0.1:1", "http"), CLUSTER)
    with pytest.raises(CloudError) as caught:
        cloud._once(cloud._client.describe_instances, ecs.DescribeInstancesRequest(region_id="cn-hangzhou"))
    assert caught.value.failure is Failure.PASSING


def test_a_wrong_key_is_told(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "wrong")
    cloud = Cloud(Connection("cn-hangzhou", account.local.endpoint, "http"), CLUSTER)
    with pytest.raises(CloudError) as caught:
        cloud.instances()
    assert caught.value.failure is Failure.DENIED
    assert "wrong" not in str(caught.value)


def test_an_empty_list_without_the_right_to_see_is_no_empty_cluster(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.buy(1)
    record = account.local.record
    api = Api(account.local.endpoint, "cn-hangzhou", record.access_key_id, record.access_key_secret)
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": ["ecs.aliyuncs.com"]}}
    document = json.dumps({"Version": "1", "Statement": [trust]})
    role = api.call("ram", "CreateRole", {"RoleName": "blind", "AssumeRolePolicyDocument": document})["Role"]
    keys = api.call("sts", "AssumeRole", {"RoleArn": role["Arn"], "RoleSessionName": "daemon"})["Credentials"]
    for name, key in (("ID", "AccessKeyId"), ("SECRET", "AccessKeySecret")):
        monkeypatch.setenv(f"ALIBABA_CLOUD_ACCESS_KEY_{name}", keys[key])
    monkeypatch.setenv("ALIBABA_CLOUD_SECURITY_TOKEN", keys["SecurityToken"])
    blind = Cloud(Connection("cn-hangzhou", account.local.endpoint, "http"), CLUSTER)
    for _ in range(2):
        with pytest.raises(CloudError) as caught:
            blind.instances()
        assert caught.value.failure is Failure.DENIED
    assert len(account.names()) == 1


def test_an_empty_cluster_is_asked_about_once(account: Account) -> None:
    before = len(account.local.calls("DescribeInstances"))
    assert [account.cloud.instances() for _ in range(3)] == [(), (), ()]
    assert len(account.local.calls("DescribeInstances")) == before + 4  # one of them a dry run


def test_the_role_is_allowed_what_is_called(account: Account) -> None:
    start = len(account.local.calls()) and account.local.calls()[-1].get("number", 0)
    ids = account.buy(1)
    account.cloud.extend(ids, 7200, account.now)
    assert account.cloud.console(ids[0]) == ""  # this cloud has no real hosts
    account.cloud.delete(ids)
    account.names()
    mine = {
        "RunInstances", "ModifyInstanceAutoReleaseTime", "DeleteInstances", "DescribeInstances",
        "GetInstanceConsoleOutput",
    }  # fmt: skip
    called = {call["action"] for call in account.local.calls(since=start)}
    assert mine <= called
    assert {f"ecs:{action}" for action in mine} <= set(ACTIONS)
    # RunInstances with tags asks for TagResources, too; jobs above one batch have the quota looked at.
    assert set(ACTIONS) == {f"ecs:{action}" for action in mine} | {
        "ecs:TagResources", "ecs:DescribeAccountAttributes",
    }  # fmt: skip


class Attributes(BaseHTTPRequestHandler):
    """Answers DescribeAccountAttributes as its reference page shows."""

    answer: ClassVar[dict[str, Any]] = {}
    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        Attributes.asked.append(self.path + self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
        body = json.dumps(Attributes.answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def attribute(name: str, *values: object) -> dict[str, Any]:
    return {"AttributeName": name, "AttributeValues": {"ValueItem": [{"Value": value} for value in values]}}


@pytest.mark.parametrize(
    ("items", "left"),
    [
        (("max-postpaid-instance-vcpu-count", "500", "used-postpaid-instance-vcpu-count", "120"), 380),
        (("max-postpaid-instance-vcpu-count", "500", "used-postpaid-instance-vcpu-count", "510"), 0),
        (("max-postpaid-instance-vcpu-count", "500"), None),
        (("max-postpaid-instance-vcpu-count", "many", "used-postpaid-instance-vcpu-count", "1"), None),
        (("max-spot-instance-vcpu-count", "500", "used-spot-instance-vcpu-count", "1"), None),
        ((), None),
    ],
)
def test_the_quota_that_is_left(monkeypatch: pytest.MonkeyPatch, items: tuple[str, ...], left: int | None) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "secret")
    pairs = zip(items[::2], items[1::2], strict=True)
    Attributes.asked.clear()
    Attributes.answer = {"AccountAttributeItems": {"AccountAttributeItem": [attribute(*pair) for pair in pairs]}}
    with ThreadingHTTPServer(("127.0.0.1", 0), Attributes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cloud = Cloud(Connection("cn-hangzhou", f"127.0.0.1:{server.server_address[1]}", "http"), CLUSTER)
        assert cloud.quota_left("payg") == left
        server.shutdown()
    assert "max-postpaid-instance-vcpu-count" in Attributes.asked[0]


def test_a_cloud_that_does_not_tell_its_quota_says_so(account: Account) -> None:
    try:
        assert account.cloud.quota_left("payg") is None or account.cloud.quota_left("payg") > 0
    except CloudError as error:
        assert error.failure not in (Failure.QUOTA, Failure.STOCK)


def sweep(account: Account, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hpc.elastic.sweep", "--cluster", CLUSTER, "--region", "cn-hangzhou", *options],
        env={**os.environ}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_sweep_leaves_nothing(account: Account) -> None:
    account.buy(*range(1, 6))
    done = sweep(account, "--endpoint", account.local.endpoint)
    assert (done.returncode, done.stdout) == (0, "5 compute nodes of cfd released\n"), done.stderr
    assert account.names() == {}
    again = sweep(account, "--endpoint", account.local.endpoint)
    assert (again.returncode, again.stdout) == (0, "0 compute nodes of cfd released\n")


def test_sweep_says_what_hinders_it(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "wrong")
    done = sweep(account, "--endpoint", account.local.endpoint)
    assert done.returncode == 2 and done.stderr.startswith("HPC930: ") and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("OperationDenied.NoStock", Failure.STOCK),
        ("Zone.NotOnSale", Failure.STOCK),
        ("InvalidResourceType.NotSupported", Failure.STOCK),
        ("InstanceType.Offline", Failure.STOCK),
        ("OperationDenied.PaygNotAvailable", Failure.STOCK),
        ("QuotaExceed.ElasticQuota", Failure.QUOTA),
        ("QuotaExceeded.PostpaidDataDiskCapacity", Failure.QUOTA),
        ("QuotaExceeded.PrivateIpAddress", Failure.ADDRESSES),
        ("Throttling", Failure.THROTTLED),
        ("Throttling.User", Failure.THROTTLED),
        ("Throttling.Resource", Failure.THROTTLED),
        ("InternalError", Failure.PASSING),
        ("OperationConflict", Failure.PASSING),
        ("ServiceUnavailable", Failure.PASSING),
        ("IncorrectInstanceStatus.Initializing", Failure.PASSING),
        ("InvalidUser.PassRoleForbidden", Failure.DENIED),
        ("NoAnswer", Failure.PASSING),
        ("InvalidRamRole.NotFound", Failure.REFUSED),
        ("OperationDenied.BidOwnResource", Failure.REFUSED),
        ("DeploymentSet.NotFound", Failure.REFUSED),
        ("OperationDenied.FlavorNotSupported", Failure.STOCK),
        ("PaymentMethodNotFound", Failure.DENIED),
        ("Forbidden.RAM", Failure.DENIED),
        ("NoCredentials", Failure.DENIED),
        ("SignatureDoesNotMatch", Failure.DENIED),
        ("InvalidSecurityToken.Expired", Failure.DENIED),
        ("SomethingNew", Failure.REFUSED),
    ],
)
def test_classes_of_errors(code: str, failure: Failure) -> None:
    assert classify(code) is failure


@pytest.mark.parametrize(
    ("code", "gone"),
    [("InvalidInstanceId.NotFound", True), ("NoSuchResource", True), ("IncorrectInstanceStatus", False)],
)
def test_codes_of_instances_that_are_not_there(code: str, gone: bool) -> None:
    assert is_gone(code) is gone


def test_release_times_are_never_too_near() -> None:
    now = datetime(2026, 12, 1, 23, 59, 30, tzinfo=UTC)
    assert release_time(now, 60) == "2026-12-02T00:31:00Z"
    assert release_time(now, 7200) == "2026-12-02T01:59:30Z"
