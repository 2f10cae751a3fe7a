"""A cluster on a virtual clock: the real daemon between a model of slurmctld and a model of the cloud.

What the model of slurmctld does is what release 22.05 was seen to do (`test_slurmctld.py` holds the same steps to the
real one): DOWN keeps POWERING_UP, a suspended node becomes idle whatever it was (idle_on_node_suspend), ResumeTimeout
leaves DOWN+POWERED_DOWN, a requeued job waits 120 s, a registration from before the request is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import RLock

from hpc.elastic.daemon import Daemon
from hpc.elastic.ecs import CloudError
from hpc.elastic.hostlists import folded
from hpc.elastic.instances import Instance
from hpc.elastic.launch import Batch, Candidate
from hpc.elastic.nodes import Node
from hpc.elastic.settings import PoolSettings, Settings
from hpc.elastic.state import State
from hpc.elastic.steps import Step
from hpc.elastic.tags import parse_node_name

START = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
REQUEUE_S, SUSPEND_TIMEOUT_S, SLURMD_TIMEOUT_S = 120, 10, 300


class Killed(BaseException):
    """The daemon's process ends in the middle of a call."""


class Clock:
    """The virtual time."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def ahead(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)


@dataclass
class FakeCloud:
    """Instances by id; `stock`, `quota`, `lag` and the like are turned by the scenario."""

    clock: Clock
    #: (type, zone, charge) -> how many are to be had; a missing key is without limit.
    stock: dict[tuple[str, str, str], int] = field(default_factory=dict)
    quota: int | None = None
    #: What DescribeAccountAttributes tells; None: it is refused.
    vcpus_left: int | None = None
    #: Seconds until a new instance is shown, and until its slurmd starts.
    lag: float = 0
    boot: float = 20
    #: Nodes that never register.
    broken: set[str] = field(default_factory=set)
    #: Names that the next looks do not show, each with how many looks.
    hidden: dict[str, int] = field(default_factory=dict)
    kill_after_launch: bool = False
    #: Code of an error that every launch gets.
    denied: str = ""
    down: bool = False
    living: dict[str, Instance] = field(default_factory=dict)
    bought: int = 0
    calls: int = 0
    deleted: list[str] = field(default_factory=list)
    tokens: dict[str, tuple[str, ...]] = field(default_factory=dict)
    requests: list[tuple[tuple[str, str, str], int]] = field(default_factory=list)
    reclaims: dict[str, datetime] = field(default_factory=dict)
    #: Node -> what its console has.
    consoles: dict[str, str] = field(default_factory=dict)
    consoles_read: int = 0

    def __post_init__(self) -> None:
        self.lock = RLock()

    def instances(self) -> tuple[Instance, ...]:
        if self.down:
            raise CloudError("ServiceUnavailable", "later")
        with self.lock:
            found = []
            for instance in self.living.values():
                if (self.clock.now - instance.created).total_seconds() < self.lag:
                    continue
                if self.hidden.get(instance.name, 0) > 0:
                    self.hidden[instance.name] -= 1
                    continue
                found.append(instance)
            return tuple(found)

    def launch(
        self, pool: PoolSettings, batch: Batch, candidate: Candidate, token: str, minimum: int, now: datetime
    ) -> tuple[str, ...]:
        with self.lock:
            self.calls += 1
            self.requests.append((candidate.key, len(batch.nodes)))
            if token in self.tokens:
                return self.tokens[token]
            if self.down:
                raise CloudError("ServiceUnavailable", "later")
            if self.denied:
                raise CloudError(self.denied, "ask the owner of the account")
            count = min(len(batch.nodes), self.stock.get(candidate.key, 10**6))
            if count < minimum or not count:
                raise CloudError("OperationDenied.NoStock", "sold out")
            if self.quota is not None and len(self.living) + count > self.quota:
                raise CloudError("QuotaExceed.ElasticQuota", "no more vCPUs")
            if candidate.key in self.stock:
                self.stock[candidate.key] -= count
            ids = []
            for name in batch.nodes[:count]:
                self.bought += 1
                instance_id = f"i-{self.bought}"
                # As the API writes it: whole minutes.
                created = self.clock.now.replace(second=0, microsecond=0)
                self.living[instance_id] = Instance(
                    id=instance_id, name=name, pool=pool.name, status="Running", created=created,
                    release=now + timedelta(seconds=pool.auto_release), address=f"10.0.0.{self.bought % 250}",
                    type=candidate.type.name, zone=candidate.zone.zone, charge=candidate.charge,
                )  # fmt: skip
                self.started[instance_id] = self.clock.now
                self.hosts[instance_id] = name
                ids.append(instance_id)
            self.tokens[token] = tuple(ids)
        if self.kill_after_launch:
            raise Killed
        return tuple(ids)

    @property
    def hosts(self) -> dict[str, str]:
        """Host names, which stay when an instance gets another name."""
        return self.__dict__.setdefault("_hosts", {})

    @property
    def started(self) -> dict[str, datetime]:
        """When each instance was really started."""
        return self.__dict__.setdefault("_started", {})

    def quota_left(self, charge: str) -> int | None:
        if self.vcpus_left is None:
            raise CloudError("InvalidAction.NotFound", "not here")
        return self.vcpus_left

    def console(self, instance_id: str) -> str:
        self.consoles_read += 1
        return self.consoles.get(self.hosts[instance_id], "")

    def extend(self, ids: Sequence[str], seconds: int, now: datetime) -> None:
        with self.lock:
            for instance_id in ids:
                if found := self.living.get(instance_id):
                    self.living[instance_id] = replace(found, release=now + timedelta(seconds=seconds))

    def delete(self, ids: Iterable[str]) -> None:
        with self.lock:
            for instance_id in ids:
                found = self.living.pop(instance_id, None)
                if found is not None:
                    self.deleted.append(found.name)
                    key = (found.type, found.zone, found.charge)
                    if key in self.stock:
                        self.stock[key] += 1

    def reclaim(self, name: str, notice: float = 300) -> None:
        """Announce that a spot instance is taken back."""
        for instance in self.living.values():
            if instance.name == name:
                self.living[instance.id] = replace(instance, reclaimed=True)
                self.reclaims[instance.id] = self.clock.ahead(notice)
                return

    def tick(self) -> None:
        """What the cloud does by itself: automatic release and reclaimed instances."""
        with self.lock:
            for instance in list(self.living.values()):
                ends = [self.reclaims.get(instance.id), instance.release]
                if any(end is not None and end <= self.clock.now for end in ends):
                    self.delete([instance.id])

    def answers_since(self, name: str) -> datetime | None:
        """Since when the slurmd of a node's newest instance runs, or None."""
        found = [i for i in self.living.values() if self.hosts.get(i.id, i.name) == name]
        if not found or name in self.broken:
            return None
        since = max(self.started[i.id] for i in found)
        return since if since + timedelta(seconds=self.boot) <= self.clock.now else None


@dataclass
class Job:
    id: int
    count: int
    seconds: int
    pool: str = "mpi"
    begin: datetime = START
    nodes: tuple[str, ...] = ()
    running_since: datetime | None = None
    done: bool = False
    requeued: int = 0
    comment: str = ""


@dataclass
class _Record:
    name: str
    base: str = "IDLE"
    flags: set[str] = field(default_factory=lambda: {"POWERED_DOWN"})
    reason: str = ""
    asked_at: datetime = START
    since: datetime = START
    idle_since: datetime = START


class FakeSlurm:
    """slurmctld's part of the matter."""

    def __init__(self, clock: Clock, cloud: FakeCloud, settings: Settings) -> None:
        self.clock, self.cloud, self.settings = clock, cloud, settings
        self.records = {
            f"{pool.name}-{number}": _Record(f"{pool.name}-{number}")
            for pool in settings.pools.values()
            for number in range(1, pool.max + 1)
        }
        self.pending: list[Job] = []
        self.messages: list[dict[str, object]] = []
        self.updates = self.tells = 0

    # what the daemon sees and does

    def nodes(self) -> tuple[Node, ...]:
        return tuple(Node(r.name, frozenset({r.base, "CLOUD", *r.flags}), r.reason) for r in self.records.values())

    def jobs(self) -> Mapping[int, tuple[str, ...]]:
        return {job.id: job.nodes for job in self.pending if job.nodes and job.running_since is None and not job.done}

    def tell(self, jobs: Sequence[int], text: str, later: int = 0) -> None:
        self.tells += 1
        for job in self.pending:
            if job.id in jobs:
                job.comment = text
                if later:
                    job.begin = max(job.begin, self.clock.ahead(later))

    def down(self, nodes: Sequence[str], reason: str) -> None:
        self.updates += 1
        for record in map(self.records.__getitem__, nodes):
            self._requeue(record.name)
            record.base, record.reason = "DOWN", reason

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        self.updates += 1
        for record in map(self.records.__getitem__, nodes):
            record.flags.add("DRAIN")
            record.reason = reason

    def power_down(self, nodes: Sequence[str]) -> None:
        self.updates += 1
        for record in map(self.records.__getitem__, nodes):
            self._requeue(record.name)
            if record.base != "DOWN":
                record.base = "IDLE"
            record.flags -= {"POWERING_UP", "POWERED_DOWN"}
            record.flags.add("POWER_DOWN")

    def power_up(self, nodes: Sequence[str]) -> None:
        self.updates += 1
        for record in map(self.records.__getitem__, nodes):
            if "POWERED_DOWN" in record.flags:
                record.flags.add("POWER_UP")

    def resume(self, nodes: Sequence[str]) -> None:
        self.updates += 1
        for record in map(self.records.__getitem__, nodes):
            record.flags.discard("DRAIN")
            record.base, record.reason = "IDLE", ""

    # what happens by itself

    def tick(self) -> None:
        now = self.clock.now
        for record in self.records.values():
            self._power(record, now)
        for job in self.pending:
            self._job(job, now)

    def _power(self, record: _Record, now: datetime) -> None:
        flags, pool = record.flags, self.settings.pools[record.name.rpartition("-")[0]]
        up = self.cloud.answers_since(record.name) if not flags & {"POWERED_DOWN", "POWERING_DOWN"} else None
        if "POWER_DOWN" in flags and record.base != "ALLOCATED":
            record.base, record.since = "IDLE", now
            flags -= {"POWER_DOWN", "DRAIN"}
            flags.add("POWERING_DOWN")
            self.messages.append({"operation": "suspend", "nodes": record.name})
        elif "POWERING_DOWN" in flags and (now - record.since).total_seconds() >= SUSPEND_TIMEOUT_S:
            flags.discard("POWERING_DOWN")
            flags.add("POWERED_DOWN")
        elif "POWER_UP" in flags:
            flags -= {"POWER_UP", "POWERED_DOWN"}
            flags.add("POWERING_UP")
            record.asked_at = now
            self.messages.append({"operation": "resume", "nodes": record.name, "jobs": []})
        elif "POWERING_UP" in flags:
            if up is not None and up >= record.asked_at:
                flags.discard("POWERING_UP")
                record.idle_since = record.since = now
                if record.base == "DOWN":  # ReturnToService=2
                    record.base = "IDLE"
            elif (now - record.asked_at).total_seconds() > pool.resume_timeout:
                self._requeue(record.name)
                record.base, record.reason = "DOWN", "ResumeTimeout reached"
                flags.discard("POWERING_UP")
                flags.add("POWERED_DOWN")
        elif not flags & {"POWERED_DOWN", "POWERING_DOWN"}:
            if up is not None:
                record.since = now
                idle = record.base == "IDLE" and "DRAIN" not in flags and record.name not in self._kept()
                if idle and (now - record.idle_since).total_seconds() >= pool.idle:
                    flags.add("POWER_DOWN")
            elif (now - record.since).total_seconds() > SLURMD_TIMEOUT_S and record.base != "DOWN":
                self._requeue(record.name)
                record.base, record.reason = "DOWN", "Not responding"
                flags.add("NOT_RESPONDING")

    def _kept(self) -> set[str]:
        return {f"{pool.name}-{n}" for pool in self.settings.pools.values() for n in range(1, pool.min + 1)}

    def _job(self, job: Job, now: datetime) -> None:
        if job.done:
            return
        if not job.nodes:
            if job.begin <= now:
                self._allocate(job, now)
        elif job.running_since is None:
            if not any(self.records[name].flags & {"POWERING_UP", "POWERED_DOWN"} for name in job.nodes):
                job.running_since = now
        elif (now - job.running_since).total_seconds() >= job.seconds:
            job.done = True
            for name in job.nodes:
                self.records[name].base, self.records[name].idle_since = "IDLE", now

    def _allocate(self, job: Job, now: datetime) -> None:
        unfit = {"DRAIN", "POWER_DOWN", "POWERING_DOWN", "MAINTENANCE"}
        free = [
            r for r in self.records.values()
            if r.base == "IDLE" and not r.flags & unfit and r.name.rpartition("-")[0] == job.pool
        ]  # fmt: skip
        free.sort(key=lambda r: "POWERED_DOWN" in r.flags)
        if len(free) < job.count:
            return
        chosen = free[: job.count]
        job.nodes = tuple(r.name for r in chosen)
        asked = [r for r in chosen if "POWERED_DOWN" in r.flags]
        for record in chosen:
            record.base = "ALLOCATED"
        for record in asked:
            record.flags.discard("POWERED_DOWN")
            record.flags.add("POWERING_UP")
            record.asked_at = now
        if asked:
            self.messages.append(
                {
                    "operation": "resume",
                    "nodes": folded(r.name for r in asked),
                    "jobs": [{"job_id": job.id, "nodes": folded(job.nodes)}],
                }
            )

    def _requeue(self, name: str) -> None:
        for job in self.pending:
            if name in job.nodes and not job.done:
                for other in job.nodes:
                    if self.records[other].base == "ALLOCATED":
                        self.records[other].base, self.records[other].idle_since = "IDLE", self.clock.now
                job.nodes, job.running_since = (), None
                job.begin, job.requeued = self.clock.ahead(REQUEUE_S), job.requeued + 1


class Cluster:
    """All of it, and how time passes."""

    def __init__(self, settings: Settings, folder: Path, *, watched: bool = True) -> None:
        self.settings, self.folder, self.watched = settings, folder, watched
        self.clock = Clock()
        self.cloud = FakeCloud(self.clock)
        self.slurm = FakeSlurm(self.clock, self.cloud, settings)
        self.state = State(folder / "elastic.sqlite")
        self.daemon = self._daemon()
        self.steps: list[Step] = []
        self.jobs = 0

    def _daemon(self) -> Daemon:
        return Daemon(self.settings, self.slurm, self.cloud, self.state, self.clock, sleep=lambda seconds: None)

    def restart(self) -> None:
        """The daemon's process is gone; a new one starts on the same state."""
        self.state.close()
        self.state = State(self.folder / "elastic.sqlite")
        self.daemon = self._daemon()
        self.daemon.resume_purchases()
        self.watched = True

    def submit(self, count: int, seconds: int = 60, pool: str = "mpi") -> Job:
        self.jobs += 1
        job = Job(self.jobs, count, seconds, pool, begin=self.clock.now)
        self.slurm.pending.append(job)
        return job

    def run(self, seconds: float, step: float = 5) -> None:
        """Let time pass; the daemon looks after each step."""
        end = self.clock.ahead(seconds)
        while self.clock.now < end:
            self.clock.now = self.clock.ahead(step)
            self.cloud.tick()
            self.slurm.tick()
            messages, self.slurm.messages = self.slurm.messages, []
            if not self.watched:
                continue
            for message in messages:
                self.daemon.handle(message)
            try:
                self.steps += self.daemon.look()
            except CloudError:
                continue
            self.daemon.settle()
            self._check()

    def state_of(self, node: str) -> Node:
        return next(n for n in self.slurm.nodes() if n.name == node)

    def up(self) -> int:
        return sum(node.up for node in self.slurm.nodes())

    def _check(self) -> None:
        """What must hold at every moment: no name that is not a node's, and no node with two instances."""
        names = [i.name for i in self.cloud.living.values()]
        assert all(parse_node_name(name) for name in names)
        assert len(set(names)) == len(names)

    def close(self) -> None:
        self.daemon.close()
        self.state.close()
