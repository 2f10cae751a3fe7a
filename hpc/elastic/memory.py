"""What the daemon remembers between two looks: nothing of it is kept where users can see or change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hpc.elastic.instances import Instance
from hpc.elastic.nodes import Node

#: Creation times of the API have whole minutes, and clocks differ by a little.
_CREATION_MARGIN = timedelta(seconds=90)


@dataclass(frozen=True, slots=True)
class Mark:
    """Why the daemon took a node out of use, and until when it stays so (None: until it has been powered down).

    Attributes:
        held: the powered-down node was out of use; if it is not any more, somebody has given it back.
    """

    reason: str
    until: datetime | None
    held: bool = False

    @property
    def told(self) -> str:
        """The reason as Slurm gets it."""
        return f"hpc: {self.reason}"

    def active(self, now: datetime) -> bool:
        """The node has to stay out of use."""
        return self.until is not None and self.until > now


@dataclass(frozen=True, slots=True)
class Miss:
    """Looks in a row in which an instance that should be there was not, and since when."""

    count: int
    since: datetime

    def gone(self, limit: int, age: int, now: datetime) -> bool:
        """It was not there in `limit` looks and for `age` s: one missed look means nothing."""
        return self.count >= limit and (now - self.since).total_seconds() >= age


@dataclass(frozen=True, slots=True)
class Memory:
    """State of the daemon.

    Attributes:
        requested: node -> when Slurm was first seen to ask for it.
        seen: nodes, up or asked for, whose instance was there in an earlier look.
        misses: node -> looks in which its instance was not there although it was up or had been seen.
        launching: nodes that may have an instance which is not shown: its launch is under way or was so lately, or it
            was there a short time ago.
        jobs: node -> job for which Slurm asked for it together with others, 0 for none.
        marks: node -> why the daemon took it out of use.
        failures: pool -> failed starts in a row.
        stopped: pool -> why nothing is bought for it.
        reported: node -> reason that the node itself left on shared storage.
    """

    requested: Mapping[str, datetime] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()
    misses: Mapping[str, Miss] = field(default_factory=dict)
    launching: frozenset[str] = frozenset()
    jobs: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[str, Mark] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    reported: Mapping[str, str] = field(default_factory=dict)

    def stale(self, node: str, instance: Instance) -> bool:
        """The instance is one of the node's earlier life: slurmctld ignores one that booted before it was asked for."""
        requested = self.requested.get(node)
        return requested is not None and instance.created + _CREATION_MARGIN < requested


def observe(memory: Memory, nodes: tuple[Node, ...], instances: tuple[Instance, ...], now: datetime) -> Memory:
    """Memory after a look: requests get their time, misses are counted and forgotten, marks that have served go.

    Args:
        nodes: read from Slurm before `instances` were read from the cloud.
    """
    there = {instance.name for instance in instances}
    requested = {node.name: memory.requested.get(node.name, now) for node in nodes if node.asked}
    watched = [node for node in nodes if node.up or node.down or node.asked]
    seen = frozenset(node.name for node in watched if node.name in there or node.name in memory.seen)
    misses = {}
    for node in watched:
        if node.name not in there and (node.name in seen or not node.asked):
            before = memory.misses.get(node.name, Miss(0, now))
            misses[node.name] = Miss(before.count + 1, before.since)
    by_name = {node.name: node for node in nodes}
    return replace(
        memory,
        requested=requested,
        seen=seen,
        misses=misses,
        jobs={name: job for name, job in memory.jobs.items() if name in requested},
        marks={
            name: replace(mark, held=mark.held or _held(by_name[name]))
            for name, mark in memory.marks.items()
            if name in by_name and not _served(mark, by_name[name], now)
        },
    )


def _held(node: Node) -> bool:
    return node.down and node.powered_down


def _served(mark: Mark, node: Node, now: datetime) -> bool:
    """The node is in use again: by the daemon's doing, since its time is over, or because somebody gave it back."""
    if node.down or node.drained:
        return False
    if node.up and not node.power_down_wanted:
        return True
    return not node.asked and (mark.held or not mark.active(now)) and (node.powering_down or node.powered_down)
