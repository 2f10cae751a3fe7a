"""Rules on address ranges: VPC, vSwitches, what exists already."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from hpc.findings import Finding
from hpc.spec.addresses import (
    HEADROOM,
    LARGEST_VSWITCH,
    RESERVED_PER_VSWITCH,
    SMALLEST_VSWITCH,
    usable_addresses,
    vswitch_cidrs,
)
from hpc.spec.codes import finding
from hpc.spec.pool import Interconnect
from hpc.spec.rules.context import Context, listed

#: Where VPCs may lie (https://www.alibabacloud.com/help/en/vpc/user-guide/create-and-manage-a-vpc).
PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))

#: Ranges that no VPC can have, not even an existing one, and why.
NEVER = {
    IPv4Network("100.64.0.0/10"): "the cloud's own services, the metadata service among them",
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("169.254.0.0/16"): "link-local addresses",
    IPv4Network("224.0.0.0/4"): "multicast",
}

_VPC_PREFIX = range(8, 29)
_VSWITCH_PREFIX = range(LARGEST_VSWITCH, SMALLEST_VSWITCH + 1)


def vpc_range(context: Context) -> Iterator[Finding]:
    """HPC201, HPC202: the VPC's range is one that a VPC can have."""
    network = context.spec.network
    never = next((reason for taken, reason in NEVER.items() if network.cidr.overlaps(taken)), None)
    # An existing VPC may have a public range, which only the cloud's support grants.
    if never and not any(network.cidr.subnet_of(block) for block in PRIVATE):
        yield finding("HPC201", "network.cidr", str(network.cidr), f"{network.cidr} touches addresses of: {never}")
    elif not network.vpc_id and not any(network.cidr.subnet_of(block) for block in PRIVATE):
        text = f"{network.cidr} is not within {listed(PRIVATE)}"
        yield finding("HPC201", "network.cidr", str(network.cidr), text)
    if network.cidr.prefixlen not in _VPC_PREFIX:
        text = f"{network.cidr} has the prefix /{network.cidr.prefixlen}"
        yield finding("HPC202", "network.cidr", str(network.cidr), text)


def vswitch_ranges(context: Context) -> Iterator[Finding]:
    """HPC203, HPC204, HPC205: given vSwitch ranges lie in the VPC, beside each other, and have a possible size."""
    network = context.spec.network
    given = list(network.vswitches.items())
    for index, (zone, cidr) in enumerate(given):
        path = f"network.vswitches.{zone}"
        if not cidr.subnet_of(network.cidr):
            yield finding("HPC203", path, str(cidr), f"{cidr} of {zone} is not within {network.cidr}")
        if cidr.prefixlen not in _VSWITCH_PREFIX:
            yield finding("HPC205", path, str(cidr), f"{cidr} of {zone} has the prefix /{cidr.prefixlen}")
        for other, taken in given[:index]:
            if cidr.overlaps(taken):
                yield finding("HPC204", path, str(cidr), f"{cidr} of {zone} overlaps {taken} of {other}")


def vswitch_zones(context: Context) -> Iterator[Finding]:
    """HPC206: vSwitches are in zones of the cluster."""
    network = context.spec.network
    for key, zones in (("vswitches", network.vswitches), ("vswitch_ids", network.vswitch_ids)):
        for zone, value in zones.items():
            if zone not in context.spec.zones:
                path = f"network.{key}.{zone}"
                yield finding("HPC206", path, str(value), f"the zone {zone} is not among the cluster's zones")


def zone_demand(context: Context, zone: str) -> tuple[int, list[str]]:
    """Addresses that a zone's vSwitch must have free, and the pools that count in it.

    Every node of every pool that may use the zone can end up there. Management and login nodes, mount targets, the NAT
    gateway and nodes that are being replaced share the reserve, which grows with the number of login nodes.
    """
    pools = [pool for pool in context.spec.pools if zone in context.spec.pool_zones(pool)]
    extra = max(0, context.spec.login.count + 2 - HEADROOM // 2)
    return sum(pool.max for pool in pools) + HEADROOM + extra, [pool.name for pool in pools]


def vswitch_room(context: Context) -> Iterator[Finding]:
    """HPC207, HPC208, HPC212: each zone's vSwitch holds what may end up in it."""
    network, zones = context.spec.network, tuple(dict.fromkeys(context.spec.zones))
    cidrs = vswitch_cidrs(context.spec)
    for index, zone in enumerate(zones):
        needed, pools = zone_demand(context, zone)
        if zone in network.vswitch_ids and zone not in network.vswitches:
            text = (
                f"the range of {network.vswitch_ids[zone]} is not known; {needed} free addresses are needed in {zone}"
            )
            yield finding("HPC212", f"network.vswitch_ids.{zone}", network.vswitch_ids[zone], text)
            continue
        if zone not in cidrs:
            text = f"{network.cidr} has no room left for a vSwitch in {zone}"
            yield finding("HPC208", f"zones[{index}]", zone, text)
            continue
        free = usable_addresses(cidrs[zone])
        if free < needed:
            given = zone in network.vswitches
            prefix = 32 - (needed + RESERVED_PER_VSWITCH - 1).bit_length()
            text = (
                f"the vSwitch of {zone} ({cidrs[zone]}) has {free} addresses, but {needed} are needed: the maxima of "
                f"{', '.join(pools) or 'no pool'} and a reserve of {HEADROOM}"
            )
            wider = "" if given or network.cidr.prefixlen <= prefix else f"widen network.cidr to a /{prefix} at least, "
            fix = (
                f"{wider}give network.vswitches.{zone} a /{prefix} or larger, or lower the maxima"
                if prefix >= LARGEST_VSWITCH
                else None
            )
            path = f"network.vswitches.{zone}" if given else "network.cidr"
            yield finding("HPC207", path, str(cidrs[zone] if given else network.cidr), text, fix)


def existing_network(context: Context) -> Iterator[Finding]:
    """HPC209, HPC211, HPC213: what goes together where the VPC or its vSwitches exist already."""
    network = context.spec.network
    if not network.vpc_id:
        for zone, vswitch in network.vswitch_ids.items():
            text = f"{vswitch} is given, but not the VPC it is in"
            yield finding("HPC209", f"network.vswitch_ids.{zone}", vswitch, text)
        return
    if "cidr" not in network.model_fields_set:
        text = f"{network.vpc_id} is given, but not its address range"
        yield finding("HPC213", "network.vpc_id", network.vpc_id, text)
    for zone in dict.fromkeys(context.spec.zones):
        if zone not in network.vswitch_ids and zone not in network.vswitches:
            text = f"the vSwitch of {zone} would be made in {network.vpc_id} with a computed range"
            yield finding(
                "HPC211",
                "network.vpc_id",
                network.vpc_id,
                text,
                f"give network.vswitches.{zone} or network.vswitch_ids.{zone}",
            )


def ipv6_without_erdma(context: Context) -> Iterator[Finding]:
    """HPC214: no IPv6 where interfaces are elastic RDMA ones."""
    pools = [pool.name for pool in context.spec.pools if pool.interconnect is Interconnect.ERDMA]
    if context.spec.network.ipv6 and pools:
        text = f"IPv6 is on, but the interfaces of {listed(pools)} are elastic RDMA ones, which cannot have IPv6"
        yield finding("HPC214", "network.ipv6", True, text)


RULES = (vpc_range, vswitch_ranges, vswitch_zones, vswitch_room, existing_network, ipv6_without_erdma)
