"""Tags by which a cluster's instances are found, and how a node's name tells its pool (as `hpc.spec.names` has it)."""

from __future__ import annotations

import re

TAG_CLUSTER = "hpc:cluster"
TAG_ROLE = "hpc:role"
TAG_POOL = "hpc:pool"

#: Value of the role tag of elastic nodes.
ROLE_COMPUTE = "compute"

_NODE = re.compile(r"^(?P<pool>[a-z](?:[a-z0-9-]{0,22}[a-z0-9])?)-(?P<number>[1-9]\d{0,4})$")


def parse_node_name(name: str) -> tuple[str, int] | None:
    """Pool and number of a compute node, or None where the name is not one. The number follows the last hyphen."""
    match = _NODE.fullmatch(name)
    return (match["pool"], int(match["number"])) if match else None
