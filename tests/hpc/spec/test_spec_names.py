"""Names of nodes, and shares of the address range: properties over whatever pools and networks there are."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st
from spec_cases import BASE, SHIPPED

from hpc.spec.addresses import usable_addresses, vswitch_cidrs
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import (
    TAG_CLUSTER,
    TAG_POOL,
    TAG_ROLE,
    cluster_tags,
    login_names,
    management_names,
    node_name,
    parse_node_name,
)
from hpc.spec.rules import check

POOL_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,22}[a-z0-9])?", fullmatch=True)
#: Names that are easily mistaken for each other.
SIMILAR = st.sampled_from(["c", "c-1", "c-10", "c1", "c-1-1", "c-01", "c--1", "c10", "c-1-0", "c-a"])
NUMBERS = st.integers(1, 10_000)


@given(POOL_NAMES | SIMILAR, NUMBERS)
def test_node_name_parses_back(pool: str, number: int) -> None:
    assert parse_node_name(node_name(pool, number)) == (pool, number)


@given(SIMILAR | POOL_NAMES, NUMBERS, SIMILAR | POOL_NAMES, NUMBERS)
def test_no_two_nodes_have_one_name(pool: str, number: int, other_pool: str, other_number: int) -> None:
    if (pool, number) != (other_pool, other_number):
        assert node_name(pool, number) != node_name(other_pool, other_number)


@given(SIMILAR | POOL_NAMES, NUMBERS)
def test_hostlist_parser_reads_the_same_nodes(pool: str, most: int) -> None:
    nodes = NodeSet(f"{pool}-[1,{most}]")
    assert set(nodes) == {node_name(pool, 1), node_name(pool, most)}


@given(st.lists(POOL_NAMES | SIMILAR, min_size=1, max_size=6, unique=True))
def test_pools_with_similar_names_are_accepted(names: list[str]) -> None:
    pools = [{**BASE["pools"][0], "name": name, "max": 1} for name in names]
    spec = ClusterSpec.model_validate({**BASE, "pools": pools})
    assert {found.code for found in check(spec, SHIPPED)} <= {"HPC107", "HPC108"}
    if not {"login", "management"} & set(names):
        assert "HPC108" not in {found.code for found in check(spec, SHIPPED)}


@pytest.mark.parametrize(
    "name", ["", "c", "c-0", "c-01", "-1", "C-1", "c-100000", "c-1 ", "c-1\n", "1-1", "c-x", "c--"]
)
def test_other_names_are_no_nodes(name: str) -> None:
    assert parse_node_name(name) is None


def test_long_lived_hosts_have_their_own_names() -> None:
    spec = ClusterSpec.model_validate({**BASE, "management": {"backup": True}, "login": {"count": 2}})
    assert management_names(spec) == ("management-0", "management-1")
    assert login_names(spec) == ("login-0", "login-1")


def test_tags_of_the_program_win() -> None:
    spec = ClusterSpec.model_validate(
        {**BASE, "tags": {"a": "1", "b": "1"}, "pools": [{**BASE["pools"][0], "tags": {"b": "2"}}]}
    )
    assert cluster_tags(spec, "compute", "mpi") == {
        "a": "1",
        "b": "2",
        TAG_CLUSTER: "t",
        TAG_ROLE: "compute",
        TAG_POOL: "mpi",
    }


ZONES = [f"cn-hangzhou-{letter}" for letter in "bfghijk"]


@st.composite
def networks(draw: st.DrawFn) -> ClusterSpec:
    prefix = draw(st.integers(8, 28))
    base = draw(st.integers(0, 2**24 - 1))
    cidr = IPv4Network(((10 << 24 | base) >> (32 - prefix) << (32 - prefix), prefix))
    zones = draw(st.lists(st.sampled_from(ZONES), min_size=1, max_size=7, unique=True))
    given_to = {}
    for zone in draw(st.lists(st.sampled_from(zones), max_size=3, unique=True)):
        part = draw(st.integers(max(prefix, 16), 29))
        given_to[zone] = str(
            IPv4Network((int(cidr[draw(st.integers(0, cidr.num_addresses - 1))]) >> (32 - part) << (32 - part), part))
        )
    return ClusterSpec.model_validate({**BASE, "zones": zones, "network": {"cidr": str(cidr), "vswitches": given_to}})


@given(networks())
def test_computed_vswitches_lie_in_the_vpc_beside_each_other(spec: ClusterSpec) -> None:
    cidrs = vswitch_cidrs(spec)
    given_to = spec.network.vswitches
    made = [(zone, cidr) for zone, cidr in cidrs.items() if zone not in given_to]
    for zone, cidr in made:
        assert cidr.subnet_of(spec.network.cidr)
        assert 16 <= cidr.prefixlen <= 29
        assert not any(cidr.overlaps(other) for other_zone, other in cidrs.items() if other_zone != zone)
    assert [cidr.prefixlen for _, cidr in made] == sorted(cidr.prefixlen for _, cidr in made)


@given(networks(), st.sampled_from(ZONES))
def test_a_zone_added_behind_the_others_moves_none_of_them(spec: ClusterSpec, zone: str) -> None:
    more = spec.model_copy(update={"zones": (*(z for z in spec.zones if z != zone), zone)})
    if zone not in spec.zones:
        assert {z: cidr for z, cidr in vswitch_cidrs(more).items() if z != zone} == vswitch_cidrs(spec)


def test_zones_get_halves_of_what_is_left() -> None:
    zones = ["cn-hangzhou-j", "cn-hangzhou-k", "cn-hangzhou-i"]
    spec = ClusterSpec.model_validate({**BASE, "zones": zones, "network": {"cidr": "10.16.0.0/16"}})
    assert list(map(str, vswitch_cidrs(spec).values())) == ["10.16.0.0/17", "10.16.128.0/18", "10.16.192.0/19"]


def test_usable_addresses_leave_the_clouds_own() -> None:
    assert usable_addresses(IPv4Network("10.0.0.0/24")) == 252
    assert usable_addresses(IPv4Network("10.0.0.0/30")) == 0
