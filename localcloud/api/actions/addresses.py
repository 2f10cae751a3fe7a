"""Private addresses of a vSwitch: the first one and the last three are the cloud's own."""

from __future__ import annotations

import ipaddress

from localcloud.api.errors import ApiError
from localcloud.api.store import Doc, Store

#: First address, gateway, DNS and broadcast.
RESERVED = 4
_CHUNK = 256


def free_count(store: Store, vswitch: Doc) -> int:
    """How many addresses can still be given out."""
    total = ipaddress.ip_network(vswitch["cidr"]).num_addresses
    return total - RESERVED - store.count_values("eni", f"ip@{vswitch['id']}")


def take(store: Store, vswitch: Doc, count: int, asked: str = "") -> list[str]:
    """Choose `count` free addresses, going on from the last one given out, or the one that is asked for.

    Raises:
        ApiError: the vSwitch has too few, or the address is taken or outside.
    """
    net = ipaddress.IPv4Network(vswitch["cidr"])
    key = f"ip@{vswitch['id']}"
    first, last = int(net.network_address) + 1, int(net.broadcast_address) - 3
    if asked:
        try:
            wanted = ipaddress.IPv4Address(asked)
        except ValueError:
            raise ApiError(400, "InvalidIPAddress.Malformed", "The specified PrivateIpAddress is malformed.") from None
        if not first <= int(wanted) <= last or count != 1:
            raise ApiError(400, "InvalidPrivateIpAddress", "The specified private IP address is not in the vSwitch.")
        if store.taken("eni", key, [asked]):
            raise ApiError(400, "InvalidIPAddress.AlreadyUsed", "The specified IP address already exists.")
        return [asked]
    size = last - first + 1
    start = int(vswitch.get("next_ip") or first) - first
    result: list[str] = []
    for begin in range(0, size, _CHUNK):
        chunk = [
            str(ipaddress.IPv4Address(first + (start + place) % size))
            for place in range(begin, min(begin + _CHUNK, size))
        ]
        used = store.taken("eni", key, chunk)
        result += [address for address in chunk if address not in used]
        if len(result) >= count:
            result = result[:count]
            vswitch["next_ip"] = int(ipaddress.IPv4Address(result[-1])) + 1
            store.update("vswitch", vswitch)
            return result
    raise ApiError(403, "QuotaExceeded.PrivateIpAddress", "The vSwitch does not have enough free private IP addresses.")
