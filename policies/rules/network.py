"""Rules of security groups: narrow port ranges, from inside of the cluster; SSH from the user's own networks."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from policies import kinds
from policies.model import Config, Resource, Rule, Setting, Severity, Stack, Violation, each
from policies.props import Props, UnverifiedError
from policies.rules.networks import Range, cluster_ranges, inside, parse

SSH_PORT = 22
_ALL_PORTS = (1, 65535)
_NETWORKS = Setting(
    {"type": "array", "items": {"type": "string"}},
    [],
    "Further address ranges that count as the cluster's own, such as an adopted VPC's.",
)


def _accepts(props: Props) -> bool:
    """Whether a rule lets traffic in."""
    return props.text("type", "ingress") == "ingress" and props.text("policy", "accept").lower() == "accept"


def _ports(props: Props) -> tuple[int, int]:
    """First and last port; everything for protocols without ports."""
    text = props.text("portRange", "-1/-1")
    first, _, last = text.partition("/")
    try:
        ports = (int(first), int(last))
    except ValueError:
        raise UnverifiedError("portRange", f"is no range of ports: {text}") from None
    return _ALL_PORTS if -1 in ports else ports


def _has_ports(props: Props) -> bool:
    return props.text("ipProtocol", "all").lower() in ("tcp", "udp", "all")


def _ranges(props: Props) -> Iterator[tuple[str, Range]]:
    for key in ("cidrIp", "ipv6CidrIp"):
        if text := props.text(key):
            yield text, parse(text, key)


def port_width(resource: Resource, config: Config) -> Iterator[str]:
    """Ranges of more ports than MPI needs."""
    props = resource.props
    if not _accepts(props) or not _has_ports(props):
        return
    first, last = _ports(props)
    count, limit = last - first + 1, int(config["maxPorts"])
    if count > limit:
        shown = props.text("portRange", "-1/-1")
        yield f"portRange {shown} opens {count:,} ports, more than {limit:,}; MPI is pinned to 30000/31000 here"


def protocol_all(resource: Resource, config: Config) -> Iterator[str]:
    """Rules for every protocol at once."""
    props = resource.props
    if _accepts(props) and props.text("ipProtocol", "all").lower() == "all":
        yield "ipProtocol all lets in everything; name tcp, udp or icmp"


def open_to_world(resource: Resource, config: Config) -> Iterator[str]:
    """Sources that are the whole Internet."""
    props = resource.props
    if not _accepts(props):
        return
    allowed = {str(ports) for ports in config["allowedPortRanges"]}
    for text, source in _ranges(props):
        if source.prefixlen == 0 and props.text("portRange", "-1/-1") not in allowed:
            ports = props.text("portRange", "-1/-1")
            yield f"everybody on the Internet ({text}) reaches ports {ports} ({props.text('ipProtocol', 'all')})"


def ssh_sources(resource: Resource, config: Config) -> Iterator[str]:
    """SSH from ranges that are much wider than a site."""
    props = resource.props
    if not _accepts(props) or not _has_ports(props):
        return
    first, last = _ports(props)
    if not first <= SSH_PORT <= last:
        return
    for text, source in _ranges(props):
        least = int(config["minPrefix" if isinstance(source, IPv4Network) else "minPrefixIpv6"])
        if source.prefixlen < least:
            yield f"SSH is open to {text}; the widest network that may log in is a /{least}"


def inner_access(resource: Resource, config: Config) -> Iterator[str]:
    """Groups whose members reach each other on every port, whatever the rules say."""
    props = resource.props
    if props.text("securityGroupType", "normal") != "normal":
        return
    policy = props.text("innerAccessPolicy")
    if not policy and props.has("innerAccess"):
        policy = "Accept" if props.flag("innerAccess", True) else "Drop"
    if (policy or "Accept").lower() != "drop":
        given = f"is {policy}" if policy else "is not given, so that it is Accept"
        yield f"innerAccessPolicy {given}: members reach each other on every port"


def sources_inside(stack: Stack, config: Config) -> Iterator[Violation]:
    """Traffic from outside of the cluster; SSH from networks that neither the cluster nor the configuration names."""
    own = cluster_ranges(stack, config["networks"])
    users = [
        parse(str(text), "sshFrom")
        for cluster in stack.of(kinds.CLUSTER)
        for text in cluster.props.values.get("sshFrom") or ()
    ] + [parse(text, "sshFrom") for text in config["sshFrom"]]

    def check(resource: Resource) -> Iterator[str]:
        props = resource.props
        if not _accepts(props):
            return
        ssh = _has_ports(props) and _ports(props) == (SSH_PORT, SSH_PORT)
        for text, source in _ranges(props):
            if inside(source, own) or (ssh and inside(source, users)):
                continue
            if ssh and users:
                yield f"SSH from {text}, which is none of the networks that may log in (network.ssh_from)"
            elif ssh:
                yield f"SSH from {text}, but no cluster of this stack says who may log in (network.ssh_from)"
            elif own:
                yield f"{text} is wider than the cluster or outside of it ({', '.join(str(one) for one in own)})"
            else:
                yield f"could not be verified: the cluster's own ranges are not known, so {text} counts as outside"
        if props.has("prefixListId") and props.get("prefixListId") not in config["prefixLists"]:
            yield "could not be verified: its source is a prefix list, and nobody knows what is in it"

    yield from each(stack.of(kinds.GROUP_RULE), check)


def source_groups(stack: Stack, config: Config) -> Iterator[Violation]:
    """Rules that have no source at all, or a security group of somebody else."""
    groups = {group.urn for group in stack.of(kinds.GROUP)}
    ids = {str(group.props.values.get("id")) for group in stack.of(kinds.GROUP)} - {"None"}

    def check(resource: Resource) -> Iterator[str]:
        props = resource.props
        if not _accepts(props):
            return
        key = "sourceSecurityGroupId"
        if not any(props.has(name) for name in (key, "cidrIp", "ipv6CidrIp", "prefixListId")):
            yield "the rule has no source, so that the provider's default decides who gets in"
        if not props.has(key) or groups & set(resource.sources.get(key, ())):
            return
        source = props.text(key)
        if source not in ids and source not in config["groups"]:
            yield f"its source is the security group {source}, which is not one of this stack"

    yield from each(stack.of(kinds.GROUP_RULE), check)


_TEXTS = {"type": "array", "items": {"type": "string"}}
RULES = (
    Rule(
        name="hpc-port-range-width",
        code="HPC733",
        severity=Severity.HIGH,
        types=(kinds.GROUP_RULE,),
        settings={
            "maxPorts": Setting({"type": "integer", "minimum": 1}, 1001, "Most ports that one rule may open."),
        },
        checks=(port_width,),
    ),
    Rule(
        name="hpc-protocol-all",
        code="HPC734",
        severity=Severity.HIGH,
        types=(kinds.GROUP_RULE,),
        checks=(protocol_all,),
    ),
    Rule(
        name="hpc-open-to-world",
        code="HPC735",
        severity=Severity.CRITICAL,
        types=(kinds.GROUP_RULE,),
        settings={"allowedPortRanges": Setting(_TEXTS, [], "Port ranges that may be open to everybody: `443/443`.")},
        checks=(open_to_world,),
    ),
    Rule(
        name="hpc-ssh-sources",
        code="HPC736",
        severity=Severity.CRITICAL,
        types=(kinds.GROUP_RULE,),
        settings={
            "minPrefix": Setting(
                {"type": "integer", "minimum": 1, "maximum": 32}, 16, "Shortest prefix of an IPv4 source of SSH."
            ),
            "minPrefixIpv6": Setting(
                {"type": "integer", "minimum": 1, "maximum": 128}, 48, "Shortest prefix of an IPv6 source of SSH."
            ),
        },
        checks=(ssh_sources,),
    ),
    Rule(
        name="hpc-sources-inside-cluster",
        code="HPC737",
        severity=Severity.HIGH,
        types=(kinds.GROUP_RULE,),
        settings={
            "networks": _NETWORKS,
            "sshFrom": Setting(_TEXTS, [], "Networks that may log in beside the cluster's `network.ssh_from`."),
            "prefixLists": Setting(_TEXTS, [], "Ids of prefix lists that may be a source."),
        },
        stack_check=sources_inside,
    ),
    Rule(
        name="hpc-source-groups",
        code="HPC738",
        severity=Severity.MEDIUM,
        types=(kinds.GROUP_RULE,),
        settings={"groups": Setting(_TEXTS, [], "Ids of security groups outside of the stack that may be a source.")},
        stack_check=source_groups,
    ),
    Rule(
        name="hpc-inner-access",
        code="HPC739",
        severity=Severity.MEDIUM,
        types=(kinds.GROUP,),
        checks=(inner_access,),
    ),
)
