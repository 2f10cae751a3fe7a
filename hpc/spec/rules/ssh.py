"""Rules on who may reach the login nodes by SSH."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, collapse_addresses

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.rules.context import Context, listed

#: Public addresses that may be let in, in all: a /8 of IPv4, a /16 of IPv6. No organisation needs more.
MOST_IPV4 = 2**24
MOST_IPV6 = 2**112

_PRIVATE4 = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_PRIVATE6 = (IPv6Network("fc00::/7"),)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NO_SOURCE4 = tuple(IPv4Network(text) for text in ("127.0.0.0/8", "224.0.0.0/4", "169.254.0.0/16", "240.0.0.0/4"))
_NO_SOURCE6 = tuple(IPv6Network(text) for text in ("::1/128", "fe80::/10", "ff00::/8"))
_THIS_NETWORK = IPv4Network("0.0.0.0/8")


def _sources(context: Context) -> tuple[list[IPv4Network], list[IPv6Network]]:
    """The sources; IPv6 ranges that only hold mapped IPv4 addresses count as what they mean."""
    four, six = [], []
    for network in context.spec.network.ssh_from:
        if isinstance(network, IPv4Network):
            four.append(network)
        elif network.subnet_of(_MAPPED):
            four.append(IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96)))
        else:
            six.append(network)
    return four, six


def ssh_not_world_open(context: Context) -> Iterator[Finding]:
    """HPC220: not the world, in one range or in several that add up."""
    four, six = _sources(context)
    public4 = [part for part in collapse_addresses(four) if not any(part.subnet_of(block) for block in _PRIVATE4)]
    public6 = [part for part in collapse_addresses(six) if not any(part.subnet_of(block) for block in _PRIVATE6)]
    too_wide = [
        *(public4 if sum(part.num_addresses for part in public4) > MOST_IPV4 else ()),
        *(public6 if sum(part.num_addresses for part in public6) > MOST_IPV6 else ()),
    ]
    if too_wide:
        written = [str(network) for network in context.spec.network.ssh_from]
        shown = [str(part) for part in sorted(too_wide, key=lambda part: part.prefixlen)[:4]]
        yield finding("HPC220", "network.ssh_from", written, f"SSH would be open to {listed(shown)}")


def _no_source(network: IPv4Network | IPv6Network) -> bool:
    if isinstance(network, IPv6Network):
        return any(network.subnet_of(block) for block in _NO_SOURCE6)
    if network.prefixlen >= 8 and network.subnet_of(_THIS_NETWORK):
        return True
    return any(network.subnet_of(block) for block in _NO_SOURCE4)


def ssh_sources_possible(context: Context) -> Iterator[Finding]:
    """HPC222, HPC223: packets can come from the networks."""
    for index, network in enumerate(context.spec.network.ssh_from):
        path = f"network.ssh_from[{index}]"
        if _no_source(network):
            yield finding("HPC222", path, str(network), f"nothing ever comes from {network}")
        elif network.version == 6 and not context.spec.network.ipv6:
            yield finding("HPC223", path, str(network), f"{network} is an IPv6 network, but the VPC has no IPv6")


def somebody_can_log_in(context: Context) -> Iterator[Finding]:
    """HPC221: public login nodes have somebody who may reach them."""
    login = context.spec.login
    if login.count and login.public_ip and not context.spec.network.ssh_from:
        yield finding("HPC221", "network.ssh_from", [], "login nodes have public addresses, but SSH is open to nobody")


RULES = (ssh_not_world_open, ssh_sources_possible, somebody_can_log_in)
