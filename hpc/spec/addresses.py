"""How the address range of a VPC is shared out to the vSwitches of its zones."""

from __future__ import annotations

from ipaddress import IPv4Network, collapse_addresses

from hpc.spec.cluster import ClusterSpec

#: Addresses of a vSwitch that cannot be given to instances: the first and the last three
#: (https://www.alibabacloud.com/help/en/vpc/user-guide/create-and-manage-a-vswitch).
RESERVED_PER_VSWITCH = 4

#: Addresses kept free in each zone beside the pools' maxima: mount targets, NAT, management, login, replacements.
HEADROOM = 32


def usable_addresses(network: IPv4Network) -> int:
    """Number of addresses that instances can get in a vSwitch of this range."""
    return max(0, network.num_addresses - RESERVED_PER_VSWITCH)


def vswitch_cidrs(spec: ClusterSpec) -> dict[str, IPv4Network]:
    """Range of each zone's vSwitch, in the order of the zones.

    A zone named in `network.vswitches` has that range. The others get equal shares of what is left of
    `network.cidr`, as large as fits; a zone for which nothing is left is missing (the rules report it).
    """
    given = spec.network.vswitches
    free = [spec.network.cidr]
    for taken in given.values():
        free = [part for block in free for part in _without(block, taken)]
    waiting = [zone for zone in spec.zones if zone not in given]
    shares = _shares(list(collapse_addresses(free)), len(waiting))
    made = dict(zip(waiting, shares, strict=False))
    return {zone: given.get(zone) or made[zone] for zone in spec.zones if zone in given or zone in made}


def _without(block: IPv4Network, taken: IPv4Network) -> list[IPv4Network]:
    if not block.overlaps(taken):
        return [block]
    if taken.prefixlen <= block.prefixlen:
        return []
    return list(block.address_exclude(taken))


def _shares(free: list[IPv4Network], count: int) -> list[IPv4Network]:
    """`count` blocks of one size, the largest size that fits (vSwitches are /16 to /29)."""
    if count == 0:
        return []
    for prefix in range(16, 30):
        blocks: list[IPv4Network] = []
        for block in sorted(free):
            if block.prefixlen <= prefix:
                for part in block.subnets(new_prefix=prefix):
                    blocks.append(part)
                    if len(blocks) == count:
                        return blocks
    return []
