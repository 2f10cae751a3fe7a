"""Rules on the instance types of pools: known, alike for Slurm, with eRDMA, for sale."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hpc.catalog.model import Capability, InstanceType
from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.pool import Interconnect, Placement, PoolSpec
from hpc.spec.rules.context import Context, cpus, listed

#: Families that the cloud's page of no longer sold families lists
#: (https://www.alibabacloud.com/help/en/ecs/user-guide/phased-out-instance-families, read 2026-12).
LEGACY_FAMILIES = frozenset({"ecs.c7re", "ecs.ebmgn7vx"})


def types_known(context: Context) -> Iterator[Finding]:
    """HPC301: the catalog knows every type."""
    for path, pool in context.pools:
        for index, name in enumerate(pool.instance_types):
            if context.catalog.instance_type(name) is None:
                meant = context.similar_type(name)
                fix = f"write {meant} if that is meant, or run: hpc catalog refresh --region {context.spec.region}"
                text = f"{name} is not in the catalog: its cores, memory, eRDMA and price could not be verified"
                yield finding("HPC301", f"{path}.instance_types[{index}]", name, text, fix if meant else None)


def types_once(context: Context) -> Iterator[Finding]:
    """HPC105: no type stands twice in a pool."""
    for path, pool in context.pools:
        for index, name in enumerate(pool.instance_types):
            if name in pool.instance_types[:index]:
                yield finding("HPC105", f"{path}.instance_types[{index}]", name, f"{name} stands twice")


def _groups(types: tuple[InstanceType, ...], key: Callable[[InstanceType], object]) -> dict[object, list[str]]:
    groups: dict[object, list[str]] = {}
    for kind in types:
        groups.setdefault(key(kind), []).append(kind.name)
    return groups


def _split(pool: PoolSpec, groups: dict[object, list[str]], unit: str) -> str:
    parts = [f"one with {listed(names)} ({value}{unit})" for value, names in groups.items()]
    return f"split pool {pool.name}: {'; '.join(parts)}"


def types_alike(context: Context) -> Iterator[Finding]:
    """HPC302, HPC303, HPC304: the types of a pool look the same to Slurm."""
    for path, pool in context.pools:
        types = context.types_of(pool)
        path = f"{path}.instance_types"  # noqa: PLW2901
        architectures = _groups(types, lambda kind: kind.architecture)
        if len(architectures) > 1:
            text = f"pool {pool.name} mixes {listed(list(architectures))}"
            yield finding("HPC304", path, list(pool.instance_types), text, _split(pool, architectures, ""))
            continue
        by_cpus = _groups(types, lambda kind, pool=pool: cpus(kind, hyperthreading=pool.hyperthreading))  # type: ignore[misc]
        if len(by_cpus) > 1:
            text = f"nodes of pool {pool.name} would have {listed(list(by_cpus))} CPUs"
            yield finding("HPC302", path, list(pool.instance_types), text, _split(pool, by_cpus, " CPUs"))
        memory = [kind.memory_gib for kind in types]
        if memory and max(memory) - min(memory) > max(memory) * pool.memory_margin_percent / 100:
            by_memory = _groups(types, lambda kind: f"{kind.memory_gib:g}")
            text = (
                f"nodes of pool {pool.name} would have {listed(list(by_memory))} GiB, "
                f"which is further apart than the margin of {pool.memory_margin_percent} %"
            )
            yield finding("HPC303", path, list(pool.instance_types), text, _split(pool, by_memory, " GiB"))


def erdma_capability(context: Context) -> Iterator[Finding]:
    """HPC305, HPC306: types of an eRDMA pool have an elastic RDMA interface."""
    for path, pool, kind in context.pool_types:
        if pool.interconnect is not Interconnect.ERDMA or kind.erdma is Capability.YES:
            continue
        nearest = context.catalog.nearest_erdma(kind.name)
        instead = f"use {nearest.name}" if nearest else "use a type with eRDMA (hpc catalog types --erdma)"
        if kind.erdma is Capability.NO:
            text = f"{kind.name} has no elastic RDMA interface"
            yield finding("HPC305", path, kind.name, text, f"{instead}, or set interconnect: tcp for pool {pool.name}")
        else:
            doubt = "inferred from sibling families only" if kind.erdma is Capability.LIKELY else "not known"
            text = f"that {kind.name} has an elastic RDMA interface is {doubt}"
            refresh = f"read it from the account: hpc catalog refresh --region {context.spec.region}; or {instead}"
            yield finding("HPC306", path, kind.name, text, refresh)


def low_latency_placement(context: Context) -> Iterator[Finding]:
    """HPC313, HPC314: deployment sets for low latency take the types."""
    for path, pool, kind in context.pool_types:
        able = kind.low_latency_placement
        if pool.placement is not Placement.LOW_LATENCY or able is Capability.YES:
            continue
        if able is Capability.NO:
            yield finding("HPC313", path, kind.name, f"low-latency deployment sets do not take {kind.family}")
        else:
            doubt = "inferred from sibling families only" if able is Capability.LIKELY else "not known"
            text = f"that low-latency deployment sets take {kind.family} is {doubt}"
            yield finding("HPC314", path, kind.name, text)


def low_latency_in_one_zone(context: Context) -> Iterator[Finding]:
    """HPC315: nodes that shall be close are in one zone."""
    for path, pool in context.pools:
        zones = tuple(dict.fromkeys(context.spec.pool_zones(pool)))
        if pool.placement is Placement.LOW_LATENCY and len(zones) > 1:
            text = f"pool {pool.name} is placed for low latency, but its nodes may come from {listed(zones)}"
            where = f"{path}.zones" if pool.zones else f"{path}.placement"
            value = list(pool.zones) if pool.zones else str(pool.placement)
            yield finding("HPC315", where, value, text, f"set zones: [{zones[0]}] for pool {pool.name}")


def hyperthreading_there(context: Context) -> Iterator[Finding]:
    """HPC331: hyper-threading is asked for only where there is some."""
    for path, pool, kind in context.pool_types:
        if pool.hyperthreading and kind.threads_per_core == 1:
            yield finding("HPC331", path, kind.name, f"{kind.name} has one thread per core")


def types_on_sale(context: Context) -> Iterator[Finding]:
    """HPC332, HPC333, HPC334: everybody can buy the types, in the pool's zones."""
    for path, pool, kind in context.pool_types:
        if kind.invite_only:
            yield finding("HPC332", path, kind.name, f"{kind.family} is sold by invitation only")
        if kind.family in LEGACY_FAMILIES:
            yield finding("HPC333", path, kind.name, f"{kind.family} is no longer sold everywhere")
        zones = context.spec.pool_zones(pool)
        if kind.zones is not None and not set(zones) & set(kind.zones):
            text = f"{kind.name} was not for sale in {listed(zones)} when the catalog was refreshed ({kind.as_of})"
            fix = f"use zones among: {listed(kind.zones)}" if kind.zones else None
            yield finding("HPC334", path, kind.name, text, fix)


RULES = (
    types_known,
    types_once,
    types_alike,
    erdma_capability,
    low_latency_placement,
    low_latency_in_one_zone,
    hyperthreading_there,
    types_on_sale,
)
