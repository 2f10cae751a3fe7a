"""The one decision: what Slurm and the cloud show, what is remembered, the clock and the settings -> steps.

It is a pure function. Given the same look twice it says the same; once its steps have been done it says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hpc.elastic.instances import Instance
from hpc.elastic.memory import Memory
from hpc.elastic.nodes import Node
from hpc.elastic.settings import PoolSettings, Settings
from hpc.elastic.steps import (
    Down,
    Drain,
    Extend,
    Failed,
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


@dataclass(slots=True)
class _Collector:
    """Steps by what they say, so that one step covers many nodes."""

    launch: dict[tuple[str, int | None], list[str]] = field(default_factory=lambda: defaultdict(list))
    terminate: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    extend: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    down: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    drain: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    power_down: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    power_up: list[str] = field(default_factory=list)
    resume: list[str] = field(default_factory=list)
    failed: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    started: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def steps(self) -> tuple[Step, ...]:
        """In the order in which they are safe to do: nodes out of use first, then instances, then new ones."""
        found: list[Step] = []
        found += [Down(tuple(nodes), reason, hold) for (reason, hold), nodes in self.down.items()]
        found += [Drain(tuple(nodes), reason) for reason, nodes in self.drain.items()]
        found += [PowerDown(tuple(nodes), why) for why, nodes in self.power_down.items()]
        found += [Failed(pool, tuple(nodes), reason) for (pool, reason), nodes in self.failed.items()]
        found += [Terminate(tuple(ids), why) for why, ids in self.terminate.items()]
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
    chosen: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        chosen[instance.name].append(instance)
    out = _Collector()
    known = set()
    for node in nodes:
        parsed = parse_node_name(node.name)
        pool = settings.pools.get(parsed[0]) if parsed else None
        if pool is None or parsed is None:
            continue
        known.add(node.name)
        one, others = _choose(chosen.get(node.name, []))
        for other in others:
            out.terminate["a second instance of one node"].append(other.id)
        if node.reserved:
            _keep(one, pool, now, out)
            continue
        _node(node, parsed[1], one, pool, memory, settings, now, out)
    for name, found in chosen.items():
        if name not in known:
            for instance in found:
                if (now - instance.created).total_seconds() > settings.orphan_grace:
                    out.terminate["no node of this cluster has its name"].append(instance.id)
    return out.steps()


def _choose(found: list[Instance]) -> tuple[Instance | None, list[Instance]]:
    """The instance that a node keeps (the oldest that is not being taken away) and the superfluous ones."""
    if not found:
        return None, []
    ordered = sorted(found, key=lambda instance: (instance.reclaimed, instance.created, instance.id))
    return ordered[0], ordered[1:]


def _keep(instance: Instance | None, pool: PoolSettings, now: datetime, out: _Collector) -> None:
    """Push the release time forward when less than half of it is left."""
    if instance is None or instance.reclaimed:
        return
    left = instance.release - now if instance.release else timedelta(0)
    if left < timedelta(seconds=pool.auto_release / 2):
        out.extend[pool.name].append(instance.id)


def _node(
    node: Node,
    number: int,
    instance: Instance | None,
    pool: PoolSettings,
    memory: Memory,
    settings: Settings,
    now: datetime,
    out: _Collector,
) -> None:
    mark = memory.marks.get(node.name)
    if node.powered_down or (node.powering_down and not node.powering_up):
        _powered_down(node, number, instance, pool, memory, now, out)
    elif node.down:
        # What the daemon set DOWN goes on to power-down; what a person or slurmctld set DOWN is theirs.
        if mark is not None:
            out.power_down[mark.reason].append(node.name)
        elif instance is None and node.not_responding and node.name not in memory.launching:
            out.down["its instance is gone", 0].append(node.name)
        else:
            _keep(instance, pool, now, out)
    elif node.powering_up:
        _powering_up(node, instance, pool, memory, now, out)
    elif node.up:
        _up(node, instance, pool, memory, settings, now, out)


def _powered_down(
    node: Node,
    number: int,
    instance: Instance | None,
    pool: PoolSettings,
    memory: Memory,
    now: datetime,
    out: _Collector,
) -> None:
    """Slurm wants no instance: let go what is there; give back what the daemon took out of use."""
    if instance is not None:
        if not node.busy:
            out.terminate["its node is powered down"].append(instance.id)
        if node.down and RESUME_TIMEOUT_REASON in node.reason:
            out.failed[pool.name, f"not registered within {pool.resume_timeout} s"].append(node.name)
        return
    if node.powering_down or node.name in memory.launching:
        return
    mark = memory.marks.get(node.name)
    ours = mark is not None or RESUME_TIMEOUT_REASON in node.reason
    if (node.down or node.drained) and ours:
        if mark is None or mark.until is None or mark.until <= now:
            out.resume.append(node.name)
    elif number <= pool.min and not node.down and not node.drained and pool.name not in memory.stopped:
        out.power_up.append(node.name)


def _powering_up(
    node: Node, instance: Instance | None, pool: PoolSettings, memory: Memory, now: datetime, out: _Collector
) -> None:
    """Slurm waits for the node: launch it, or say why it does not come."""
    reported = memory.reported.get(node.name)
    waited = (now - memory.requested.get(node.name, now)).total_seconds()
    if instance is None:
        if node.name in memory.launching:
            return
        if pool.name in memory.stopped:
            out.down[memory.stopped[pool.name], 60].append(node.name)
        else:
            out.launch[pool.name, memory.jobs.get(node.name)].append(node.name)
        return
    if reported is not None or waited > pool.resume_timeout:
        reason = reported or f"not registered within {pool.resume_timeout} s"
        out.down[reason, 0].append(node.name)
        out.failed[pool.name, reason].append(node.name)
        out.terminate["its node could not start"].append(instance.id)
    elif instance.reclaimed:
        out.terminate["the cloud takes this spot instance back"].append(instance.id)
    elif instance.status == "Stopped":
        out.terminate["it stopped before its node registered"].append(instance.id)
    else:
        _keep(instance, pool, now, out)


def _up(
    node: Node,
    instance: Instance | None,
    pool: PoolSettings,
    memory: Memory,
    settings: Settings,
    now: datetime,
    out: _Collector,
) -> None:
    """A working node: watch over its instance."""
    if instance is None:
        if memory.misses.get(node.name, 0) >= settings.missing_limit:
            out.down["its instance is gone", 0].append(node.name)
        return
    if instance.reclaimed:
        out.down["the cloud takes this spot instance back", 0].append(node.name)
        return
    if memory.failures.get(pool.name):
        out.started[pool.name].append(node.name)
    age = (now - instance.created).total_seconds()
    if pool.max_lifetime is not None and age > pool.max_lifetime:
        reason = f"older than the pool's max_lifetime of {pool.max_lifetime} s"
        if not node.drained:
            out.drain[reason].append(node.name)
        elif node.name in memory.marks and not node.busy:
            out.power_down[reason].append(node.name)
    _keep(instance, pool, now, out)
