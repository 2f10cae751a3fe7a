"""What the daemon remembers between two looks: nothing of it is kept where users can see or change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from hpc.elastic.instances import Instance
from hpc.elastic.nodes import Node


@dataclass(frozen=True, slots=True)
class Mark:
    """Why the daemon took a node out of use, and until when it stays so (None: until it is powered down)."""

    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Memory:
    """State of the daemon.

    Attributes:
        requested: node -> when Slurm was first seen to ask for it.
        misses: node -> looks in a row in which it was up and its instance was not there.
        launching: nodes whose launch is under way.
        jobs: node -> job for which Slurm asked for it together with others.
        marks: node -> why the daemon took it out of use.
        failures: pool -> failed starts in a row.
        stopped: pool -> why nothing is bought for it.
        reported: node -> reason that the node itself left on shared storage.
    """

    requested: Mapping[str, datetime] = field(default_factory=dict)
    misses: Mapping[str, int] = field(default_factory=dict)
    launching: frozenset[str] = frozenset()
    jobs: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, Mark] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    reported: Mapping[str, str] = field(default_factory=dict)


def observe(memory: Memory, nodes: tuple[Node, ...], instances: tuple[Instance, ...], now: datetime) -> Memory:
    """Memory after a look: requests get their time, misses are counted and forgotten.

    Args:
        nodes: read from Slurm before `instances` were read from the cloud.
    """
    there = {instance.name for instance in instances}
    requested = {node.name: memory.requested.get(node.name, now) for node in nodes if node.powering_up}
    misses = {node.name: memory.misses.get(node.name, 0) + 1 for node in nodes if node.up and node.name not in there}
    known = {node.name for node in nodes}
    return replace(
        memory,
        requested=requested,
        misses=misses,
        jobs={name: job for name, job in memory.jobs.items() if name in requested},
        marks={name: mark for name, mark in memory.marks.items() if name in known},
    )
