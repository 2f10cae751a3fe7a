"""From Slurm's request to launched nodes: the real daemon and its programs with an API of a second per call.

Bars: 4,000 nodes in 6 s with at most one call of scontrol per 1,000 nodes; 10,000 nodes within 10 % of the floor that
the account's rate of 5,000 instances a minute sets (on a clock four times as fast); a program of Slurm hands over in
60 ms. Baselines of the same run: one call after the other, the floor itself, and Python's own start.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from hpc.elastic.daemon import Daemon
from hpc.elastic.ecs import CloudError
from hpc.elastic.hostlists import folded
from hpc.elastic.instances import Instance
from hpc.elastic.launch import Batch, Candidate, batches
from hpc.elastic.nodes import Node, parse_nodes
from hpc.elastic.pace import WINDOW_S as PACED_S
from hpc.elastic.pace import Pace
from hpc.elastic.server import Server
from hpc.elastic.settings import InstanceTypeSettings, PoolSettings, Settings, ZoneSettings
from hpc.elastic.state import State

CALL_S = 1.0
NODES_BAR_S, CONTROL_BAR, FLOOR_BAR, HAND_OVER_BAR_S = 6.0, 1 / 1000, 1.10, 0.060
RATE, WINDOW_S, SPEED = 5000, 60.0, 4.0


class Api:
    """RunInstances that takes its time and refuses more than the rate; nothing else costs."""

    def __init__(self, call: float, window: float = WINDOW_S) -> None:
        self._call, self._window = call, window
        self._lock = threading.Lock()
        self._given: deque[tuple[float, int]] = deque()
        self.living: dict[str, Instance] = {}
        self.calls = self.throttled = self.at_once = self.most_at_once = 0
        self.last = 0.0

    def instances(self) -> tuple[Instance, ...]:
        """What there is."""
        with self._lock:
            return tuple(self.living.values())

    def launch(
        self, pool: PoolSettings, batch: Batch, candidate: Candidate, token: str, minimum: int, now: datetime
    ) -> tuple[str, ...]:
        """Launch a batch, or say that it is too much."""
        with self._lock:
            self.calls += 1
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self._call)
        with self._lock:
            self.at_once -= 1
            moment = time.monotonic()
            while self._given and self._given[0][0] <= moment - self._window:
                self._given.popleft()
            if sum(count for _, count in self._given) + len(batch.nodes) > RATE:
                self.throttled += 1
                raise CloudError("Throttling.User", "too much")
            self._given.append((moment, len(batch.nodes)))
            for name in batch.nodes:
                self.living[f"i-{name}"] = Instance(
                    f"i-{name}", name, pool.name, "Running", now, now + timedelta(hours=1), None,
                    candidate.type.name, candidate.zone.zone, candidate.charge,
                )  # fmt: skip
            self.last = moment
        return tuple(f"i-{name}" for name in batch.nodes)

    def quota_left(self, charge: str) -> int | None:
        """Enough, told as late as any other call."""
        time.sleep(self._call)
        return 10**9

    def extend(self, ids: Sequence[str], seconds: int, now: datetime) -> None:
        """Nothing."""

    def delete(self, ids: Iterable[str]) -> None:
        """Nothing."""


class Control:
    """slurmctld with all nodes asked for; counts what would be calls of its commands. The text is really parsed."""

    def __init__(self, names: Sequence[str]) -> None:
        self.calls = 0
        self._text = "".join(
            f"NodeName={name} CoresPerSocket=16 CPUAlloc=0 NodeAddr={name} RealMemory=60000 AllocMem=0 Sockets=1 "
            f"State=ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP ThreadsPerCore=1 Partitions=mpi BootTime=None\n"
            for name in names
        )

    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        self.calls += 1
        return parse_nodes(self._text)

    def jobs(self) -> Mapping[int, tuple[str, ...]]:
        """None."""
        self.calls += 1
        return {}

    def _count(self, nodes: Sequence[str], *_: object) -> None:
        self.calls += 1

    down = drain = _count
    power_down = power_up = resume = _count

    def tell(self, jobs: Sequence[int], text: str, later: int = 0) -> None:
        """Counted."""
        self.calls += 1


def settings(count: int) -> Settings:
    """One pool of so many nodes."""
    pool = PoolSettings(
        name="mpi", types=(InstanceTypeSettings("ecs.c8ae.4xlarge", 16, None, None, None),),
        zones=(ZoneSettings("cn-hangzhou-j", "vsw-1"),), charge="payg", spot_price_limit=None, spot_duration=0, min=0,
        max=count, idle=600, auto_release=3600, max_lifetime=None, resume_timeout=600, launch_template_id="lt-1",
        image_id=None, deployment_set_ids={}, security_group_id="sg-1", traffic_mode="HighPerformance", tags={},
    )  # fmt: skip
    return Settings(
        "cfd", "cn-hangzhou", "", {}, "https", None, None, None, None, None, {"mpi": pool}, launch_rate=RATE
    )


def launched(count: int, api: Api, *, job: bool, window: float = WINDOW_S) -> tuple[float, Control, dict[str, int]]:
    """Seconds from the message of ResumeProgram until the last instance is there."""
    names = [f"mpi-{number}" for number in range(1, count + 1)]
    control = Control(names)
    with tempfile.TemporaryDirectory() as folder:
        state = State(Path(folder) / "state")
        daemon = Daemon(settings(count), control, api, state)
        # The same rule on this run's clock.
        daemon._buyer._pace = Pace(RATE, PACED_S * window / WINDOW_S)
        jobs = [{"job_id": 1, "nodes_resume": folded(names)}] if job else []
        started = time.monotonic()
        daemon.handle({"operation": "resume", "nodes": folded(names), "jobs": jobs})
        daemon.look()
        daemon.settle()
        daemon.look()
        seconds = time.monotonic() - started
        counters = state.counters()
        daemon.close()
        state.close()
    if len(api.living) != count:
        raise SystemExit(f"only {len(api.living)} of {count} nodes were launched")
    return seconds, control, counters


def median(work: Callable[[], object], rounds: int = 15) -> float:
    """Median of seconds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def hand_over() -> tuple[float, float]:
    """Start of `resume` until the daemon has it, and the start of a Python that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        socket, taken = f"{folder}/socket", []
        environment = {"PATH": os.environ["PATH"], "HPC_ELASTIC_SOCKET": socket}
        command = [sys.executable, "-I", "-m", "hpc.elastic.resume", "mpi-[1-4000]"]
        with Server(taken.append, socket):
            ours = median(lambda: subprocess.run(command, env=environment, check=True))
        bare = median(lambda: subprocess.run([sys.executable, "-I", "-c", ""], env=environment, check=True))
    return ours, bare


def verdict(good: bool) -> str:
    """Whether a bar is held."""
    return "held" if good else "MISSED"


def main() -> int:
    """Print the figures; exit code 1 where a bar is missed."""
    good = []
    for job in (False, True):
        api = Api(CALL_S)
        seconds, control, _ = launched(4000, api, job=job)
        serial = len(batches("mpi", [f"mpi-{n}" for n in range(1, 4001)])) * CALL_S
        good += [seconds <= NODES_BAR_S, control.calls <= max(2, 4000 * CONTROL_BAR)]
        print(
            f"4,000 nodes {'of one job' if job else 'of many jobs'}: {seconds:.2f} s (bar {NODES_BAR_S:.0f} s, "
            f"{verdict(good[-2])}), one call after the other {serial:.0f} s: {serial / seconds:.1f} times as fast; "
            f"{control.calls} calls of scontrol ({verdict(good[-1])}), {api.calls} of RunInstances, "
            f"{api.most_at_once} at once"
        )
    window = WINDOW_S / SPEED
    api = Api(CALL_S / SPEED, window)
    seconds, control, _ = launched(10_000, api, job=False, window=window)
    floor = window + CALL_S / SPEED
    good.append(seconds / floor <= FLOOR_BAR)
    print(
        f"10,000 nodes at 5,000 a minute: {seconds * SPEED:.1f} s, floor {floor * SPEED:.1f} s, ratio "
        f"{seconds / floor:.3f} (bar {FLOOR_BAR}, {verdict(good[-1])}); {api.throttled} calls were throttled, "
        f"{control.calls} calls of scontrol"
    )
    ours, bare = hand_over()
    good.append(ours <= HAND_OVER_BAR_S)
    print(
        f"resume, start to hand-over: {1000 * ours:.0f} ms (bar {1000 * HAND_OVER_BAR_S:.0f} ms, {verdict(good[-1])}), "
        f"a Python that does nothing {1000 * bare:.0f} ms: ratio {ours / bare:.2f}"
    )
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
