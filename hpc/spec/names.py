"""Names that follow from the stack file: nodes, tags, resources. A node name always parses back to its pool."""

from __future__ import annotations

import re

from hpc.spec.cluster import ClusterSpec

#: Tag keys on every resource, volumes and interfaces included.
TAG_CLUSTER = "hpc:cluster"
TAG_ROLE = "hpc:role"
TAG_POOL = "hpc:pool"
TAG_NODE = "hpc:node"

_NODE = re.compile(r"^(?P<pool>[a-z](?:[a-z0-9-]{0,22}[a-z0-9])?)-(?P<number>[1-9]\d{0,4})$")


def node_name(pool: str, number: int) -> str:
    """Name of a compute node in Slurm, and its host name: `mpi-1`; numbers start at 1."""
    return f"{pool}-{number}"


def parse_node_name(name: str) -> tuple[str, int] | None:
    """Pool and number of a compute node's name, or None where it is not one.

    The number is what follows the last hyphen, so `c-1-7` is node 7 of pool `c-1` and never one of pool `c`.
    """
    match = _NODE.fullmatch(name)
    return (match["pool"], int(match["number"])) if match else None


def management_names(spec: ClusterSpec) -> tuple[str, ...]:
    """Host names of the management nodes, the primary first."""
    return ("management-0", "management-1") if spec.management.backup else ("management-0",)


def login_names(spec: ClusterSpec) -> tuple[str, ...]:
    """Host names of the login nodes."""
    return tuple(f"login-{index}" for index in range(spec.login.count))


def cluster_tags(spec: ClusterSpec, role: str, pool: str | None = None) -> dict[str, str]:
    """Tags of a resource: the user's, the pool's own, and the ones that the program relies on.

    Args:
        role: `network`, `storage`, `management`, `login`, `compute`, ...
        pool: name of the pool the resource belongs to, if any.
    """
    tags = dict(spec.tags)
    if pool is not None:
        found = spec.pool(pool)
        tags.update(found.tags if found else {})
        tags[TAG_POOL] = pool
    tags.update({TAG_CLUSTER: spec.name, TAG_ROLE: role})
    return tags
