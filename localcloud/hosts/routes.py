"""Routes of this machine that keep the cloud's ranges on it: `unreachable`, but for bound elastic IP addresses.

All of them carry a protocol number and a metric of ours, by which they are found again.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hpc.errors import CannotRunError
from localcloud.hosts import addresses
from localcloud.hosts.commands import run_json
from localcloud.hosts.namespaces import ip_batch
from localcloud.hosts.naming import PREFIX, Names

_log = logging.getLogger("localcloud.hosts.routes")

#: Routing protocol number of our routes (rtnetlink(7): from 5 on for the user; none of iproute2's rt_protos).
PROTOCOL = 199


@dataclass(frozen=True, slots=True, order=True)
class Route:
    """A route of this machine.

    Attributes:
        destination: CIDR block.
        device: link that leads there, or None for `unreachable`.
        via: next hop on that link, or None.
    """

    destination: str
    device: str | None = None
    via: str | None = None


def wanted_routes(
    cidrs: Iterable[str], eips: Mapping[str, str], links: Mapping[str, tuple[str, str]], name_servers: Iterable[str]
) -> frozenset[Route]:
    """Routes for a network.

    Args:
        cidrs: ranges of the vSwitches.
        eips: id of the VPC for each bound elastic IP address.
        links: link and address at its far end, for each VPC.
        name_servers: resolvers of this machine; a range with one of them gets no route, or no name would resolve.
    """
    servers = tuple(name_servers)
    ranges = {*cidrs, addresses.EIP_RANGE, *(f"{address}/32" for address in addresses.SERVICES)}
    unreachable = {block for block in ranges if not any(addresses.holds(block, server) for server in servers)}
    for block in sorted(ranges - unreachable):
        _log.warning(
            "%s holds a name server of this machine: its packets are not held back outside of the cloud", block
        )
    return frozenset(
        {
            *(Route(block) for block in unreachable),
            *(Route(f"{address}/32", *links[vpc_id]) for address, vpc_id in eips.items() if vpc_id in links),
            *(Route(f"{far}/32", device) for device, far in links.values()),
        }
    )


def present_routes(names: Names) -> frozenset[Route]:
    """Routes of this local cloud that the kernel has."""
    rows = run_json(["ip", "-j", "-4", "route", "show", "proto", str(PROTOCOL)])
    return frozenset(
        Route(_block(row["dst"]), None if row.get("type") == "unreachable" else row.get("dev"), row.get("gateway"))
        for row in rows
        if row.get("metric") == names.metric
    )


def apply_routes(names: Names, wanted: frozenset[Route]) -> None:
    """Make the kernel's routes of this local cloud what is wanted; new ones come before old ones go.

    Raises:
        CannotRunError: HPC854, another local cloud on this machine has one of the elastic IP addresses.
    """
    present = present_routes(names)
    _refuse_taken(names, wanted - present)
    ip_batch([addition(names, route) for route in sorted(wanted - present, key=_key)])
    ip_batch([f"route delete {_words(names, route)}" for route in sorted(present - wanted, key=_key)])


def addition(names: Names, route: Route) -> str:
    """The `ip` command, without `ip`, that adds a route of this local cloud."""
    return f"route add {_words(names, route)}"


def name_servers(resolv_conf: Path = Path("/etc/resolv.conf")) -> tuple[str, ...]:
    """IPv4 name servers of this machine."""
    if not resolv_conf.exists():
        return ()
    words = [line.split() for line in resolv_conf.read_text(errors="replace").splitlines()]
    found = [line[1] for line in words if len(line) > 1 and line[0] == "nameserver"]
    return tuple(address for address in found if ":" not in address)


def _refuse_taken(names: Names, fresh: frozenset[Route]) -> None:
    unicast = {route.destination for route in fresh if route.via}
    if not unicast:
        return
    for row in run_json(["ip", "-j", "-4", "route", "show", "proto", str(PROTOCOL)]):
        device = row.get("dev", "")
        if device.startswith(PREFIX) and not device.startswith(names.uplink_prefix) and _block(row["dst"]) in unicast:
            raise CannotRunError(
                f"{row['dst']} belongs to another local cloud on this machine (link {device})",
                code="HPC854",
                fix="stop the other local cloud, or remove what it left with `python -m localcloud.hosts.reset`",
            )


def _words(names: Names, route: Route) -> str:
    if route.device is None:
        target = f"unreachable {route.destination}"
    elif route.via is None:
        target = f"{route.destination} dev {route.device}"
    else:
        target = f"{route.destination} via {route.via} dev {route.device} onlink"
    return f"{target} metric {names.metric} proto {PROTOCOL}"


def _block(destination: str) -> str:
    return str(ipaddress.IPv4Network(destination))


def _key(route: Route) -> tuple[str, str]:
    return route.destination, route.device or ""
