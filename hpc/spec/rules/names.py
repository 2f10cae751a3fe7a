"""Rules on the names of pools and nodes."""

from __future__ import annotations

from collections.abc import Iterator

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.names import login_names, management_names, node_name, parse_node_name
from hpc.spec.rules.context import Context

#: `all` and `default` mean all nodes and the defaults in slurm.conf(5), whatever their case; the others are names of
#: hosts that the program makes, or that every host has.
RESERVED_POOLS = {
    "all": "Slurm takes it for all nodes",
    "default": "Slurm takes it for the default values of nodes and partitions",
    "none": "Slurm's commands take it for no node at all",
    "cloud": "Slurm takes it for a state of nodes",
    "management": "the management nodes have it",
    "login": "the login nodes have it",
    "localhost": "every host has it",
}


def pool_names_once(context: Context) -> Iterator[Finding]:
    """HPC106: no two pools have one name."""
    seen: set[str] = set()
    for path, pool in context.pools:
        if pool.name in seen:
            yield finding("HPC106", f"{path}.name", pool.name, f"there is another pool of the name {pool.name}")
        seen.add(pool.name)


def pool_names_free(context: Context) -> Iterator[Finding]:
    """HPC107: no pool has a name that means something else."""
    for path, pool in context.pools:
        if reason := RESERVED_POOLS.get(pool.name):
            yield finding("HPC107", f"{path}.name", pool.name, f"the name {pool.name} cannot be a pool's: {reason}")


def node_names(context: Context) -> Iterator[Finding]:
    """HPC108: a hostlist parser reads each pool's node names as what they are, and no other host has one of them."""
    # Slow to import, and the only thing here that knows what hostlists mean.
    from ClusterShell.NodeSet import NodeSet, NodeSetException

    hosts = {*management_names(context.spec), *login_names(context.spec)}
    for path, pool in context.pools:
        ends = [node_name(pool.name, number) for number in sorted({1, pool.max})]
        text = ends[0] if len(ends) == 1 else f"{pool.name}-[1,{pool.max}]"
        try:
            read = sorted(NodeSet(text))
        except NodeSetException:
            read = []
        if read != sorted(ends) or any(parse_node_name(name) is None for name in ends):
            message = f"a hostlist parser does not read {text} as the nodes {ends[0]} to {ends[-1]}"
            yield finding("HPC108", f"{path}.name", pool.name, message)
        elif taken := sorted(host for host in hosts if _is_node_of(host, pool.name, pool.max)):
            yield finding("HPC108", f"{path}.name", pool.name, f"the host {taken[0]} would have the name of a node")


def _is_node_of(host: str, pool: str, most: int) -> bool:
    parsed = parse_node_name(host)
    return parsed is not None and parsed[0] == pool and parsed[1] <= most


RULES = (pool_names_once, pool_names_free, node_names)
