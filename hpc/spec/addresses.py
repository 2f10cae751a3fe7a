"""How the address range of a VPC is shared out to the vSwitches of its zones."""

from __future__ import annotations

from ipaddress import IPv4Network, collapse_addresses

from hpc.spec.cluster import ClusterSpec

#: Addresses of a vSwitch that cannot be given to instances: the first and the last three
#: (https://www.alibabacloud.com/help/en/vpc/user-guide/create-and-manage-a-vswitch).
RESERVED_PER_VSWITCH = 4

#: Prefix lengths that a vSwitch can have (same source).
LARGEST_VSWITCH, SMALLEST_VSWITCH = 16, 29

#: Addresses kept free in each zone beside the pools' maxima: mount targets, NAT, management, login, replacements.
HEADROOM = 32


def usable_addresses(network: IPv4Network) -> int:
    """Number of addresses that instances can get in a vSwitch of this range."""
    return max(0, network.num_addresses - RESERVED_PER_VSWITCH)


def vswitch_cidrs(spec: ClusterSpec) -> dict[str, IPv4Network]:
    """Range of each zone's vSwitch, in the order of the zones.

    A zone named in `network.vswitches` has that range. Of the others each gets half of the largest block that is still
    free in `network.cidr` (at most a /16, at least a /29): the first, preferred zone the most, and a zone that is
    added behind the others changes nothing for them, whose vSwitches would have to be replaced. A zone for which
    nothing is left is missing (the rules report it).
    """
    given = spec.network.vswitches
    free = [spec.network.cidr]
    for taken in given.values():
        free = [part for block in free for part in _without(block, taken)]
    free = list(collapse_addresses(free))
    cidrs: dict[str, IPv4Network] = {}
    for zone in spec.zones:
        if zone in given:
            cidrs[zone] = given[zone]
        elif (share := _share(free)) is not None:
            cidrs[zone] = share
            free = [part for block in free for part in _without(block, share)]
    return cidrs


def _without(block: IPv4Network, taken: IPv4Network) -> list[IPv4Network]:
    if not block.overlaps(taken):
        return [block]
    if taken.prefixlen <= block.prefixlen:
        return []
    return list(block.address_exclude(taken))


def _share(free: list[IPv4Network]) -> IPv4Network | None:
    """First half of the largest free block, within the sizes of a vSwitch (/16 to /29)."""
    large_enough = [block for block in free if block.prefixlen <= SMALLEST_VSWITCH]
    if not large_enough:
        return None
    largest = min(large_enough, key=lambda block: (block.prefixlen, block.network_address))
    prefix = min(max(largest.prefixlen + 1, LARGEST_VSWITCH), SMALLEST_VSWITCH)
    return next(largest.subnets(new_prefix=prefix))
