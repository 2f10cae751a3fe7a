"""What Slurm is told about the nodes of a pool: cores, threads, memory, features."""

from __future__ import annotations

from dataclasses import dataclass

from ClusterShell.NodeSet import NodeSet

from hpc.catalog import Catalog, InstanceType
from hpc.errors import RefusedError
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import node_name
from hpc.spec.pool import PoolCharge, PoolSpec

#: Memory in MiB that a node's kernel and system take however small the node is (page tables, crash kernel, firmware):
#: a virtual machine of 4 GiB shows about 3.6 GiB.
LEAST_MARGIN_MIB = 512


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The nodes of one pool as slurm.conf describes them.

    Attributes:
        hostlist: all node names in Slurm's notation, `mpi-[1-8]`.
        cores: physical cores of a node (one socket: the catalog does not know how they are spread over sockets, and
            slurmctld compares totals).
        threads: threads per core that Slurm may use.
        memory_mib: RealMemory, MiB.
        features: for `--constraint`; each holds for every node of the pool.
        weight: pools with a lower weight are used first.
    """

    hostlist: str
    cores: int
    threads: int
    memory_mib: int
    features: tuple[str, ...]
    weight: int

    @property
    def cpus(self) -> int:
        """CPUs that Slurm hands out per node."""
        return self.cores * self.threads


def pool_types(pool: PoolSpec, catalog: Catalog) -> tuple[InstanceType, ...]:
    """The catalog's entries of a pool's instance types, in order.

    Raises:
        RefusedError: HPC803, the catalog does not know one of them, so its cores and memory cannot be told.
    """
    types = []
    for name in pool.instance_types:
        found = catalog.instance_type(name)
        if found is None:
            raise RefusedError(
                f"pool {pool.name}: instance type {name} is not in the catalog",
                code="HPC803",
                fix="run `hpc catalog refresh`, or use a type that `hpc catalog types` lists",
            )
        types.append(found)
    return tuple(types)


def node_shape(spec: ClusterSpec, pool: PoolSpec, catalog: Catalog) -> NodeShape:
    """What slurm.conf says of a pool. With several instance types it is the smallest of each figure.

    Raises:
        RefusedError: HPC803, an instance type is not in the catalog.
    """
    types = pool_types(pool, catalog)
    memory = min(int(kind.memory_gib * 1024) for kind in types)
    margin = max(memory * pool.memory_margin_percent // 100, LEAST_MARGIN_MIB)
    return NodeShape(
        hostlist=hostlist(pool.name, 1, pool.max),
        cores=min(kind.physical_cores for kind in types),
        threads=min(kind.threads_per_core for kind in types) if pool.hyperthreading else 1,
        memory_mib=max(memory - margin, memory // 2),
        features=_features(pool, types),
        weight=pool.weight or 10 * (1 + spec.pools.index(pool)),
    )


def hostlist(pool: str, first: int, last: int) -> str:
    """Names of the nodes `first` to `last` of a pool in Slurm's notation; one name has no brackets.

    Raises:
        RefusedError: HPC804, a hostlist parser does not read it back as these names.
    """
    text = node_name(pool, first) if first == last else f"{pool}-[{first}-{last}]"
    # A pool name that ends in digits or brackets could be read as a range of its own.
    nodes = NodeSet(text)
    if len(nodes) != last - first + 1 or node_name(pool, first) not in nodes or node_name(pool, last) not in nodes:
        raise RefusedError(f"pool {pool}: {text} does not read back as its nodes", code="HPC804", fix="rename the pool")
    return text


def _features(pool: PoolSpec, types: tuple[InstanceType, ...]) -> tuple[str, ...]:
    families = {kind.family.removeprefix("ecs.") for kind in types}
    architectures = {kind.architecture for kind in types}
    features = [*sorted(families)] if len(families) == 1 else []
    features += [str(pool.interconnect), *(architectures if len(architectures) == 1 else ())]
    if pool.charge in (PoolCharge.SPOT, PoolCharge.PAYG):
        features.append(str(pool.charge))
    return tuple(dict.fromkeys((*features, *pool.features)))
