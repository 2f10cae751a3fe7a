"""Packet filters as text: one golden file for a VPC with everything in it, and the edges one by one."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from localcloud.contracts import Eip, Host, Network, SecurityGroup, SecurityRule, VSwitchNet
from localcloud.hosts.filters import hosts_outside, render_machine, render_vpc
from localcloud.hosts.naming import Names

GOLDEN = Path(__file__).parent / "golden"


def host(number: int, *groups: str, vpc: str = "vpc-a", vswitch: str = "vsw-a") -> Host:
    return Host(
        f"i-{number:03d}", f"node-{number}", vpc, vswitch, f"10.16.0.{number}", f"00:16:3e:00:00:{number:02x}",
        groups, 2, 4096, "debian_12", f"d-{number:03d}",
    )  # fmt: skip


def rule(
    direction: str, protocol: str, ports: str, peer: str, *, accept: bool = True, priority: int = 1
) -> SecurityRule:
    cidr, group = (None, peer) if peer.startswith("sg-") else (peer, None)
    return SecurityRule(direction, protocol, ports, cidr, group, accept, priority)


NETWORK = Network(
    vswitches=(
        VSwitchNet("vsw-a", "vpc-a", "cn-hangzhou-j", "10.16.0.0/20"),
        VSwitchNet("vsw-b", "vpc-a", "cn-hangzhou-k", "10.16.16.0/20"),
        VSwitchNet("vsw-z", "vpc-z", "cn-hangzhou-j", "10.16.0.0/20"),
    ),
    security_groups=(
        SecurityGroup(
            "sg-cluster",
            "vpc-a",
            True,
            (
                rule("ingress", "tcp", "30000/31000", "sg-cluster", priority=2),
                rule("ingress", "icmp", "-1/-1", "10.16.0.0/16"),
                rule("ingress", "udp", "-1/-1", "10.16.0.0/16", priority=5),
                rule("egress", "tcp", "25/25", "0.0.0.0/0", accept=False),
                rule("egress", "all", "-1/-1", "0.0.0.0/0", priority=100),
            ),
        ),
        SecurityGroup(
            "sg-login",
            "vpc-a",
            False,
            (
                rule("ingress", "tcp", "22/22", "203.0.113.0/24"),
                rule("ingress", "tcp", "22/22", "203.0.113.7/32", accept=False),
                rule("ingress", "all", "-1/-1", "sg-elsewhere"),
            ),
        ),
        SecurityGroup("sg-z", "vpc-z", True, ()),
    ),
    eips=(Eip("eip-1", "198.18.0.1", "i-001"), Eip("eip-2", "198.18.0.2", None), Eip("eip-3", "198.18.0.3", "i-009")),
    nat_vswitches=("vsw-b",),
    mount_targets=(),
    hosts=(
        host(2, "sg-cluster"),
        host(1, "sg-login", "sg-cluster"),
        host(3, "sg-cluster"),
        host(9, "sg-z", vpc="vpc-z", vswitch="vsw-z"),
    ),
)


def test_vpc_is_as_the_golden_file() -> None:
    assert render_vpc(NETWORK, "vpc-a", "up0", "169.254.80.2") == (GOLDEN / "vpc.nft").read_text()


def test_machine_is_as_the_golden_file() -> None:
    assert render_machine(Names("0a1b2")) == (GOLDEN / "machine.nft").read_text()


def test_order_of_hosts_and_groups_does_not_matter() -> None:
    turned = replace(
        NETWORK,
        hosts=tuple(reversed(NETWORK.hosts)),
        security_groups=tuple(reversed(NETWORK.security_groups)),
        eips=tuple(reversed(NETWORK.eips)),
    )
    assert render_vpc(turned, "vpc-a", "up0", "169.254.80.2") == render_vpc(NETWORK, "vpc-a", "up0", "169.254.80.2")


def test_at_equal_priority_drop_comes_first() -> None:
    lines = render_vpc(NETWORK, "vpc-a", "up0", "169.254.80.2").splitlines()
    drop = next(n for n, line in enumerate(lines) if "203.0.113.7/32" in line)
    accept = next(n for n, line in enumerate(lines) if "203.0.113.0/24 tcp dport 22 accept" in line)
    assert lines[drop].strip() == "ip saddr 203.0.113.7/32 tcp dport 22 drop"
    assert drop < accept


def test_rule_of_a_group_of_another_vpc_matches_nothing() -> None:
    assert "elsewhere" not in render_vpc(NETWORK, "vpc-a", "up0", "169.254.80.2")


def test_number_of_chains_follows_groups_not_hosts() -> None:
    crowd = tuple(replace(host(n, "sg-cluster"), private_ip=f"10.16.{n // 200}.{n % 200}") for n in range(100, 1100))
    text = render_vpc(replace(NETWORK, hosts=crowd), "vpc-a", "up0", "169.254.80.2")
    assert text.count("chain in") == 2  # in0, and input
    assert text.count(" : jump in0") == 1000


def test_empty_network_drops_everything() -> None:
    text = render_vpc(Network((), (), (), (), (), ()), "vpc-a", "up0", "169.254.80.2")
    assert "policy drop" in text
    assert "elements" not in text


def test_hosts_outside_are_those_with_nat_or_an_elastic_address() -> None:
    assert hosts_outside(NETWORK) == {"i-001", "i-009"}
    in_b = replace(NETWORK, hosts=(*NETWORK.hosts, host(4, "sg-cluster", vswitch="vsw-b")))
    assert hosts_outside(in_b) == {"i-001", "i-009", "i-004"}


@pytest.mark.hosts
@pytest.mark.parametrize(
    "text",
    [
        render_vpc(NETWORK, "vpc-a", "up0", "169.254.80.2"),
        render_vpc(Network((), (), (), (), (), ()), "vpc-a", "up0", "169.254.80.2"),
        render_machine(Names("0a1b2")),
    ],
)
def test_the_kernel_takes_it_twice(hosts_possible: None, text: str) -> None:
    # In a network namespace of its own, which goes with the command.
    command = ["unshare", "--net", "sh", "-c", 'printf %s "$0" | nft -f - && printf %s "$0" | nft -f -', text]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
