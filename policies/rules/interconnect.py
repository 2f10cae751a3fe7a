"""Elastic RDMA: types that have it where it is asked for, and interfaces that are switched to it from the start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpc.catalog import Capability, Catalog, load_catalog
from policies import kinds
from policies.model import Config, Resource, Rule, Setting, Severity, Stack, Violation, each

#: Traffic modes of an interface: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-runinstances
RDMA_MODE = "HighPerformance"

_VERIFIED = Setting(
    {"type": "array", "items": {"type": "string"}},
    [],
    "Instance types that have eRDMA although the catalog does not know of it.",
)


def _judge(names: Iterable[str], catalog: Catalog, verified: Iterable[str]) -> Iterator[str]:
    accepted = set(verified)
    for name in dict.fromkeys(names):
        kind = catalog.instance_type(name)
        if name in accepted or (kind and kind.erdma.usable):
            continue
        nearest = catalog.nearest_erdma(name)
        instead = f"; the nearest type with eRDMA is {nearest.name}" if nearest else ""
        if kind and kind.erdma is Capability.NO:
            yield f"{name} has no elastic RDMA interface, so MPI would fall back to TCP{instead}"
        else:
            yield f"could not be verified: the catalog does not know whether {name} has eRDMA{instead}"


def says_erdma(resource: Resource) -> bool:
    """Whether a resource by itself says that its instances have eRDMA."""
    props = resource.props
    if resource.type == kinds.POOL:
        return props.text("interconnect", "erdma") == "erdma"
    if resource.type == kinds.QUEUE:
        return props.text("interConnect").lower() == "erdma"
    if kinds.tags(resource).text(kinds.TAG_INTERCONNECT).lower() == "erdma":
        return True
    return RDMA_MODE in _modes(resource)


def _modes(resource: Resource) -> list[str]:
    """Traffic modes that a resource asks for."""
    props = resource.props
    if resource.type == kinds.INSTANCE:
        return [m for m in (props.text("networkInterfaceTrafficMode"), _nested_mode(resource)) if m]
    if resource.type == kinds.SCALING:
        return [part.text("networkInterfaceTrafficMode") for part in props.parts("networkInterfaces")]
    if resource.type == kinds.INTERFACE:
        return [mode for mode in (props.text("networkInterfaceTrafficMode"),) if mode]
    return []


def _nested_mode(resource: Resource) -> str:
    return next(
        (m for p in resource.props.parts("networkInterfaces") if (m := p.text("networkInterfaceTrafficMode"))), ""
    )


def capable_types(resource: Resource, config: Config) -> Iterator[str]:
    """Types without eRDMA in a resource that asks for it."""
    if says_erdma(resource):
        yield from _judge(kinds.instance_types(resource), load_catalog(), config["verifiedTypes"])


def capable_members(stack: Stack, config: Config) -> Iterator[Violation]:
    """Types without eRDMA in resources that belong to a pool with eRDMA, by their parent or their tag."""
    pools = {name: pool for pool in stack.of(kinds.POOL) if isinstance(name := pool.props.values.get("pool"), str)}

    def check(resource: Resource) -> Iterator[str]:
        pool = next((above for above in stack.above(resource) if above.type == kinds.POOL), None)
        pool = pool or pools.get(kinds.tags(resource).text(kinds.TAG_POOL))
        if pool and says_erdma(pool) and not says_erdma(resource):
            for said in _judge(kinds.instance_types(resource), load_catalog(), config["verifiedTypes"]):
                yield f"it belongs to pool {pool.props.text('pool', pool.name)}, which says erdma: {said}"

    yield from each(stack.of(*kinds.MAKERS, kinds.SCALING_GROUP, kinds.PROVISIONING), check)


def traffic_mode(resource: Resource, config: Config) -> Iterator[str]:
    """Interfaces of eRDMA nodes that are made in the standard mode."""
    if resource.type == kinds.POOL:
        if says_erdma(resource) and (mode := resource.props.text("trafficMode", "Standard")) != RDMA_MODE:
            yield f"the pool says erdma, but its traffic mode is {mode}"
        return
    if not _should_have_mode(resource):
        return
    if RDMA_MODE not in _modes(resource):
        where = "networkInterfaces[].networkInterfaceTrafficMode"
        if resource.type == kinds.INTERFACE:
            where = "networkInterfaceTrafficMode"
        yield f"it makes eRDMA nodes, but {where} is not {RDMA_MODE}; a running node cannot be switched"


def _should_have_mode(resource: Resource) -> bool:
    said = kinds.tags(resource).text(kinds.TAG_INTERCONNECT).lower()
    if said:
        return said == "erdma"
    if not kinds.is_compute(resource):
        return False
    if resource.type == kinds.INTERFACE:
        return True
    catalog = load_catalog()
    types = [catalog.instance_type(name) for name in kinds.instance_types(resource)]
    return bool(types) and all(kind is not None and kind.erdma.usable for kind in types)


RULES = (
    Rule(
        name="hpc-erdma-capable-types",
        code="HPC730",
        severity=Severity.HIGH,
        types=(kinds.POOL, *kinds.MAKERS, kinds.QUEUE, kinds.PROVISIONING, kinds.SCALING_GROUP),
        settings={"verifiedTypes": _VERIFIED},
        checks=(capable_types,),
    ),
    Rule(
        name="hpc-erdma-capable-members",
        code="HPC731",
        severity=Severity.HIGH,
        types=(*kinds.MAKERS, kinds.SCALING_GROUP, kinds.PROVISIONING),
        settings={"verifiedTypes": _VERIFIED},
        stack_check=capable_members,
    ),
    Rule(
        name="hpc-erdma-traffic-mode",
        code="HPC732",
        severity=Severity.HIGH,
        types=(kinds.POOL, kinds.INSTANCE, kinds.SCALING, kinds.INTERFACE),
        checks=(traffic_mode,),
    ),
)
