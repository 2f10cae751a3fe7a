"""The daemon: looks, decides, does. One loop is the only janitor; launches run beside it in threads.

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
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hpc.elastic.decide import decide
from hpc.elastic.ecs import Cloud, CloudError, Connection
from hpc.elastic.failures import Failure
from hpc.elastic.instances import Instance
from hpc.elastic.launch import Batch, Candidate, batches, candidates
from hpc.elastic.memory import observe
from hpc.elastic.ports import Controller, Provider
from hpc.elastic.server import Server
from hpc.elastic.settings import PoolSettings, Settings, SettingsError, load
from hpc.elastic.slurm import Slurm, SlurmError, expanded, folded
from hpc.elastic.state import Purchase, State
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

log = logging.getLogger("hpc.elastic")

#: Calls of RunInstances at once.
PARALLEL_LAUNCHES = 16


class Daemon:
    """Keeps Slurm's nodes and the cloud's instances together.

    Args:
        settings: of the cluster.
        slurm, cloud: the two sides.
        state: what survives a restart.
        clock: the time in UTC.
    """

    def __init__(
        self,
        settings: Settings,
        slurm: Controller,
        cloud: Provider,
        state: State,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._slurm = slurm
        self._cloud = cloud
        self._state = state
        self._clock = clock
        self._memory = state.memory()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(PARALLEL_LAUNCHES, thread_name_prefix="launch")
        self._lock = threading.Lock()
        #: Nodes whose launch is under way, and nodes whose new instance the cloud does not show yet (until when).
        self._launching: set[str] = set()
        self._awaited: dict[str, datetime] = {}

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
                self._state.add_jobs(jobs_of(message.get("jobs")))
        else:
            raise ValueError(f"operation {operation!r} is not known")
        self._wake.set()

    def run(self) -> None:
        """Look and act until `stop`."""
        self.resume_purchases()
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                self.look()
            except (SlurmError, CloudError) as error:
                log.warning("this look failed: %s", error)
            self._wake.wait(max(0.1, self._settings.poll - (time.monotonic() - started)))
            self._wake.clear()
        self._threads.shutdown(wait=True)

    def stop(self) -> None:
        """End the loop after the look under way; launches under way are waited for."""
        self._stopping.set()
        self._wake.set()

    def look(self) -> tuple[Step, ...]:
        """One look: read Slurm, then the cloud, decide, do.

        Returns:
            What was done.
        """
        nodes = self._slurm.nodes()
        instances = self._cloud.instances()
        now = self._clock()
        there = {instance.name for instance in instances}
        with self._lock:
            self._awaited = {n: until for n, until in self._awaited.items() if n not in there and until > now}
            launching = frozenset(self._launching | set(self._awaited))
        memory = replace(self._state.memory(), misses=self._memory.misses, reported=self._reported())
        self._memory = replace(observe(memory, nodes, instances, now), launching=launching)
        self._state.keep_requests(self._memory.requested, self._memory.jobs)
        steps = decide(nodes, instances, self._memory, self._settings, now)
        for step in steps:
            try:
                self._do(step, now)
            except (SlurmError, CloudError) as error:
                log.warning("%s: %s", type(step).__name__, error)
        self._write_hosts(instances)
        return steps

    def settle(self) -> None:
        """Wait for the launches under way."""
        while True:
            with self._lock:
                if not self._launching:
                    return
            time.sleep(0.01)

    def _do(self, step: Step, now: datetime) -> None:
        match step:
            case Down(nodes, reason, hold):
                log.warning("down: %s: %s", folded(nodes), reason)
                self._state.mark(nodes, reason, now + timedelta(seconds=hold))
                self._slurm.down(nodes, f"hpc: {reason}")
                self._slurm.power_down(nodes)
            case Drain(nodes, reason):
                log.info("drain: %s: %s", folded(nodes), reason)
                self._state.mark(nodes, reason, None)
                self._slurm.drain(nodes, f"hpc: {reason}")
            case PowerDown(nodes, why):
                log.info("power down: %s: %s", folded(nodes), why)
                self._slurm.power_down(nodes)
            case PowerUp(nodes):
                self._slurm.power_up(nodes)
            case Resume(nodes):
                log.info("back in use: %s", folded(nodes))
                self._slurm.resume(nodes)
                self._state.unmark(nodes)
            case Terminate(instances, why):
                log.info("delete %d instances: %s", len(instances), why)
                self._cloud.delete(instances)
            case Extend(pool, instances):
                self._cloud.extend(instances, self._settings.pools[pool].auto_release, now)
            case Failed(pool, nodes, reason):
                self._failed(pool, nodes, reason)
            case Started(pool, _):
                self._state.succeed(pool)
            case Launch(pool, nodes, job):
                self._start_launch(self._settings.pools[pool], nodes, job)

    def _failed(self, pool: str, nodes: tuple[str, ...], reason: str) -> None:
        for node in nodes:
            self._forget_report(node)
        if self._state.fail(pool, len(nodes)) >= self._settings.failure_limit:
            self._state.stop(
                pool,
                f"{self._settings.failure_limit} starts failed in a row, last: {reason}; then run on the management "
                f"node: hpc.elastic.recover {pool}",
            )
            log.error("pool %s stops buying: %s", pool, reason)

    def _start_launch(self, pool: PoolSettings, nodes: tuple[str, ...], job: int | None) -> None:
        groups: list[Future[None]] = []
        with self._lock:
            self._launching.update(nodes)
        together = job is not None and len(nodes) > 1
        if together:
            groups.append(self._threads.submit(self._launch_guarded, pool, batches(pool.name, nodes), job))
        else:
            for batch in batches(pool.name, nodes):
                groups.append(self._threads.submit(self._launch_guarded, pool, (batch,), None))

    def _launch_guarded(self, pool: PoolSettings, rows: tuple[Batch, ...], job: int | None) -> None:
        """Launch in a thread: whatever happens, its nodes are no longer under way afterwards."""
        nodes = [node for row in rows for node in row.nodes]
        try:
            self._launch(pool, rows, job)
        except Exception:
            log.exception("launch of %s", folded(nodes))
        finally:
            with self._lock:
                self._launching.difference_update(nodes)
            self._wake.set()

    def _launch(self, pool: PoolSettings, rows: tuple[Batch, ...], job: int | None) -> None:
        """Buy rows of nodes: all of them for a job, as many as there are for single nodes."""
        bought: list[str] = []
        for row in rows:
            missing, reason, hold, ids = self._buy(pool, row, whole=job is not None)
            bought += ids
            if not missing:
                continue
            if job is None:
                self._refuse(missing, reason, hold)
                return
            # A job gets all of its nodes or none: what was bought for nothing is let go, counted and reported.
            nodes = tuple(node for part in rows for node in part.nodes)
            if bought:
                self._state.count("wasted", len(bought))
                log.warning("job %s: %d instances were launched for nothing", job, len(bought))
                self._cloud.delete(bought)
            with self._lock:
                for node in nodes:
                    self._awaited.pop(node, None)
            self._refuse(nodes, reason, hold)
            self._slurm.comment(job, f"waits for nodes: {reason}")
            return

    def _refuse(self, nodes: tuple[str, ...], reason: str, hold: int) -> None:
        log.warning("not launched: %s: %s", folded(nodes), reason)
        now = self._clock()
        self._state.mark(nodes, reason, now + timedelta(seconds=hold))
        self._slurm.down(nodes, f"hpc: {reason}")
        self._slurm.power_down(nodes)

    def _buy(self, pool: PoolSettings, row: Batch, *, whole: bool) -> tuple[tuple[str, ...], str, int, tuple[str, ...]]:
        """Try the ways to buy a row, one after the other.

        Returns:
            Nodes that were not bought, why, for how many seconds they stay out of use, and ids of what was bought.
        """
        left = row.nodes
        ids: list[str] = []
        reason, hold = "no instance type of the pool is to be had", self._settings.cooldown
        for candidate in candidates(pool, self._state.cooldowns(), self._clock()):
            for part in batches(pool.name, left):
                got, failure = self._call(pool, part, candidate, len(part.nodes) if whole else 1)
                ids += got
                left = tuple(node for node in left if node not in part.nodes[: len(got)])
                if failure is None:
                    continue
                reason = f"{failure.failure.value}: {candidate}: {failure.code}"
                if failure.failure is Failure.STOCK:
                    until = self._clock() + timedelta(seconds=self._settings.cooldown)
                    self._state.cool(candidate.key, until)
                elif failure.failure is Failure.QUOTA:
                    return left, f"{reason}: ask for a higher quota in Quota Center", hold, tuple(ids)
                elif failure.failure is Failure.REFUSED:
                    self._state.stop(pool.name, f"{reason}; mend it, then hpc.elastic.recover {pool.name}")
                    return left, str(failure), hold, tuple(ids)
                elif failure.failure in (Failure.THROTTLED, Failure.PASSING):
                    return left, reason, 30, tuple(ids)
                break
            if not left:
                break
        return left, reason, hold, tuple(ids)

    def _call(
        self, pool: PoolSettings, row: Batch, candidate: Candidate, minimum: int
    ) -> tuple[tuple[str, ...], CloudError | None]:
        """One call, its token written down before it is made."""
        token = row.token(self._state.count("attempt"), candidate)
        purchase = Purchase(token, pool.name, row.nodes, candidate.key, minimum)
        self._state.begin(purchase)
        try:
            ids = self._cloud.launch(pool, row, candidate, token, minimum, self._clock())
        except CloudError as error:
            if error.failure is not Failure.PASSING:
                self._state.end(token)
            log.warning("%s of %s: %s", folded(row.nodes), candidate, error)
            return (), error
        self._await(row.nodes[: len(ids)])
        self._state.end(token)
        self._state.count("launched", len(ids))
        log.info("launched %d of %s as %s", len(ids), folded(row.nodes), candidate)
        return ids, None

    def _await(self, nodes: tuple[str, ...]) -> None:
        """The cloud may not show these at once: do not launch them again meanwhile."""
        until = self._clock() + timedelta(seconds=self._settings.missing_age)
        with self._lock:
            self._awaited.update(dict.fromkeys(nodes, until))

    def resume_purchases(self) -> None:
        """Repeat the calls that were under way when the daemon died: the same tokens do not buy twice."""
        for purchase in self._state.unfinished():
            pool = self._settings.pools.get(purchase.pool)
            found = None
            if pool is not None:
                ways = candidates(pool, {}, self._clock())
                found = next((way for way in ways if way.key == purchase.key), None)
            if pool is None or found is None:
                self._state.end(purchase.token)
                continue
            row = Batch(purchase.pool, purchase.nodes)
            try:
                ids = self._cloud.launch(pool, row, found, purchase.token, purchase.minimum, self._clock())
                self._await(row.nodes[: len(ids)])
                log.info("launch of %s is known again after a restart: %d", folded(row.nodes), len(ids))
            except CloudError as error:
                log.warning("launch of %s before the restart: %s", folded(row.nodes), error)
                if error.failure is Failure.PASSING:
                    continue
            self._state.end(purchase.token)

    def _reported(self) -> dict[str, str]:
        """Reasons that nodes left on shared storage: `<node>.failed` with one line."""
        folder = self._settings.nodes_folder
        if folder is None or not folder.is_dir():
            return {}
        found = {}
        for file in folder.glob("*.failed"):
            if parse_node_name(file.stem):
                try:
                    found[file.stem] = file.read_text(encoding="utf-8", errors="replace").strip()[:200] or "no reason"
                except OSError:
                    continue
        return found

    def _forget_report(self, node: str) -> None:
        folder = self._settings.nodes_folder
        if folder is not None:
            (folder / f"{node}.failed").unlink(missing_ok=True)

    def _write_hosts(self, instances: tuple[Instance, ...]) -> None:
        """`IP name` lines of living nodes, for name resolution on the nodes; written only when they change."""
        file = self._settings.hosts_file
        if file is None or not file.parent.is_dir():
            return
        lines = sorted(f"{i.address} {i.name}\n" for i in instances if i.address and parse_node_name(i.name))
        text = "".join(lines)
        try:
            if file.exists() and file.read_text(encoding="ascii") == text:
                return
            part = file.with_name(f".{file.name}.part")
            part.write_text(text, encoding="ascii")
            part.replace(file)
        except OSError as error:
            log.warning("%s: %s", file, error)


def jobs_of(entries: object) -> dict[str, int]:
    """Node -> job of SLURM_RESUME_FILE's jobs; what has another form is passed over.

    Jobs with one node need no company, so they are left out.
    """
    found: dict[str, int] = {}
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        job = entry.get("job_id")
        try:
            nodes = expanded(str(entry.get("nodes_resume") or ""))
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
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("alibabacloud").setLevel(logging.WARNING)
    try:
        settings = load(asked.settings)
    except SettingsError as error:
        sys.stderr.write(f"HPC933: {error}\n")
        return 2
    connection = Connection(
        settings.region, settings.endpoints.get("ecs"), settings.protocol, settings.ram_role or None
    )
    state = State(asked.state)
    daemon = Daemon(settings, Slurm(), Cloud(connection, settings.cluster), state)
    signal.signal(signal.SIGTERM, lambda number, frame: daemon.stop())
    signal.signal(signal.SIGINT, lambda number, frame: daemon.stop())
    with Server(daemon.handle):
        _notify("READY=1")
        daemon.run()
    state.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
