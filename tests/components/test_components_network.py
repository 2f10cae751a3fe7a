from __future__ import annotations

from ipaddress import ip_network

import pytest
from registering import STACKS, changed, registered, small, stack_values

from components.recording import unwrap
from components.storage import mount_cidrs
from hpc.spec.cluster import ClusterSpec

#: Most ports that one rule may open.
WIDEST = 1001


def test_a_vpc_with_a_vswitch_in_each_zone() -> None:
    done = registered(small())
    (vpc,) = done.of("vpc/network:Network")
    assert vpc.inputs["cidrBlock"] == "10.16.0.0/16"
    assert {s.inputs["zoneId"]: s.inputs["cidrBlock"] for s in done.of(":Switch")} == {
        "cn-hangzhou-j": "10.16.0.0/17",
        "cn-hangzhou-k": "10.16.128.0/18",
    }
    assert "enableIpv6" not in vpc.inputs
    assert not done.of(":NatGateway")


def test_ipv6_only_where_asked_for() -> None:
    done = registered(
        small(network={"ipv6": True}, pools=[{"name": "a", "instance_types": ["ecs.c8i.large"], "interconnect": "tcp"}])
    )
    assert done.of("vpc/network:Network")[0].inputs["enableIpv6"] is True
    assert sorted(s.inputs["ipv6CidrBlockMask"] for s in done.of(":Switch")) == [0, 1]


def test_nat_gives_every_vswitch_a_way_out_by_one_address() -> None:
    done = registered(small(network={"nat": True}))
    (gateway,) = done.of(":NatGateway")
    entries = done.of(":SnatEntry")
    assert {entry.inputs["sourceVswitchId"] for entry in entries} == {f"{s.name}-id" for s in done.of(":Switch")}
    assert {entry.inputs["snatIp"] for entry in entries} == {"198.51.100.7"}
    binding = done.named("c-network-nat-address-binding")
    assert binding.inputs["instanceId"] == f"{gateway.name}-id"
    # An entry needs the address to be bound already.
    assert all(binding.urn in entry.depends_on for entry in entries)


def test_an_existing_network_is_used_and_not_made() -> None:
    network = {
        "vpc_id": "vpc-1",
        "cidr": "10.0.0.0/8",
        "vswitch_ids": {"cn-hangzhou-j": "vsw-j", "cn-hangzhou-k": "vsw-k"},
        "vswitches": {"cn-hangzhou-j": "10.1.0.0/16"},
    }
    done = registered(small(network=network))
    assert not done.of("vpc/network:Network")
    assert not done.of(":Switch")
    assert {group.inputs["vpcId"] for group in done.of(":SecurityGroup")} == {"vpc-1"}
    assert done.named("c-management-0").inputs["vswitchId"] == "vsw-j"
    # The range of a vSwitch that is only known by its id is the VPC's as far as the program knows.
    assert mount_cidrs(ClusterSpec.model_validate(small(network=network))) == {
        "cn-hangzhou-j": "10.1.0.0/16",
        "cn-hangzhou-k": "10.0.0.0/8",
    }


def test_a_vswitch_of_ones_own_beside_made_ones() -> None:
    done = registered(
        small(
            network={
                "vpc_id": "vpc-1",
                "cidr": "10.0.0.0/8",
                "vswitch_ids": {"cn-hangzhou-j": "vsw-j"},
                "vswitches": {"cn-hangzhou-k": "10.2.0.0/16"},
            }
        )
    )
    (made,) = done.of(":Switch")
    assert (made.inputs["zoneId"], made.inputs["vpcId"]) == ("cn-hangzhou-k", "vpc-1")
    assert made.inputs["cidrBlock"] == "10.2.0.0/16"


@pytest.mark.parametrize("name", STACKS)
def test_no_rule_is_wider_than_it_has_to_be(name: str) -> None:
    values = stack_values(name)
    done = registered(values)
    allowed = {ip_network(cidr) for cidr in values["network"]["ssh_from"]}
    rules = done.of(":SecurityGroupRule")
    assert len(rules) >= 7
    for rule in rules:
        inputs = rule.inputs
        assert inputs["type"] == "ingress"
        assert inputs["ipProtocol"] in ("tcp", "udp", "icmp")
        first, last = (int(port) for port in inputs["portRange"].split("/"))
        if inputs["ipProtocol"] == "icmp":
            assert (first, last) == (-1, -1)  # icmp has no ports
        else:
            assert 1 <= first <= last <= 65535
            assert last - first + 1 <= WIDEST
        sources = [inputs[key] for key in ("cidrIp", "ipv6CidrIp", "sourceSecurityGroupId") if key in inputs]
        assert len(sources) == 1, rule.name
        if "sourceSecurityGroupId" in inputs:
            assert inputs["sourceSecurityGroupId"] == inputs["securityGroupId"]  # members only
        else:
            assert ip_network(sources[0]) in allowed
            assert inputs["portRange"] == "22/22"
            assert inputs["securityGroupId"].endswith("-login-id")


def test_members_reach_each_other_both_ways_on_pinned_ports_only() -> None:
    done = registered(small(network={"mpi_ports": "40000-40100", "srun_ports": "41000-41500"}))
    rules = {rule.name: rule for rule in done.of(":SecurityGroupRule")}
    assert {(rule.inputs["ipProtocol"], rule.inputs["portRange"]) for rule in rules.values()} == {
        ("tcp", "22/22"),
        ("tcp", "6817/6819"),
        ("tcp", "41000/41500"),
        ("tcp", "40000/40100"),
        ("udp", "40000/40100"),
        ("icmp", "-1/-1"),
    }
    # Members of a group would reach each other on all ports if the group let them.
    assert {group.inputs["innerAccessPolicy"] for group in done.of(":SecurityGroup")} == {"Drop"}


def test_nobody_logs_in_from_outside_unless_told() -> None:
    done = registered(small(network={}))
    assert not [rule for rule in done.of(":SecurityGroupRule") if "cidrIp" in rule.inputs]


def test_each_role_has_the_groups_it_needs() -> None:
    done = registered(small(management={"backup": True}))
    members, login, management = (f"c-security-{role}-id" for role in ("members", "login", "management"))
    assert done.named("c-login-0").inputs["securityGroups"] == [members, login]
    assert done.named("c-management-0").inputs["securityGroups"] == [members, management]
    database = done.named("c-security-management-database").inputs
    assert (database["portRange"], database["sourceSecurityGroupId"]) == ("3306/3306", management)
    single = registered(small())
    assert single.named("c-management-0").inputs["securityGroups"] == [members]
    assert not [rule for rule in single.of(":SecurityGroupRule") if rule.inputs["portRange"] == "3306/3306"]


def test_only_login_nodes_have_public_addresses() -> None:
    done = registered(small(login={"count": 2}))
    bound = {binding.inputs["instanceId"] for binding in done.of(":EipAssociation")}
    assert bound == {"c-login-0-id", "c-login-1-id"}
    assert {i.inputs["internetMaxBandwidthOut"] for i in done.of(":Instance")} == {0}
    assert done.named("c-pool-a-template").inputs["internetMaxBandwidthOut"] == 0
    hidden = registered(small(login={"public_ip": False}))
    assert not hidden.of(":EipAddress")
    assert unwrap(hidden.recording.outputs["login"]) == [hidden.recording.outputs["ssh"].split("@")[1]]


def test_the_backup_lives_in_another_zone() -> None:
    done = registered(small(management={"backup": True}))
    zones = [done.named(f"c-management-{index}").inputs["vswitchId"] for index in (0, 1)]
    assert zones == ["c-network-vswitch-cn-hangzhou-j-id", "c-network-vswitch-cn-hangzhou-k-id"]
    one_zone = registered(changed(small(management={"backup": True}), zones=["cn-hangzhou-j"]))
    assert one_zone.named("c-management-1").inputs["vswitchId"] == "c-network-vswitch-cn-hangzhou-j-id"
    chosen = registered(small(management={"backup": True, "zone": "cn-hangzhou-k"}))
    assert chosen.named("c-management-1").inputs["vswitchId"] == "c-network-vswitch-cn-hangzhou-j-id"
