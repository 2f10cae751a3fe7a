"""Address ranges that rules compare: what is the world, what lies inside of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network

from policies import kinds
from policies.model import Stack
from policies.props import UnverifiedError

Range = IPv4Network | IPv6Network


def parse(text: str, path: str) -> Range:
    """An address range.

    Raises:
        UnverifiedError: the text is none.
    """
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise UnverifiedError(path, f"is no address range: {text}") from None


def inside(network: Range, others: Iterable[Range]) -> bool:
    """Whether a range lies in one of others."""
    return any(
        (isinstance(network, IPv4Network) and isinstance(other, IPv4Network) and network.subnet_of(other))
        or (isinstance(network, IPv6Network) and isinstance(other, IPv6Network) and network.subnet_of(other))
        for other in others
    )


def cluster_ranges(stack: Stack, given: Iterable[str]) -> list[Range]:
    """Ranges of the stack's own VPCs and vSwitches, and those of the configuration."""
    found = [parse(text, "networks") for text in given]
    for resource in stack.of(kinds.VPC, kinds.VSWITCH):
        for key in ("cidrBlock", "ipv6CidrBlock"):
            text = resource.props.values.get(key)  # an unknown range covers nothing
            if isinstance(text, str) and text:
                found.append(parse(text, key))
    return found
