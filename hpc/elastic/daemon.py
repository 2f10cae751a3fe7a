"""The daemon: looks, decides, does. One loop is the only janitor; calls that take long run beside it in threads.

python -m hpc.elastic.daemon --settings /opt/hpc/etc/pools.json
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from hpc.elastic import budget, metrics, nodefiles
from hpc.elastic.bindings import Bindings
from hpc.elastic.buy import Buyer
from hpc.elastic.chores import Chores
from hpc.elastic.consoles import Consoles
from hpc.elastic.decide import FAILED_HOLD, decide
from hpc.elastic.ecs import Cloud, CloudError, Connection
from hpc.elastic.guard import Guard
from hpc.elastic.hostlists import expanded, folded
from hpc.elastic.instances import Instance
from hpc.elastic.launcher import Launcher, Refusal
from hpc.elastic.memory import observe
from hpc.elastic.nodes import Node
from hpc.elastic.ports import Controller, Provider
from hpc.elastic.reasons import until_recovered
from hpc.elastic.server import Server
from hpc.elastic.settings import Settings, load
from hpc.elastic.slurm import Slurm, SlurmError
from hpc.elastic.state import State
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
from hpc.elastic.tables import SettingsError

log = logging.getLogger("hpc.elastic")

#: Instances of one piece of work in a thread: the API deletes up to 100 with a call, and extends one.
_DELETE_SIZE = 100
_EXTEND_SIZE = 25


class Daemon:
    """Keeps Slurm's nodes and the cloud's instances together.

    Args:
        settings: of the cluster.
        slurm, cloud: the two sides.
        state: what survives a restart.
        clock: the time in UTC.
        sleep: waits; tests pass their own.
        metrics_file: where monitoring reads, None for nowhere.
    """

    def __init__(
        self,
        settings: Settings,
        slurm: Controller,
        cloud: Provider,
        state: State,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
        metrics_file: Path | None = None,
    ) -> None:
        self._metrics_file = metrics_file
        self._settings = settings
        self._slurm = slurm
        self._cloud = cloud
        self._state = state
        self._clock = clock
        self._memory = state.memory()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._bindings = Bindings(state)
        self._guard = Guard(settings)
        self._buyer = Buyer(settings, cloud, state, self._guard, clock, sleep)
        self._launcher = Launcher(self._buyer, self._delete, state, self._wake.set)
        self._chores = Chores()
        self._consoles = Consoles(cloud)

    def handle(self, message: dict[str, object]) -> None:
        """Take a message of `resume`, `suspend` or `recover`.

        Raises:
            ValueError: it makes no sense.
        """
        operation = message.get("operation")
        if operation == "recover":
            pool = str(message.get("pool"))
            if pool not in self._settings.pools:
                raise ValueError(f"there is no pool {pool}")
            self._state.recover(pool)
        elif operation in ("resume", "suspend"):
            nodes = expanded(str(message.get("nodes", "")))
            log.info("%s %s", operation, folded(nodes))
            if operation == "resume":
                self._state.add_jobs(dict.fromkeys(nodes, 0) | jobs_of(message.get("jobs")))
        else:
            raise ValueError(f"operation {operation!r} is not known")
        self._wake.set()

    def run(self) -> None:
        """Look and act until `stop`."""
        self.resume_purchases()
        while not self._stopping.is_set():
            started = time.monotonic()
            self._wake.clear()
            try:
                self.look()
            except (SlurmError, CloudError) as error:
                log.warning("this look failed: %s", error)
            except Exception:
                # Whatever it is, the next look may go well, and systemd's restart would not do more.
                log.exception("this look failed")
            self._wake.wait(max(0.1, self._settings.poll - (time.monotonic() - started)))
        self.close()

    def stop(self) -> None:
        """End the loop after the look under way; launches under way are waited for."""
        self._stopping.set()
        self._wake.set()

    def close(self) -> None:
        """Wait for the threads and end them."""
        self._launcher.close()
        self._chores.close()

    def settle(self) -> None:
        """Wait for launches and other calls under way; what they say is taken at the next look."""
        self._launcher.settle()
        self._chores.settle()

    def resume_purchases(self) -> None:
        """Repeat the calls that were under way when the daemon died."""
        self._buyer.repeat_unfinished()

    def look(self) -> tuple[Step, ...]:
        """One look: read Slurm, then the cloud, decide, do.

        Returns:
            What was done.

        Raises:
            SlurmError, CloudError: one side cannot be read.
        """
        self._refuse(self._launcher.refusals())
        # Before Slurm is read: what ends meanwhile still counts as under way in this look.
        under_way = self._launcher.under_way()
        nodes = self._slurm.nodes()
        shown = self._cloud.instances()
        now = self._clock()
        instances = self._bindings.named(shown, now)
        there = {instance.name for instance in instances}
        awaited = self._state.awaited(now)
        if arrived := awaited & there:
            self._state.forget_awaited(arrived)
        before = replace(self._state.memory(), seen=self._memory.seen, misses=self._memory.misses)
        told = self._consoles.look(instances, before, self._settings, now)
        before = replace(before, reported=told | nodefiles.reported(self._settings.nodes_folder))
        before = replace(before, jobs=self._jobs(before.jobs, nodes, there))
        launching = under_way | (awaited - there) | (self._bindings.unaccounted(self._settings, now) - there)
        self._memory = replace(observe(before, nodes, instances, now), launching=launching)
        self._state.keep(self._memory, before)
        spent = self._spend(instances, now)
        self._guard.look(instances, under_way | awaited, self._memory.misses, spent)
        steps = decide(nodes, instances, self._memory, self._settings, now)
        names = {instance.id: instance.name for instance in instances}
        for step in steps:
            try:
                self._do(step, names, now)
            except (SlurmError, CloudError) as error:
                log.warning("%s: %s", type(step).__name__, error)
        nodefiles.write_hosts(self._settings.hosts_file, instances)
        if self._metrics_file is not None:
            counters = self._state.counters()
            text = metrics.render(self._settings, nodes, instances, self._memory, counters, spent, now)
            metrics.write(self._metrics_file, text)
        return steps

    def _spend(self, instances: tuple[Instance, ...], now: datetime) -> Decimal:
        """Add what instances have cost since the look before; CNY of this month."""
        month = budget.month(now)
        before, since = self._state.spending(month)
        total = before + budget.spent(instances, self._settings, since, now)
        self._state.spend(month, total, now)
        return total

    def _jobs(self, known: Mapping[str, int], nodes: tuple[Node, ...], there: set[str]) -> dict[str, int]:
        """For which job nodes are wanted; Slurm is asked where no message of ResumeProgram has told it."""
        jobs = dict(known)
        open_questions = {n.name for n in nodes if n.asked and n.name not in there and n.name not in jobs}
        if open_questions:
            jobs.update(dict.fromkeys(open_questions, 0))
            for job, wanted in self._slurm.jobs().items():
                mine = open_questions.intersection(wanted)
                jobs.update(dict.fromkeys(mine, job if len(wanted) > 1 else 0))
        return jobs

    def _do(self, step: Step, names: dict[str, str], now: datetime) -> None:
        match step:
            case Down(nodes, reason, hold):
                self._down(nodes, reason, hold)
            case Hold(nodes, reason):
                self._slurm.down(nodes, f"hpc: {reason}")
            case Drain(nodes, reason):
                log.info("drain: %s: %s", folded(nodes), reason)
                self._state.mark(nodes, reason, None)
                self._slurm.drain(nodes, f"hpc: {reason}")
            case PowerDown(nodes, why):
                log.info("power down: %s: %s", folded(nodes), why)
                self._slurm.power_down(nodes)
            case PowerUp(nodes):
                log.info("power up: %s", folded(nodes))
                self._slurm.power_up(nodes)
            case Resume(nodes):
                log.info("back in use: %s", folded(nodes))
                self._slurm.resume(nodes)
                self._state.unmark(nodes)
            case Terminate(instances, why):
                if count := self._chores.start(instances, _DELETE_SIZE, self._delete):
                    log.info("delete %d instances: %s", count, why)
                gone = {names[instance_id] for instance_id in instances}
                self._memory = replace(self._memory, seen=self._memory.seen - gone)
            case Extend(pool, instances):
                seconds = self._settings.pools[pool].auto_release
                self._chores.start(instances, _EXTEND_SIZE, lambda ids: self._cloud.extend(ids, seconds, now))
            case Failed():
                self._failed(step, now)
            case Started(pool, _):
                self._state.succeed(pool)
            case Launch(pool, nodes, job):
                nodefiles.forget(self._settings.nodes_folder, nodes)
                self._launcher.start(self._settings.pools[pool], nodes, job)

    def _delete(self, ids: list[str]) -> None:
        self._cloud.delete(ids)
        self._bindings.released(ids)

    def _down(self, nodes: tuple[str, ...], reason: str, hold: int) -> None:
        log.warning("down: %s: %s", folded(nodes), reason)
        self._state.mark(nodes, reason, self._clock() + timedelta(seconds=hold))
        self._slurm.down(nodes, f"hpc: {reason}")
        self._slurm.power_down(nodes)

    def _failed(self, step: Failed, now: datetime) -> None:
        log.warning("could not start: %s: %s", folded(step.nodes), step.reason)
        nodefiles.forget(self._settings.nodes_folder, step.nodes)
        # Nodes that slurmctld gave up have no mark yet; with one they are counted once.
        known = self._memory.marks
        self._state.mark([n for n in step.nodes if n not in known], step.reason, now + timedelta(seconds=FAILED_HOLD))
        limit = self._settings.failure_limit
        if step.alone and self._state.fail(step.pool, len(step.nodes)) >= limit:
            why = f"{limit} starts failed in a row: {step.reason}"
            self._state.stop(step.pool, until_recovered(step.pool, why))
            log.error("pool %s stops buying: %s", step.pool, step.reason)

    def _refuse(self, refusals: list[Refusal]) -> None:
        """Tell Slurm and the jobs what was not launched, many nodes with one call."""
        if not refusals:
            return
        grouped: dict[tuple[str, int], list[str]] = defaultdict(list)
        for refusal in refusals:
            # The job is kept back instead of its nodes: smaller jobs may find what they need.
            hold = refusal.hold if refusal.job is None else min(refusal.hold, FAILED_HOLD)
            grouped[refusal.reason, hold] += refusal.nodes
        try:
            waiting = self._slurm.jobs()
        except SlurmError as error:
            log.warning("jobs that wait are not known: %s", error)
            waiting = {}
        for (reason, hold), nodes in grouped.items():
            try:
                self._down(tuple(nodes), reason, hold)
            except SlurmError as error:
                log.warning("%s: %s", folded(nodes), error)
            self._launcher.done(tuple(nodes))
        wanted_by: dict[str, list[int]] = defaultdict(list)
        for job, names in waiting.items():
            for name in names:
                wanted_by[name].append(job)
        told: dict[tuple[str, int], set[int]] = defaultdict(set)
        for refusal in refusals:
            later = refusal.hold if refusal.job is not None else 0
            told[refusal.reason, later].update(job for name in refusal.nodes for job in wanted_by.get(name, ()))
        for (reason, later), jobs in told.items():
            if jobs:
                self._slurm.tell(sorted(jobs), f"waits for nodes: {reason}", later)


def jobs_of(entries: object) -> dict[str, int]:
    """Node -> job of SLURM_RESUME_FILE's jobs; what has another form is passed over.

    Slurm 22.05 writes a job's nodes as `nodes`, later releases those to be started as `nodes_resume`. Jobs with one
    node need no company, so they are left out.
    """
    found: dict[str, int] = {}
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        job = entry.get("job_id")
        try:
            nodes = expanded(str(entry.get("nodes_resume") or entry.get("nodes") or ""))
        except ValueError:
            continue
        if isinstance(job, int) and len(nodes) > 1:
            found.update(dict.fromkeys(nodes, job))
    return found


def _notify(text: str) -> None:
    """Tell systemd (sd_notify(3)); nothing where it did not start us."""
    import socket

    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.connect("\0" + address[1:] if address.startswith("@") else address)
            connection.sendall(text.encode())


def main() -> int:
    """Run until SIGTERM; exit code 2 where the settings are wrong."""
    parser = argparse.ArgumentParser(prog="hpc.elastic.daemon", description="Starts and releases compute nodes.")
    parser.add_argument("--settings", type=Path, required=True, help="pools.json")
    parser.add_argument(
        "--state", type=Path, default=Path(os.environ.get("STATE_DIRECTORY", ".")) / "elastic.sqlite", help="state file"
    )
    parser.add_argument("--metrics", type=Path, help="file for Prometheus' textfile collector")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    for library in ("alibabacloud", "apscheduler"):  # the credentials' refresh would tell of itself every minute
        logging.getLogger(library).setLevel(logging.WARNING)
    try:
        settings = load(asked.settings)
    except SettingsError as error:
        sys.stderr.write(f"HPC933: {error}\n")
        return 2
    for cap in settings.unwatched:
        log.warning("budget.%s is not watched: it is not in CNY, and prices are", cap)
    connection = Connection(
        settings.region, settings.endpoints.get("ecs"), settings.protocol, settings.ram_role or None
    )
    state = State(asked.state)
    daemon = Daemon(settings, Slurm(), Cloud(connection, settings.cluster), state, metrics_file=asked.metrics)
    signal.signal(signal.SIGTERM, lambda number, frame: daemon.stop())
    signal.signal(signal.SIGINT, lambda number, frame: daemon.stop())
    with Server(daemon.handle):
        _notify("READY=1")
        daemon.run()
    state.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
