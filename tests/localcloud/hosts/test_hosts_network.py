"""Who reaches whom: security groups, VPCs, elastic addresses, and that nothing leaves the machine."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest
from host_cloud import SSH_RULE, Cloud, wait_for

from localcloud.contracts import SecurityGroup, SecurityRule
from localcloud.hosts import addresses, namespaces

pytestmark = pytest.mark.hosts

LOGIN, NODE, OTHER = "198.18.6.10", "198.18.6.11", "198.18.6.12"
LISTEN = (
    b"#!/bin/sh\nfor port in 6817 6818 6819; do\n"
    b"systemd-run --quiet python3 -m http.server --directory /srv $port\ndone\n"
)


@pytest.fixture(scope="module")
def net(cloud: Cloud) -> Iterator[Cloud]:
    """Two VPCs with the same range; in the first, `sg-node` lets members of `sg-net` to port 6817."""
    cloud.add_vpc("net", "10.98.0.0/24")
    cloud.add_vpc("twin", "10.98.0.0/24", SecurityRule("ingress", "all", "-1/-1", "0.0.0.0/0", None, True, 100))
    rules = (
        SSH_RULE,
        SecurityRule("ingress", "tcp", "6817/6817", None, "sg-net", True, 1),
        SecurityRule("ingress", "tcp", "6819/6819", "0.0.0.0/0", None, False, 1),
        SecurityRule("ingress", "tcp", "6819/6819", "0.0.0.0/0", None, True, 2),
        SecurityRule("egress", "tcp", "6819/6819", "10.98.0.0/24", None, False, 1),
    )
    group = SecurityGroup("sg-node", "vpc-net", False, rules)
    cloud.change(security_groups=(*cloud.network.security_groups, group))
    cloud.add_host("login-0", "vpc-net", "10.98.0.10", eip=LOGIN, user_data=LISTEN)
    cloud.add_host("node-1", "vpc-net", "10.98.0.11", eip=NODE, user_data=LISTEN, groups=("sg-node",))
    cloud.add_host("other", "vpc-twin", "10.98.0.12", eip=OTHER, user_data=LISTEN)
    for address in (LOGIN, NODE, OTHER):
        cloud.wait_ssh(address)
    for address in (LOGIN, NODE, OTHER):
        cloud.ssh(address, "cloud-init status --wait")
    wait_for(lambda: reaches(cloud, OTHER, "10.98.0.12", 6818), "the listeners")
    yield cloud


def reaches(cloud: Cloud, source: str, address: str, port: int) -> bool:
    script = f"timeout 2 bash -c '</dev/tcp/{address}/{port}' 2>/dev/null; echo $?"
    return cloud.ssh(source, script) == "0"


def reached_from_machine(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def test_member_rule_opens_and_closed_port_is_closed(net: Cloud) -> None:
    assert reaches(net, LOGIN, "10.98.0.11", 6817)
    assert not reaches(net, LOGIN, "10.98.0.11", 6818)
    assert reaches(net, NODE, "127.0.0.1", 6818)


def test_drop_beats_accept_of_lower_priority(net: Cloud) -> None:
    assert not reaches(net, LOGIN, "10.98.0.11", 6819)


def test_egress_rule_drops(net: Cloud) -> None:
    # login-0 is in a group with inner access only for members, node-1 is no member of it.
    assert not reaches(net, NODE, "10.98.0.10", 6817)
    inside = SecurityRule("ingress", "all", "-1/-1", "10.98.0.0/24", None, True, 1)
    before = net.network.security_groups
    opened = tuple(replace(g, rules=(*g.rules, inside)) if g.group_id == "sg-net" else g for g in before)
    net.change(security_groups=opened)
    try:
        assert reaches(net, NODE, "10.98.0.10", 6817)
        assert not reaches(net, NODE, "10.98.0.10", 6819)
    finally:
        net.change(security_groups=before)
    assert not reaches(net, NODE, "10.98.0.10", 6817)


def test_machine_reaches_elastic_address_as_the_rules_say(net: Cloud) -> None:
    assert reached_from_machine(LOGIN, 22)
    assert not reached_from_machine(LOGIN, 6817)
    assert reached_from_machine(OTHER, 6818)


def test_vpcs_with_the_same_range_are_apart(net: Cloud) -> None:
    assert not reaches(net, LOGIN, "10.98.0.12", 6818)
    assert not reaches(net, OTHER, "10.98.0.10", 22)
    assert reaches(net, OTHER, "10.98.0.12", 6818)


def test_elastic_address_of_another_vpc_is_reached_over_the_machine(net: Cloud) -> None:
    assert reaches(net, LOGIN, OTHER, 6818)
    assert not reaches(net, OTHER, LOGIN, 6817)


def test_host_cannot_speak_with_another_hosts_address(net: Cloud) -> None:
    asked = "curl -s -m 2 -o /dev/null --interface 10.98.0.11 http://100.100.100.200/latest/; echo $?"
    net.ssh(LOGIN, "ip addr add 10.98.0.11/32 dev eth0")
    try:
        assert net.ssh(LOGIN, asked) == "28"
        assert net.ssh(NODE, asked) == "0"
    finally:
        net.ssh(LOGIN, "ip addr del 10.98.0.11/32 dev eth0")


def test_hosts_do_not_reach_the_machine(net: Cloud) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104
        port = server.getsockname()[1]
        for address in (addresses.LINK_MACHINE, addresses.MACHINE):
            assert not reaches(net, LOGIN, address, port)


def test_no_packet_for_the_cloud_leaves_the_machine(net: Cloud) -> None:
    # Nor for addresses that no host has, and services.
    for address in ("10.98.0.10", "10.98.0.99", "198.18.200.1", *addresses.SERVICES):
        done = subprocess.run(["ip", "route", "get", address], capture_output=True, text=True)
        assert "No route to host" in done.stderr, address
        with pytest.raises(OSError, match=r"unreachable|No route"):
            socket.create_connection((address, 22), timeout=2)


def test_nothing_of_the_cloud_is_seen_on_the_machines_own_links(net: Cloud) -> None:
    ranges = "{ 10.98.0.0/24, 198.18.0.0/15, 100.100.100.200, 100.100.2.136 }"
    rules = (
        "table ip alihpctest { counter seen { }; chain c { type filter hook postrouting priority 300;"
        f' oifname != {{ "lo" }} oifname != "alihpc*" ip daddr {ranges} counter name seen;'
        f' oifname != {{ "lo" }} oifname != "alihpc*" ip saddr {ranges} counter name seen; }}; }}'
    )
    subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
    try:
        for target in ("10.98.0.99", "198.18.200.1", "100.100.100.200"):
            packets = f"ping -c 1 -W 1 {target} >/dev/null; timeout 1 bash -c '</dev/tcp/{target}/81'"
            net.ssh(LOGIN, packets, check=False)
            reached_from_machine(target, 81)
        command = ["nft", "list", "counter", "ip", "alihpctest", "seen"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "packets 0 " in listed
    finally:
        subprocess.run(["nft", "delete", "table", "ip", "alihpctest"], check=True)


def test_elastic_address_without_an_instance_is_unreachable(net: Cloud) -> None:
    before = net.network.eips
    net.change(eips=tuple(replace(eip, instance_id=None) if eip.address == OTHER else eip for eip in before))
    try:
        with pytest.raises(OSError, match=r"unreachable|No route"):
            socket.create_connection((OTHER, 22), timeout=2)
    finally:
        net.change(eips=before)
    assert reached_from_machine(OTHER, 22)


def test_namespace_of_a_vpc_has_no_route_to_other_private_networks(net: Cloud) -> None:
    name = net.backend._networks.namespace("vpc-net")
    done = namespaces.inside(
        name, lambda: subprocess.run(["ip", "route", "get", "10.5.5.5"], capture_output=True, text=True)
    )
    assert "No route to host" in done.stderr


def test_removed_vpc_leaves_nothing(net: Cloud) -> None:
    net.add_vpc("gone", "10.96.0.0/24")
    assert namespaces.exists(net.backend._networks.namespace("vpc-gone"))
    net.change(
        vswitches=tuple(v for v in net.network.vswitches if v.vpc_id != "vpc-gone"),
        security_groups=tuple(g for g in net.network.security_groups if g.vpc_id != "vpc-gone"),
    )
    assert not namespaces.exists(net.backend._networks.namespace("vpc-gone"))
    done = subprocess.run(["ip", "route", "show", "10.96.0.0/24"], capture_output=True, text=True)
    assert done.stdout == ""
