"""Security groups, elastic IP addresses and NAT of a VPC as one nftables rule set; pure text from a `Network`.

The rule set belongs into the VPC's network namespace. A packet between two hosts meets the sender's egress rules and
then the receiver's ingress rules. Hosts with the same groups share a pair of chains, found with one look into a verdict
map, so that a thousand nodes cost no more per packet than one.

Semantics (help pages "Security group rules" and "Basic and advanced security groups" of ECS): rules of all groups of an
interface together, lower priority number first, at equal priority drop before accept; ingress is dropped unless a rule
or inner access accepts it, egress is accepted unless a rule drops it. Connections once accepted stay accepted.
The cloud's own services (metadata, resolver, mirrors) are not subject to security groups.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localcloud.contracts import Host, Network, SecurityGroup, SecurityRule
from localcloud.hosts import addresses
from localcloud.hosts.naming import Names

TABLE = "alihpc"
_SERVICE_PORTS = "tcp dport { 53, 80, 443 }", "udp dport 53"


@dataclass(frozen=True, slots=True)
class _Elements:
    """Elements of a set or map, one a line."""

    lines: tuple[str, ...]

    def render(self) -> str:
        return f"    elements = {{ {', '.join(self.lines)} }}\n" if self.lines else ""


def render_vpc(network: Network, vpc_id: str, uplink: str, link_address: str) -> str:
    """Rule set of a VPC's namespace, as one transaction that replaces what was there.

    Args:
        network: the whole network.
        vpc_id: the VPC.
        uplink: interface of the namespace that leads to this machine.
        link_address: address of the namespace on that interface; hosts with NAT leave with it.
    """
    hosts = sorted((host for host in network.hosts if host.vpc_id == vpc_id), key=lambda host: host.instance_id)
    groups = {group.group_id: group for group in network.security_groups if group.vpc_id == vpc_id}
    cidrs = sorted(vswitch.cidr for vswitch in network.vswitches if vswitch.vpc_id == vpc_id)
    nat_cidrs = sorted(
        v.cidr for v in network.vswitches if v.vpc_id == vpc_id and v.vswitch_id in network.nat_vswitches
    )
    by_id = {host.instance_id: host for host in hosts}
    eips = sorted((eip.address, by_id[eip.instance_id].private_ip) for eip in network.eips if eip.instance_id in by_id)
    combinations = sorted({tuple(sorted(host.security_group_ids)) for host in hosts})
    number = {combination: index for index, combination in enumerate(combinations)}

    parts = [f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n"]
    for group_id in sorted(groups):
        members = _Elements(tuple(host.private_ip for host in hosts if group_id in host.security_group_ids))
        parts.append(_collection("set", _set_name(group_id), "ipv4_addr", members))
    parts.append(_collection("set", "vpc", "ipv4_addr", _Elements(tuple(cidrs)), interval=True))
    outside = sorted({*nat_cidrs, *(private for _, private in eips)}, key=_order)
    parts.append(_collection("set", "outside", "ipv4_addr", _Elements(_merged(outside)), interval=True))
    for index, combination in enumerate(combinations):
        chosen = [groups[group_id] for group_id in combination if group_id in groups]
        parts.append(_chain(f"out{index}", _rule_lines(chosen, "egress", groups)))
        inner = [f"ip saddr @{_set_name(group.group_id)} accept" for group in chosen if group.inner_access]
        parts.append(_chain(f"in{index}", [*_rule_lines(chosen, "ingress", groups), *inner, "drop"]))
    for way in ("out", "in"):
        verdicts = tuple(f"{h.private_ip} : jump {way}{number[tuple(sorted(h.security_group_ids))]}" for h in hosts)
        parts.append(_collection("map", f"host_{way}", "ipv4_addr : verdict", _Elements(verdicts)))
    parts.append(
        _chain(
            "forward",
            [
                "type filter hook forward priority filter; policy drop;",
                "meta protocol != ip drop",
                "ct state established,related accept",
                "ip saddr vmap @host_out",
                "ip daddr vmap @host_in",
                "ip daddr @vpc drop",
                f'oifname "{uplink}" ip saddr @outside accept',
            ],
        )
    )
    services = ", ".join(addresses.SERVICES)
    parts.append(
        _chain(
            "input",
            [
                "type filter hook input priority filter; policy drop;",
                'iifname "lo" accept',
                "ct state established,related accept",
                *(f"ip saddr @vpc ip daddr {{ {services} }} {ports} accept" for ports in _SERVICE_PORTS),
                "ip saddr @vpc icmp type echo-request accept",
                f"ip saddr @vpc ip daddr {{ {services} }} meta l4proto tcp reject with tcp reset",
            ],
        )
    )
    parts.append(_nat(eips, nat_cidrs, uplink, link_address))
    parts.append("}\n")
    parts.append(_no_spoofing(hosts))
    return "".join(parts)


def _no_spoofing(hosts: Sequence[Host]) -> str:
    """Hosts speak with their own address only: metadata and access groups go by the address of the client."""
    own = _Elements(tuple(f'"{Names.port(host.instance_id)}" . {host.private_ip}' for host in hosts))
    return (
        f"table bridge {TABLE}\ndelete table bridge {TABLE}\ntable bridge {TABLE} {{\n"
        + _collection("set", "own", "ifname . ipv4_addr", own)
        + _chain(
            "prerouting",
            [
                "type filter hook prerouting priority -300; policy accept;",
                "meta protocol ip iifname . ip saddr != @own drop",
                "meta protocol arp iifname . arp saddr ip != @own drop",
            ],
        )
        + "}\n"
    )


def _nat(eips: Sequence[tuple[str, str]], nat_cidrs: Sequence[str], uplink: str, link_address: str) -> str:
    inbound = _Elements(tuple(f"{address} : {private}" for address, private in eips))
    outbound = _Elements(tuple(f"{private} : {address}" for address, private in eips))
    return "".join(
        [
            _collection("map", "eip_in", "ipv4_addr : ipv4_addr", inbound),
            _collection("map", "eip_out", "ipv4_addr : ipv4_addr", outbound),
            _chain("prerouting", ["type nat hook prerouting priority dstnat;", "dnat ip to ip daddr map @eip_in"]),
            _chain(
                "postrouting",
                [
                    "type nat hook postrouting priority srcnat;",
                    # A host that takes another host's public address: the answer has to come back through here.
                    "ip saddr @vpc ip daddr @vpc ct status dnat snat ip to ip saddr map @eip_out",
                    "ip saddr @vpc ip daddr @vpc ct status dnat masquerade",
                    f'oifname "{uplink}" snat ip to ip saddr map @eip_out',
                    *(f'oifname "{uplink}" ip saddr {cidr} snat ip to {link_address}' for cidr in nat_cidrs),
                ],
            ),
        ]
    )


def render_machine(names: Names) -> str:
    """Rule set for this machine's own namespace: nothing of the cloud gets in, what may get out is masqueraded."""
    links = f'"{names.uplink_prefix}*"'
    ranges = ", ".join(addresses.PRIVATE_RANGES)
    table = names.table
    return (
        f"table ip {table}\ndelete table ip {table}\ntable ip {table} {{\n"
        + _chain(
            "input",
            [
                "type filter hook input priority filter; policy accept;",
                f"iifname {links} ct state established,related accept",
                f"iifname {links} drop",
            ],
        )
        + _chain(
            "forward",
            [
                "type filter hook forward priority filter - 1; policy accept;",
                f"iifname {links} ct state established,related accept",
                f"iifname {links} oifname != {links} ip daddr {{ {ranges} }} drop",
                f"iifname != {links} oifname {links} ct state established,related accept",
                f"iifname != {links} oifname {links} drop",
            ],
        )
        + _chain(
            "postrouting",
            [
                "type nat hook postrouting priority srcnat;",
                f"oifname {links} ip saddr {addresses.EIP_RANGE} return",
                f"oifname {links} snat to {addresses.MACHINE}",
                f"iifname {links} masquerade",
            ],
        )
        + "}\n"
    )


def _set_name(group_id: str) -> str:
    return "g_" + group_id.replace("-", "_")


def _collection(kind: str, name: str, key: str, elements: _Elements, *, interval: bool = False) -> str:
    flags = "    flags interval\n" if interval else ""
    return f"  {kind} {name} {{\n    type {key}\n{flags}{elements.render()}  }}\n"


def _chain(name: str, lines: Iterable[str]) -> str:
    return f"  chain {name} {{\n" + "".join(f"    {line}\n" for line in lines) + "  }\n"


def _order(block: str) -> tuple[int, int]:
    network = ipaddress.IPv4Network(block)
    return int(network.network_address), network.prefixlen


def _merged(blocks: Iterable[str]) -> tuple[str, ...]:
    """The same addresses without overlaps, which nftables refuses in a set."""
    return tuple(str(block) for block in ipaddress.collapse_addresses(ipaddress.IPv4Network(block) for block in blocks))


def _rule_lines(chosen: Sequence[SecurityGroup], direction: str, known: dict[str, SecurityGroup]) -> list[str]:
    rules = [rule for group in chosen for rule in group.rules if rule.direction == direction]
    rules.sort(key=lambda rule: (rule.priority, rule.accept))
    lines = [_rule_line(rule, known) for rule in rules]
    return list(dict.fromkeys(line for line in lines if line))


def _rule_line(rule: SecurityRule, known: dict[str, SecurityGroup]) -> str | None:
    """A rule as an nftables statement; None for one that can match nothing (a group of another VPC)."""
    side = "saddr" if rule.direction == "ingress" else "daddr"
    words: list[str] = []
    if rule.group_id is not None:
        if rule.group_id not in known:
            return None
        words.append(f"ip {side} @{_set_name(rule.group_id)}")
    elif rule.cidr is not None and ipaddress.IPv4Network(rule.cidr, strict=False).prefixlen:
        words.append(f"ip {side} {ipaddress.IPv4Network(rule.cidr, strict=False)}")
    words += _protocol_words(rule.protocol, rule.port_range)
    if rule.direction == "egress" and rule.accept:
        words.append("return")
    else:
        words.append("accept" if rule.accept else "drop")
    return " ".join(words)


def _protocol_words(protocol: str, port_range: str) -> list[str]:
    match protocol.lower():
        case "all":
            return []
        case "icmp" | "gre" as name:
            return [f"meta l4proto {name}"]
        case name:
            first, _, last = port_range.partition("/")
            if first == "-1":
                return [f"meta l4proto {name}"]
            return [f"{name} dport {first}" if first == (last or first) else f"{name} dport {first}-{last}"]


def hosts_outside(network: Network) -> frozenset[str]:
    """Ids of the hosts that reach the outside: their vSwitch has NAT, or they have an elastic IP address."""
    with_eip = {eip.instance_id for eip in network.eips}
    return frozenset(
        host.instance_id for host in network.hosts if _reaches_outside(host, network.nat_vswitches, with_eip)
    )


def _reaches_outside(host: Host, nat_vswitches: tuple[str, ...], with_eip: set[str | None]) -> bool:
    return host.vswitch_id in nat_vswitches or host.instance_id in with_eip
