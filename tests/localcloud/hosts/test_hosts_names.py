"""What the resolver of a VPC says, and who may mount what."""

from __future__ import annotations

import pytest
from dnslib import QTYPE, RCODE, DNSRecord

from localcloud.contracts import MountTarget
from localcloud.hosts import addresses
from localcloud.hosts.dns import Zone, _Resolver
from localcloud.hosts.nas import Grant, MountRefusedError, grant

ZONE = Zone(
    hosts={"node-1": "10.16.0.5", "login-0": "10.16.0.6"},
    nas_domains=frozenset({"1a2b-abc.cn-hangzhou.nas.aliyuncs.com"}),
    outside=frozenset({"10.16.0.6"}),
)


class Client:
    def __init__(self, address: str) -> None:
        self.client_address = (address, 4242)


def ask(name: str, kind: str = "A", client: str = "10.16.0.5") -> DNSRecord:
    return _Resolver(lambda: ZONE, lambda: ()).resolve(DNSRecord.question(name, kind), Client(client))


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("node-1", "10.16.0.5"),
        ("NODE-1.", "10.16.0.5"),
        ("1a2b-abc.cn-hangzhou.nas.aliyuncs.com", addresses.NAS),
        ("mirrors.cloud.aliyuncs.com", addresses.MIRROR),
        ("ecs.cn-hangzhou.aliyuncs.com", addresses.API),
        ("ecs-cn-hangzhou.aliyuncs.com", addresses.API),  # where the ECS SDK for Python goes by itself
        ("ecs-vpc.cn-hangzhou.aliyuncs.com", addresses.API),
        ("ecs.aliyuncs.com", addresses.API),
        ("sts-vpc.cn-hangzhou.aliyuncs.com", addresses.API),
        ("nas.cn-beijing.aliyuncs.com", addresses.API),
    ],
)
def test_names_of_the_cloud(name: str, address: str) -> None:
    assert [str(record.rdata) for record in ask(name).rr] == [address]


def test_known_name_without_such_a_record_is_empty_and_not_missing() -> None:
    reply = ask("node-1", "AAAA")
    assert (reply.header.rcode, reply.rr) == (RCODE.NOERROR, [])


def test_reverse_name() -> None:
    reply = ask("5.0.16.10.in-addr.arpa", "PTR")
    assert (str(reply.rr[0].rdata), reply.rr[0].rtype) == ("node-1.", QTYPE.PTR)
    assert ask("9.0.16.10.in-addr.arpa", "PTR").header.rcode == RCODE.NXDOMAIN


@pytest.mark.parametrize("name", ["nobody", "other.nas.aliyuncs.com", "example.com", "evil-ecs.aliyuncs.com.example"])
def test_other_names_do_not_exist(name: str) -> None:
    assert ask(name).header.rcode == RCODE.NXDOMAIN


def test_no_resolver_of_the_machine_is_a_server_failure() -> None:
    assert ask("example.com", client="10.16.0.6").header.rcode == RCODE.SERVFAIL
    assert ask("nobody.aliyuncs.com", client="10.16.0.6").header.rcode == RCODE.NXDOMAIN


TARGETS = (
    MountTarget("general", "fs-g", "vpc-a", "/", ("10.16.0.0/28", "10.16.1.0/24"), ("10.16.1.0/24",)),
    MountTarget("extreme", "fs-x", "vpc-a", "/share", ("0.0.0.0/0",)),
    MountTarget("elsewhere", "fs-e", "vpc-b", "/", ("0.0.0.0/0",)),
)


@pytest.mark.parametrize(
    ("client", "source", "granted"),
    [
        ("10.16.0.5", "general:/", Grant("fs-g", "", False)),
        ("10.16.0.5", "general:", Grant("fs-g", "", False)),
        ("10.16.0.5", "GENERAL.:/home/ada", Grant("fs-g", "home/ada", False)),
        ("10.16.1.5", "general:/", Grant("fs-g", "", True)),
        ("10.16.9.9", "extreme:/share", Grant("fs-x", "", False)),
        ("10.16.9.9", "extreme:/share/a/b/", Grant("fs-x", "a/b", False)),
    ],
)
def test_granted(client: str, source: str, granted: Grant) -> None:
    assert grant(TARGETS, "vpc-a", client, source) == granted


@pytest.mark.parametrize(
    ("client", "source", "message"),
    [
        ("10.16.0.16", "general:/", "access denied"),
        ("10.16.0.5", "elsewhere:/", "not known"),
        ("10.16.0.5", "extreme:/", "No such file"),
        ("10.16.0.5", "extreme:/shared", "No such file"),
        ("10.16.0.5", "extreme:/share/../x", "No such file"),
        ("10.16.0.5", "", "not known"),
    ],
)
def test_refused(client: str, source: str, message: str) -> None:
    with pytest.raises(MountRefusedError, match=message):
        grant(TARGETS, "vpc-a", client, source)
