"""VPCs of the local cloud on this machine: a namespace each, a bridge per vSwitch in it, a link to this machine.

The namespace is the VPC's router. It has the gateway addresses of the vSwitches, the service addresses of the cloud
and the packet filters; two VPCs with the same address range do not meet. It leads out of itself by one link, over which
elastic IP addresses are reached and hosts with NAT leave; everything else stays inside.
"""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass
from pathlib import Path

from localcloud.contracts import Host, Network, VSwitchNet
from localcloud.hosts import addresses, filters, namespaces, routes
from localcloud.hosts.commands import run, run_json
from localcloud.hosts.locks import file_lock
from localcloud.hosts.namespaces import ip_batch
from localcloud.hosts.naming import PREFIX, Names

_log = logging.getLogger("localcloud.hosts.network")

_UPLINK = "up0"
_READY = "ready"
_LOCK = Path(f"/run/lock/{PREFIX}-links")
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/send_redirects": "0",
    "net/ipv4/conf/default/send_redirects": "0",
    # Bridged packets pass the filters like routed ones.
    "net/bridge/bridge-nf-call-iptables": "1",
    "net/bridge/bridge-nf-call-ip6tables": "1",
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}


@dataclass(frozen=True, slots=True)
class Link:
    """The way between this machine and a VPC's namespace.

    Attributes:
        device: interface on this machine's side.
        address: address of the namespace's side.
    """

    device: str
    address: str


class VpcNetworks:
    """Makes the kernel's network what a `Network` says. Not for concurrent use."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._links: dict[str, Link] = {}
        self._bridges: dict[str, VSwitchNet] = {}
        self._filters: dict[str, str] = {}

    def namespace(self, vpc_id: str) -> str:
        """Name of the namespace of a VPC."""
        return self._names.namespace(vpc_id)

    def apply(self, network: Network) -> None:
        """Bring routes, namespaces, filters and bridges in line, in this order: nothing is ever open too early."""
        vpc_ids = sorted({vswitch.vpc_id for vswitch in network.vswitches})
        self._apply_routes(network, {vpc_id: self._links[vpc_id] for vpc_id in vpc_ids if vpc_id in self._links})
        self._set_machine_filter()
        for vpc_id in vpc_ids:
            if vpc_id not in self._links:
                self._links[vpc_id] = self._ensure_vpc(vpc_id)
            self._set_filter(network, vpc_id)
            self._apply_bridges(vpc_id, [v for v in network.vswitches if v.vpc_id == vpc_id])
        if network.nat_vswitches or any(eip.instance_id for eip in network.eips):
            _enable_forwarding()
        self._apply_routes(network, {vpc_id: self._links[vpc_id] for vpc_id in vpc_ids})
        for vpc_id in sorted(self._links.keys() - set(vpc_ids)):
            self._remove_vpc(vpc_id)

    def adopt(self) -> tuple[str, ...]:
        """Find VPC namespaces that live already; returns the ids of their VPCs."""
        for row in run_json(["ip", "-j", "link", "show"]):
            alias = row.get("ifalias", "")
            if row["ifname"].startswith(self._names.uplink_prefix) and alias.startswith("vpc-"):
                if self._is_ready(alias):
                    self._links[alias] = Link(row["ifname"], self._far_address(alias))
                else:
                    namespaces.delete(self.namespace(alias))
        return tuple(sorted(self._links))

    def plug(self, host: Host, vswitch: VSwitchNet) -> str:
        """Make the host's network namespace with its interface on the vSwitch's bridge; returns its name."""
        mine = self._names.namespace(host.instance_id)
        self.unplug(host)
        namespaces.create(mine)
        port = self._names.port(host.instance_id)
        ip_batch(
            [
                f"link add {port} type veth peer name eth0 address {host.mac} netns {mine}",
                f"link set {port} master {self._names.bridge(vswitch.vswitch_id)} up",
            ],
            namespace=self.namespace(vswitch.vpc_id),
        )
        ip_batch(
            [
                f"addr add {host.private_ip}/{addresses.prefix_length(vswitch.cidr)} dev eth0",
                "link set eth0 up",
                f"route add default via {addresses.gateway(vswitch.cidr)}",
            ],
            namespace=mine,
        )
        return mine

    def unplug(self, host: Host) -> None:
        """Remove the host's network namespace and both ends of its interface at once."""
        if namespaces.exists(self.namespace(host.vpc_id)):
            # The kernel takes a namespace apart in the background; the link's name has to be free now.
            run(
                ["ip", "-n", self.namespace(host.vpc_id), "link", "delete", self._names.port(host.instance_id)],
                check=False,
            )
        namespaces.delete(self._names.namespace(host.instance_id))

    # -- parts of apply ------------------------------------------------------------------------------------------------

    def _apply_routes(self, network: Network, links: dict[str, Link]) -> None:
        vpc_of = {host.instance_id: host.vpc_id for host in network.hosts}
        wanted = routes.wanted_routes(
            [vswitch.cidr for vswitch in network.vswitches],
            {eip.address: vpc_of[eip.instance_id] for eip in network.eips if eip.instance_id in vpc_of},
            {vpc_id: (link.device, link.address) for vpc_id, link in links.items()},
            routes.name_servers(),
        )
        routes.apply_routes(self._names, wanted)

    def _set_machine_filter(self) -> None:
        text = filters.render_machine(self._names)
        if self._filters.get("") != text:
            run(["nft", "-f", "-"], stdin=text)
            self._filters[""] = text

    def _set_filter(self, network: Network, vpc_id: str) -> None:
        text = filters.render_vpc(network, vpc_id, _UPLINK, self._links[vpc_id].address)
        if self._filters.get(vpc_id) != text:
            run(["ip", "netns", "exec", self.namespace(vpc_id), "nft", "-f", "-"], stdin=text)
            self._filters[vpc_id] = text

    def _ensure_vpc(self, vpc_id: str) -> Link:
        name = self.namespace(vpc_id)
        namespaces.delete(name)
        namespaces.create(name)
        with file_lock(_LOCK):
            link = self._free_link()
            ip_batch(
                [
                    f"link add {link.device} type veth peer name {_UPLINK} netns {name}",
                    f"link set {link.device} alias {vpc_id}",
                    f"addr add {addresses.LINK_MACHINE}/32 dev {link.device}",
                    f"link set {link.device} up",
                    routes.addition(self._names, routes.Route(f"{link.address}/32", link.device)),
                ]
            )
        namespaces.inside(name, lambda: _write_sysctls(_SYSCTLS))
        ip_batch(
            [
                *(f"addr add {address}/32 dev lo" for address in addresses.SERVICES),
                *(f"route add unreachable {block}" for block in addresses.PRIVATE_RANGES),
                f"addr add {link.address}/32 dev {_UPLINK}",
                f"link set {_UPLINK} up",
                f"route add {addresses.LINK_MACHINE}/32 dev {_UPLINK}",
                f"route add default via {addresses.LINK_MACHINE} dev {_UPLINK} onlink",
                f"link set lo alias {_READY}",
            ],
            namespace=name,
        )
        return link

    def _free_link(self) -> Link:
        rows = run_json(["ip", "-j", "-4", "route", "show", "proto", str(routes.PROTOCOL)])
        devices = {row["ifname"] for row in run_json(["ip", "-j", "link", "show"])}
        taken = {row["dst"] for row in rows} | {addresses.LINK_MACHINE}
        number = next(n for n in range(10_000) if self._names.uplink(n) not in devices)
        free = next(str(a) for a in ipaddress.IPv4Network(addresses.LINK_RANGE).hosts() if str(a) not in taken)
        return Link(self._names.uplink(number), free)

    def _apply_bridges(self, vpc_id: str, vswitches: list[VSwitchNet]) -> None:
        name = self.namespace(vpc_id)
        known = {v.vswitch_id: v for v in self._bridges.values() if v.vpc_id == vpc_id}
        if known == {vswitch.vswitch_id: vswitch for vswitch in vswitches}:
            return
        present = {row["ifname"] for row in run_json(["ip", "-j", "-n", name, "link", "show", "type", "bridge"]) if row}
        wanted = {self._names.bridge(vswitch.vswitch_id): vswitch for vswitch in vswitches}
        lines = [f"link delete {bridge}" for bridge in sorted(present - wanted.keys())]
        for bridge, vswitch in wanted.items():
            if bridge not in present:
                lines.append(f"link add {bridge} type bridge stp_state 0 forward_delay 0")
            length = addresses.prefix_length(vswitch.cidr)
            lines.append(f"addr replace {addresses.gateway(vswitch.cidr)}/{length} dev {bridge}")
            lines.append(f"link set {bridge} up")
        ip_batch(lines, namespace=name)
        self._bridges = {key: vswitch for key, vswitch in self._bridges.items() if vswitch.vpc_id != vpc_id}
        self._bridges.update({vswitch.vswitch_id: vswitch for vswitch in vswitches})

    def _remove_vpc(self, vpc_id: str) -> None:
        link = self._links.pop(vpc_id)
        run(["ip", "link", "delete", link.device], check=False)
        namespaces.delete(self.namespace(vpc_id))
        self._filters.pop(vpc_id, None)
        self._bridges = {key: vswitch for key, vswitch in self._bridges.items() if vswitch.vpc_id != vpc_id}

    def _is_ready(self, vpc_id: str) -> bool:
        name = self.namespace(vpc_id)
        if not namespaces.exists(name):
            return False
        return bool(run_json(["ip", "-j", "-n", name, "link", "show", "lo"])[0].get("ifalias") == _READY)

    def _far_address(self, vpc_id: str) -> str:
        rows = run_json(["ip", "-j", "-4", "-n", self.namespace(vpc_id), "addr", "show", _UPLINK])
        return str(rows[0]["addr_info"][0]["local"])


def _write_sysctls(values: dict[str, str]) -> None:
    for key, value in values.items():
        file = Path("/proc/sys") / key
        if file.exists():
            file.write_text(value)


def _enable_forwarding() -> None:
    """Let hosts with NAT out; stays on afterwards, as other programs may have come to need it."""
    if _FORWARDING.read_text().strip() != "1":
        _log.info("IPv4 forwarding is switched on for hosts that reach the outside")
        _FORWARDING.write_text("1")
