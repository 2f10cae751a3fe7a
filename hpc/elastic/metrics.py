"""What monitoring reads: a text file in Prometheus' exposition format, for node_exporter's textfile collector.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from hpc.elastic import budget
from hpc.elastic.instances import Instance
from hpc.elastic.memory import Memory
from hpc.elastic.nodes import Node
from hpc.elastic.settings import Settings
from hpc.elastic.tags import parse_node_name

log = logging.getLogger(__name__)

#: Counters of the state file that are shown.
_COUNTERS = {
    "launched": "Instances that were bought.",
    "wasted": "Instances that were bought for a job that did not get all of its nodes.",
}


def render(
    settings: Settings,
    nodes: Iterable[Node],
    instances: tuple[Instance, ...],
    memory: Memory,
    counters: Mapping[str, int],
    spent: Decimal,
    now: datetime,
) -> str:
    """The text of one look.

    Args:
        counters: of the state file.
        spent: CNY for nodes in this month.
    """
    states = Counter((parsed[0], _state(n)) for n in nodes if (parsed := parse_node_name(n.name)))
    bought = Counter((i.pool, i.type, i.zone, i.charge) for i in instances)
    lines: list[str] = []
    _family(lines, "nodes", "gauge", "Nodes as Slurm sees them.", [
        ({"pool": pool, "state": state}, count)
        for (pool, state), count in sorted(states.items()) if pool in settings.pools
    ])  # fmt: skip
    _family(lines, "instances", "gauge", "Instances as the cloud shows them.", [
        ({"pool": pool, "type": kind, "zone": zone, "charge": charge}, count)
        for (pool, kind, zone, charge), count in sorted(bought.items())
    ])  # fmt: skip
    _family(lines, "pool_stopped", "gauge", "1 where nothing is bought for a pool until somebody recovers it.", [
        ({"pool": pool}, int(pool in memory.stopped)) for pool in sorted(settings.pools)
    ])  # fmt: skip
    for name, told in _COUNTERS.items():
        _family(lines, f"{name}_total", "counter", told, [({}, counters.get(name, 0))])
    hourly = budget.total(budget.loads(instances, settings).values()).hourly
    _family(lines, "hourly_cny", "gauge", "Most that the instances can cost in an hour.", [({}, hourly)])
    _family(lines, "month_cny", "gauge", "What instances have cost in this month, by expected prices.", [({}, spent)])
    _family(
        lines, "last_look_seconds", "gauge", "When Slurm and the cloud were last read.", [({}, int(now.timestamp()))]
    )
    return "".join(f"{line}\n" for line in lines)


def write(file: Path | None, text: str) -> None:
    """Replace the file at once, so that nobody reads half of it."""
    if file is None:
        return
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.chmod(0o644)
        part.replace(file)
    except OSError as error:
        log.warning("%s: %s", file, error)


def _state(node: Node) -> str:
    for state in ("powering_down", "asked", "powered_down", "down", "busy", "drained"):
        if getattr(node, state):
            return {"asked": "starting"}.get(state, state)
    return "idle" if node.up else "unknown"


def _family(
    lines: list[str], name: str, kind: str, told: str, values: list[tuple[dict[str, str], int | Decimal]]
) -> None:
    lines += [f"# HELP hpc_elastic_{name} {told}", f"# TYPE hpc_elastic_{name} {kind}"]
    for labels, value in values:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"hpc_elastic_{name}{{{inner}}} {value}" if inner else f"hpc_elastic_{name} {value}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
