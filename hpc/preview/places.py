"""Where in the stack file something comes from: the path of a resource, the line of a path."""

from __future__ import annotations

import re

import yaml

from hpc.spec.cluster import ClusterSpec

#: What most rules are about, by rule; below the pool for rules about pools.
_FIELDS = {
    "hpc-erdma-capable-types": "instance_types",
    "hpc-erdma-capable-members": "instance_types",
    "hpc-erdma-traffic-mode": "interconnect",
    "hpc-instance-types": "instance_types",
    "hpc-compute-not-prepaid": "charge",
    "hpc-compute-released": "idle",
    "hpc-size": "max",
    "hpc-disks-encrypted": "system_disk",
}
_WHOLE = {
    "hpc-port-range-width": "network.mpi_ports",
    "hpc-ssh-sources": "network.ssh_from",
    "hpc-open-to-world": "network.ssh_from",
    "hpc-sources-inside-cluster": "network.ssh_from",
    "hpc-regions": "region",
    "hpc-budget-hour": "budget",
    "hpc-budget-month": "budget",
    "hpc-keep-data": "protect",
    "hpc-nas-encrypted": "storage",
    "hpc-tags": "tags",
}
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def path_of(rule: str, urn: str, spec: ClusterSpec | None) -> str:
    """Path in the stack file that a rule's violation comes from; empty for the whole cluster."""
    if spec and urn:
        name = urn.split("::")[-1]
        for index, pool in enumerate(spec.pools):
            own = f"{spec.name}-pool-{pool.name}"
            if name == own or name.startswith((f"{own}-template", f"{own}-placement-")):
                field = _FIELDS.get(rule)
                return f"pools[{index}]" + (f".{field}" if field else "")
    return _WHOLE.get(rule, "")


def line_of(text: str, path: str) -> int:
    """Line of a path of `hpc:cluster` in a stack file, from 1; of its nearest parent where it is not written there."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return 1
    line = 1
    for step in ("config", "hpc:cluster", *(found[0] or int(found[1]) for found in _STEP.findall(path))):
        below = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(step):
                    below, line = value, key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            below = node.value[step]
            line = below.start_mark.line + 1
        if below is None:
            break
        node = below
    return line
