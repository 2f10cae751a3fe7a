"""The one decision: what Slurm and the cloud show, what is remembered, the clock and the settings -> steps.

It is a pure function. Given the same look twice it says the same; once its steps have been done it says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hpc.elastic.instances import Instance
from hpc.elastic.memory import Mark, Memory
from hpc.elastic.nodes import Node
from hpc.elastic.reasons import printable
from hpc.elastic.settings import PoolSettings, Settings
from hpc.elastic.steps import (
    Down,
    Drain,
    Extend,
    Failed,
    Hold,
    Launch,
    PowerDown,
    PowerUp,
    Resume,
    Started,
    Step,
    Terminate,
)
from hpc.elastic.tags import parse_node_name

#: Reason that slurmctld gives a node that did not register in time.
RESUME_TIMEOUT_REASON = "ResumeTimeout reached"

#: Reason that slurmctld gives a node that it has lost.
NOT_RESPONDING_REASON = "Not responding"

#: For how many seconds a node that could not start stays out of use with its reason, so that people can read it.
#: slurmctld keeps a requeued job back for as long anyway.
FAILED_HOLD = 120


@dataclass(slots=True)
class _Collector:
    """Steps by what they say, so that one step covers many nodes."""

    launch: dict[tuple[str, int | None], list[str]] = field(default_factory=lambda: defaultdict(list))
    terminate: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    extend: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    down: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    hold: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    drain: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    power_down: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    power_up: list[str] = field(default_factory=list)
    resume: list[str] = field(default_factory=list)
    failed: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    started: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    #: Pools with a node that has come up lately: what fails there is the node, not the pool.
    fresh: set[str] = field(default_factory=set)

    def steps(self) -> tuple[Step, ...]:
        """In the order in which they are safe to do: nodes out of use first, then instances, then new ones."""
        found: list[Step] = []
        found += [Down(tuple(nodes), reason, hold) for (reason, hold), nodes in self.down.items()]
        found += [Hold(tuple(nodes), reason) for reason, nodes in self.hold.items()]
        found += [Drain(tuple(nodes), reason) for reason, nodes in self.drain.items()]
        found += [PowerDown(tuple(nodes), why) for why, nodes in self.power_down.items()]
        found += [
            Failed(pool, tuple(nodes), reason, alone=pool not in self.fresh)
            for (pool, reason), nodes in self.failed.items()
        ]
        found += [Terminate(tuple(ids), why) for why, ids in self.terminate.items() if ids]
        found += [Extend(pool, tuple(ids)) for pool, ids in self.extend.items()]
        found += [Started(pool, tuple(nodes)) for pool, nodes in self.started.items()]
        found += [Resume(tuple(self.resume))] if self.resume else []
        found += [PowerUp(tuple(self.power_up))] if self.power_up else []
        found += [Launch(pool, tuple(nodes), job) for (pool, job), nodes in self.launch.items()]
        return tuple(found)


def decide(
    nodes: Iterable[Node], instances: Iterable[Instance], memory: Memory, settings: Settings, now: datetime
) -> tuple[Step, ...]:
    """What is to be done.

    Args:
        nodes: CLOUD nodes, read before the instances were.
        instances: of this cluster, by its tag.
        memory: after `observe` of the same look.
        settings: of the cluster.
        now: the time in UTC.
    """
    found: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        found[instance.name].append(instance)
    look = _Look(memory, settings, now)
    for node in nodes:
        mine = found.pop(node.name, [])
        parsed = parse_node_name(node.name)
        pool = settings.pools.get(parsed[0]) if parsed else None
        if pool is not None and parsed is not None:
            look.node(node, parsed[1], mine, pool)
    for name, orphans in found.items():
        look.orphans(name, orphans)
    return look.out.steps()


@dataclass(slots=True)
class _Look:
    """One look at everything; `out` is what comes of it."""

    memory: Memory
    settings: Settings
    now: datetime
    out: _Collector = field(default_factory=_Collector)

    def node(self, node: Node, number: int, instances: list[Instance], pool: PoolSettings) -> None:
        """One node and the instances with its name."""
        # The oldest is the node's own, unless the cloud takes it away or it is left from the node's earlier life.
        ordered = sorted(instances, key=lambda i: (i.reclaimed, self.memory.stale(node.name, i), i.created, i.id))
        if not (node.up and node.busy):
            self.out.terminate["a second instance of one node"] += [other.id for other in ordered[1:]]
        instance = ordered[0] if ordered else None
        if node.asked and not node.down:
            self._asked(node, instance, pool)
        elif node.powering_down or node.powered_down:
            self._powered_down(node, number, instance, pool)
        elif node.down:
            self._down(node, instance, pool)
        elif node.up:
            self._up(node, instance, pool)

    def orphans(self, name: str, instances: list[Instance]) -> None:
        """Instances whose name Slurm does not know.

        One that a pool could have is left to its automatic release: it may be that slurmctld has not yet read the
        configuration that the pool comes from.
        """
        parsed = parse_node_name(name)
        pool = self.settings.pools.get(parsed[0]) if parsed else None
        if pool is not None and parsed is not None and parsed[1] <= pool.max:
            return
        for instance in instances:
            if (self.now - instance.created).total_seconds() > self.settings.orphan_grace:
                self.out.terminate["no node of this cluster has its name"].append(instance.id)

    def _asked(self, node: Node, instance: Instance | None, pool: PoolSettings) -> None:
        """Slurm waits for the node: launch it, or say why it does not come."""
        memory, name = self.memory, node.name
        if instance is None:
            if name in memory.launching or (name in memory.seen and not self._missing(name)):
                return
            if pool.name in memory.stopped:
                self.out.down[memory.stopped[pool.name], self.settings.cooldown].append(name)
            else:
                self.out.launch[pool.name, memory.jobs.get(name) or None].append(name)
            return
        reported = memory.reported.get(name)
        waited = (self.now - memory.requested.get(name, self.now)).total_seconds()
        if memory.stale(name, instance):
            self.out.terminate["it is left from an earlier start of its node"].append(instance.id)
        elif reported is not None or waited > pool.resume_timeout:
            reason = reported or f"not registered within {pool.resume_timeout} s"
            self.out.down[reason, FAILED_HOLD].append(name)
            self.out.failed[pool.name, reason].append(name)
            self.out.terminate["its node could not start"].append(instance.id)
        elif instance.reclaimed:
            self.out.terminate["the cloud takes this spot instance back"].append(instance.id)
        elif instance.status == "Stopped":
            self.out.terminate["it stopped before its node registered"].append(instance.id)
        else:
            self._keep(instance, pool)

    def _powered_down(self, node: Node, number: int, instance: Instance | None, pool: PoolSettings) -> None:
        """Slurm wants no instance: let go what is there; give back what the daemon took out of use."""
        mark = self.memory.marks.get(node.name)
        timed_out = node.down and RESUME_TIMEOUT_REASON in node.reason
        if instance is not None and not node.busy:
            self.out.terminate["its node is powered down"].append(instance.id)
            if timed_out and mark is None:
                reported = self.memory.reported.get(node.name)
                self.out.failed[pool.name, reported or f"not registered within {pool.resume_timeout} s"].append(
                    node.name
                )
                if reported is not None:
                    # slurmctld gave up before the node's own reason was known, which says more.
                    self.out.hold[reported].append(node.name)
        if mark is not None and mark.active(self.now):
            # slurmctld makes a node idle when it suspends it (idle_on_node_suspend), so it is told once more.
            if not (node.down or mark.held or node.reserved):
                self.out.hold[mark.reason].append(node.name)
            return
        if instance is not None or node.powering_down or node.name in self.memory.launching:
            return
        if (node.down or node.drained) and (timed_out or (mark is not None and _ours(node, mark))):
            self.out.resume.append(node.name)
        elif not (node.down or node.drained or node.reserved or pool.name in self.memory.stopped):
            self.out.power_up += [node.name] if number <= pool.min else []

    def _down(self, node: Node, instance: Instance | None, pool: PoolSettings) -> None:
        """What the daemon set DOWN goes on to power-down; what a person set DOWN is theirs."""
        mark = self.memory.marks.get(node.name)
        if mark is not None and _ours(node, mark):
            if not node.power_down_wanted:
                self.out.power_down[mark.reason].append(node.name)
        elif not node.reason.startswith(NOT_RESPONDING_REASON):
            self._keep(instance, pool)
        elif instance is None and self._missing(node.name):
            self.out.down["its instance is gone", 0].append(node.name)
        # An instance that slurmctld has lost is not kept: it comes back within its release time, or is released.

    def _up(self, node: Node, instance: Instance | None, pool: PoolSettings) -> None:
        """A working node: watch over its instance."""
        if instance is None:
            if self._missing(node.name) and not node.reserved:
                self.out.down["its instance is gone", 0].append(node.name)
            return
        if node.reserved:
            self._keep(instance, pool)
            return
        if instance.reclaimed:
            self.out.down["the cloud takes this spot instance back", 0].append(node.name)
            return
        age = (self.now - instance.created).total_seconds()
        young = age < 2 * pool.resume_timeout
        if young and node.invalid and not node.busy:
            # slurmctld would suspend it and ask for it again, and the next instance would be no better.
            reason = printable(f"registered with less than slurm.conf says: {node.reason}")
            self.out.down[reason, FAILED_HOLD].append(node.name)
            self.out.failed[pool.name, reason].append(node.name)
            self.out.terminate["its node could not start"].append(instance.id)
            return
        if young and not node.invalid:
            self.out.fresh.add(pool.name)
            if self.memory.failures.get(pool.name):
                self.out.started[pool.name].append(node.name)
        if pool.max_lifetime is not None and age > pool.max_lifetime:
            reason = f"older than the pool's max_lifetime of {pool.max_lifetime} s"
            if not node.drained:
                self.out.drain[reason].append(node.name)
            elif node.name in self.memory.marks and not node.busy and not node.power_down_wanted:
                self.out.power_down[reason].append(node.name)
        self._keep(instance, pool)

    def _keep(self, instance: Instance | None, pool: PoolSettings) -> None:
        """Push the release time forward when less than half of it is left."""
        if instance is None or instance.reclaimed:
            return
        left = instance.release - self.now if instance.release else timedelta(0)
        if left < timedelta(seconds=pool.auto_release / 2):
            self.out.extend[pool.name].append(instance.id)

    def _missing(self, name: str) -> bool:
        """Its instance was not there in several looks and for some time."""
        miss = self.memory.misses.get(name)
        return miss is not None and miss.gone(self.settings.missing_limit, self.settings.missing_age, self.now)


def _ours(node: Node, mark: Mark) -> bool:
    """The node is out of use for the daemon's reason and nobody has given another one since."""
    return node.reason in ("", mark.told) or RESUME_TIMEOUT_REASON in node.reason
