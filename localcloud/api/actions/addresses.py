"""Private addresses of a vSwitch: the first one and the last three are the cloud's own."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from localcloud.api.errors import ApiError
from localcloud.api.store import Doc, Store

#: First address, gateway, DNS and broadcast.
RESERVED = 4


def free_count(store: Store, vswitch: Doc) -> int:
    """How many addresses can still be given out."""
    total = ipaddress.ip_network(vswitch["cidr"]).num_addresses
    return total - RESERVED - len(store.values("eni", f"ip@{vswitch['id']}"))


def take(store: Store, vswitch: Doc, count: int, asked: str = "") -> list[str]:
    """Choose `count` free addresses, lowest first, or the one that is asked for.

    Raises:
        ApiError: the vSwitch has too few, or the address is taken or outside.
    """
    net = ipaddress.ip_network(vswitch["cidr"])
    used = set(store.values("eni", f"ip@{vswitch['id']}"))
    if asked:
        try:
            wanted = ipaddress.ip_address(asked)
        except ValueError:
            raise ApiError(400, "InvalidIPAddress.Malformed", "The specified PrivateIpAddress is malformed.") from None
        first, last = int(net.network_address) + 1, int(net.broadcast_address) - 3
        if not first <= int(wanted) <= last or count != 1:
            raise ApiError(400, "InvalidPrivateIpAddress", "The specified private IP address is not in the vSwitch.")
        if asked in used:
            raise ApiError(400, "InvalidIPAddress.AlreadyUsed", "The specified IP address already exists.")
        return [asked]
    result: list[str] = []
    for number in _usable(net):
        address = str(ipaddress.IPv4Address(number))
        if address not in used:
            result.append(address)
            if len(result) == count:
                return result
    raise ApiError(403, "QuotaExceeded.PrivateIpAddress", "The vSwitch does not have enough free private IP addresses.")


def _usable(net: ipaddress.IPv4Network | ipaddress.IPv6Network) -> Iterator[int]:
    yield from range(int(net.network_address) + 1, int(net.broadcast_address) - 2)
