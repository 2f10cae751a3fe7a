"""Metadata service, asked in-process."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from localcloud.contracts import Host, Metadata, RoleCredentials
from localcloud.hosts.httpd import Request, Response
from localcloud.hosts.metadata import MetadataService, Tokens, tree

HOST = Host("i-1", "node-1", "vpc-a", "vsw-a", "10.16.0.5", "00:16:3e:00:00:05", ("sg-a",), 2, 4096, "debian_12", "d-1")
PLAIN = Metadata(
    host=HOST,
    region_id="cn-hangzhou",
    zone_id="cn-hangzhou-j",
    instance_type="ecs.c8i.large",
    vpc_cidr="10.16.0.0/16",
    vswitch_cidr="10.16.0.0/20",
    user_data=b"\x1f\x8b\x00binary",
    public_keys=("ssh-ed25519 AAAA a", "ssh-ed25519 BBBB b"),
    token_required=False,
    ram_role="hpc-elastic",
    spot_termination_time=None,
    tags={"hpc:pool": "mpi"},
)


class Source:
    def __init__(self, record: Metadata) -> None:
        self.record = record

    def metadata(self, vpc_id: str, private_ip: str) -> Metadata | None:
        return self.record if (vpc_id, private_ip) == ("vpc-a", "10.16.0.5") else None

    def role_credentials(self, instance_id: str, role: str) -> RoleCredentials | None:
        if (instance_id, role) != ("i-1", "hpc-elastic"):
            return None
        moment = datetime(2030, 1, 1, 8, tzinfo=timezone(timedelta(hours=8)))
        return RoleCredentials("STS.id", "secret", "token", moment)


class Service:
    def __init__(self, record: Metadata = PLAIN, now: float = 1000.0) -> None:
        self.now = now
        tokens = Tokens(b"key", clock=lambda: self.now)
        self.service = MetadataService("vpc-a", Source(record), tokens, lambda _: "198.18.0.1")

    def ask(self, path: str, *, method: str = "GET", client: str = "10.16.0.5", **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.service.answer(Request(client, method, path, named, b""))

    def token(self, seconds: str) -> Response:
        return self.ask("/latest/api/token", method="PUT", x_aliyun_ecs_metadata_token_ttl_seconds=seconds)


def text(response: Response) -> str:
    assert isinstance(response.body, bytes)
    assert response.status == 200
    return response.body.decode()


def test_versions_and_folders() -> None:
    service = Service()
    assert text(service.ask("/")).split() == ["2016-01-01", "latest"]
    assert text(service.ask("/latest/")).split() == ["dynamic/", "maintenance/", "meta-data/", "user-data"]
    assert text(service.ask("/2016-01-01/meta-data/public-keys/")).split() == ["0/", "1/"]
    assert text(service.ask("/latest/meta-data/public-keys/1/openssh-key")) == "ssh-ed25519 BBBB b"


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("instance-id", "i-1"),
        ("hostname", "node-1"),
        ("eipv4", "198.18.0.1"),
        ("zone-id", "cn-hangzhou-j"),
        ("instance/spot/termination-time", ""),
        ("network/interfaces/macs/00:16:3e:00:00:05/netmask", "255.255.240.0"),
        ("network/interfaces/macs/00:16:3e:00:00:05/gateway", "10.16.15.253"),
        ("dns-conf/nameservers", "100.100.2.136"),
        ("tags/instance/hpc:pool", "mpi"),
    ],
)
def test_items(item: str, value: str) -> None:
    assert text(Service().ask(f"/latest/meta-data/{item}")) == value


def test_user_data_is_passed_on_byte_by_byte() -> None:
    assert Service().ask("/latest/user-data").body == b"\x1f\x8b\x00binary"
    assert Service(replace(PLAIN, user_data=b"")).ask("/latest/user-data").status == 404


def test_spot_termination_time_is_utc() -> None:
    moment = datetime(2030, 1, 5, 18, 2, tzinfo=UTC)
    record = replace(PLAIN, spot_termination_time=moment)
    assert text(Service(record).ask("/latest/meta-data/instance/spot/termination-time")) == "2030-01-05T18:02:00Z"


def test_role_credentials() -> None:
    document = json.loads(text(Service().ask("/latest/meta-data/ram/security-credentials/hpc-elastic")))
    del document["LastUpdated"]
    assert document == {
        "AccessKeyId": "STS.id",
        "AccessKeySecret": "secret",
        "SecurityToken": "token",
        "Expiration": "2030-01-01T00:00:00Z",
        "Code": "Success",
    }
    assert Service(replace(PLAIN, ram_role=None)).ask("/latest/meta-data/ram/").status == 404
    assert Service().ask("/latest/meta-data/ram/security-credentials/other").status == 404


def test_strangers_learn_nothing() -> None:
    assert Service().ask("/latest/meta-data/instance-id", client="10.16.0.6").status == 404


def test_token_mode() -> None:
    service = Service(replace(PLAIN, token_required=True))
    path = "/latest/meta-data/instance-id"
    assert service.ask(path).status == 403
    token = text(service.token("60"))
    assert text(service.ask(path, x_aliyun_ecs_metadata_token=token)) == "i-1"
    service.now += 61
    assert service.ask(path, x_aliyun_ecs_metadata_token=token).status == 403


@pytest.mark.parametrize("seconds", ["", "0", "-1", "21601", "many"])
def test_token_lifetime_out_of_range(seconds: str) -> None:
    assert Service().token(seconds).status == 400


def test_a_wrong_token_is_refused_even_where_none_is_needed() -> None:
    assert Service().ask("/latest/meta-data/instance-id", x_aliyun_ecs_metadata_token="1-2").status == 403


def test_tokens_are_for_one_instance_and_outlive_the_server() -> None:
    token = Tokens(b"key", clock=lambda: 0.0).issue("i-1", 60)
    assert Tokens(b"key", clock=lambda: 59.0).valid("i-1", token)
    assert not Tokens(b"key", clock=lambda: 59.0).valid("i-2", token)
    assert not Tokens(b"other", clock=lambda: 59.0).valid("i-1", token)
    assert not Tokens(b"key").valid("i-1", "é-x")


def test_no_keys_no_tags_no_eip() -> None:
    items = tree(replace(PLAIN, public_keys=(), tags={}), None, None)["meta-data"]
    assert not {"public-keys", "tags", "eipv4"} & items.keys()
