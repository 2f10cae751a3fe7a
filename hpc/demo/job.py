"""The job of the demonstration: a parallel program on nodes that are not there yet, checked with the serial answer."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from hpc.demo.meter import Meter
from hpc.errors import CannotRunError
from hpc.paths import PROJECT_ROOT

SOURCE = PROJECT_ROOT / "docs" / "mpi" / "cmake" / "heat.c"

#: The job's user (access.users of the local stack) and what is computed: cells in all, steps.
USER = "demo"
CELLS, STEPS = 40, 20_000

#: How long the job may take from its submission to its end, s; nodes have to be made for it.
PATIENCE_S = 420

#: How long its nodes may be there after it, s; they are idle for `idle` of the local stack first.
RELEASE_PATIENCE_S = 240

_RESULT = re.compile(r"ranks (\d+) cells (\d+) steps (\d+) largest difference (\S+)")


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something that happened, `seconds` after the submission."""

    seconds: float
    what: str


@dataclass(slots=True)
class Outcome:
    """What the job did.

    Attributes:
        timeline: in the order in which it happened.
        serial, parallel: the program's answer with one rank and with one rank per node.
        nodes: where it ran.
        spent_nodes, spent_always: CNY of the elastic nodes, and of the other instances, from the submission to the end.
    """

    timeline: list[Milestone] = field(default_factory=list)
    serial: str = ""
    parallel: str = ""
    nodes: str = ""
    spent_nodes: Decimal = Decimal(0)
    spent_always: Decimal = Decimal(0)


class Cloud(Protocol):
    """What is asked of the local cloud."""

    def calls(self, action: str) -> list[dict[str, Any]]:
        """The last calls of an action, oldest first."""
        ...

    def instances(self) -> list[dict[str, Any]]:
        """The instances, with their state, price and tags."""
        ...


class Host:
    """A host that runs commands.

    Args:
        command: makes the `ssh` call of a remote command.
    """

    def __init__(self, command: Callable[[str], list[str]]) -> None:
        self._command = command

    def run(self, text: str, stdin: str = "") -> str:
        """Standard output of a shell command.

        Raises:
            CannotRunError: HPC811, it failed.
        """
        try:
            done = subprocess.run(
                self._command(text), input=stdin, capture_output=True, text=True, timeout=180, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise CannotRunError(f"no answer to: {text}", code="HPC811", fix=_FIX) from error
        if done.returncode:
            told = (done.stderr or done.stdout).strip()[-1500:]
            raise CannotRunError(f"on the login node failed: {text}: {told}", code="HPC811", fix=_FIX)
        return done.stdout

    def as_user(self, text: str, stdin: str = "") -> str:
        """The same, as the job's user with a login shell."""
        return self.run(f"su - {USER} -c {shlex.quote(text)}", stdin)


_FIX = "look with `hpc ssh local`; `make demo` again goes on from here"


def run_job(login: Host, nodes: int, cloud: Cloud, told: Callable[[str], None]) -> Outcome:
    """Build the program, compute the serial answer, submit the job, and watch until its nodes are released.

    Args:
        login: a login node.
        nodes: how many nodes the job wants.
        cloud: where the nodes come from.
        told: gets a line for each milestone.

    Raises:
        CannotRunError: HPC811, a command failed; HPC812, the job did not end in time; HPC813, the answer is wrong.
    """
    outcome = Outcome()
    told("Building the program on the login node")
    login.as_user("mkdir -p heat && cat > heat/heat.c", SOURCE.read_text(encoding="utf-8"))
    login.as_user("cd heat && module load mpi && mpicc -O2 -o heat heat.c -lm")
    outcome.serial = login.as_user(f"cd heat && module load mpi && mpirun -np 1 ./heat {CELLS} {STEPS}").strip()
    script = (
        "#!/bin/bash\n"
        f"#SBATCH --nodes={nodes} --ntasks-per-node=1 --time=10 --output=result-%j.txt\n"
        "module load mpi\n"
        f"srun ./heat {CELLS // nodes} {STEPS}\n"
    )
    login.as_user("cat > heat/job.sh", script)
    submitted = time.time()
    job = login.as_user("cd heat && sbatch --parsable job.sh").strip()

    def reached(what: str, at: float | None = None) -> None:
        milestone = Milestone((at or time.time()) - submitted, what)
        outcome.timeline.append(milestone)
        told(f"{milestone.seconds:6.1f} s  {what}")

    reached(f"submitted job {job} for {nodes} nodes; none is there")
    watch = _Watch(login, job, nodes, cloud, submitted, reached)
    watch.until_finished()
    outcome.nodes = login.run(f"sacct -X -n -P -j {job} -o NodeList").strip()
    outcome.parallel = login.as_user(f"cat heat/result-{job}.txt").strip()
    _compare(outcome, nodes)
    watch.until_released()
    outcome.spent_nodes, outcome.spent_always = watch.meter.spent(elastic=True), watch.meter.spent(elastic=False)
    return outcome


class _Watch:
    """Looks at a job and its nodes, and tells each stage once."""

    def __init__(
        self, login: Host, job: str, nodes: int, cloud: Cloud, submitted: float, reached: Callable[..., None]
    ) -> None:
        self._login, self._job, self._nodes, self._cloud = login, job, nodes, cloud
        self._submitted, self._reached = submitted, reached
        self._told: set[str] = set()
        self.meter = Meter()

    def _once(self, what: str, at: float | None = None) -> None:
        if what not in self._told:
            self._told.add(what)
            self._reached(what, at)

    def _look_at_cloud(self) -> None:
        self.meter.look(self._cloud.instances(), time.time())
        if bought := self._called("RunInstances"):
            self._once("RunInstances", bought)
        if self.meter.running_nodes >= self._nodes:
            self._once("booted")

    def _called(self, action: str) -> float | None:
        """When an action was first called since the submission."""
        times = (float(call["at"]) for call in self._cloud.calls(action))
        return min((at for at in times if at >= self._submitted), default=None)

    def until_finished(self) -> None:
        """Until the job has ended."""
        deadline = self._submitted + PATIENCE_S
        while True:
            self._look_at_cloud()
            seen = self._login.run(
                f"sacct -X -n -P -j {self._job} -o State; echo --; squeue -h -j {self._job} -o '%T %r' 2>/dev/null; "
                "echo --; scontrol show node -o | grep -c -E 'State=(ALLOCATED|MIXED|IDLE)[+]CLOUD ' || true"
            ).split("--")
            state, waiting, up = (part.strip() for part in seen)
            if up.isdigit() and int(up) >= self._nodes:
                self._once(f"{self._nodes} nodes registered")
            if waiting.startswith("RUNNING") or state.startswith("COMPLETED"):
                self._once("running")
            if state.startswith("COMPLETED"):
                self._once("finished")
                return
            if state.startswith(("FAILED", "CANCELLED", "TIMEOUT", "OUT_OF")) or time.time() > deadline:
                reasons = self._login.run("sinfo -R -h -o '%n %E'; squeue -h -o '%i %T %r'").strip()
                raise CannotRunError(f"job {self._job} is {state or 'unknown'}: {reasons}", code="HPC812", fix=_FIX)
            time.sleep(1)

    def until_released(self) -> None:
        """Until the idle nodes are released."""
        ended = time.time()
        while time.time() < ended + RELEASE_PATIENCE_S:
            self._look_at_cloud()
            if released := self._called("DeleteInstances"):
                self._once("idle nodes released", released)
                return
            time.sleep(2)
        raise CannotRunError(f"the idle nodes were not released within {RELEASE_PATIENCE_S} s", code="HPC812", fix=_FIX)


def _compare(outcome: Outcome, nodes: int) -> None:
    serial, parallel = _RESULT.search(outcome.serial), _RESULT.search(outcome.parallel)
    if serial and parallel:
        outcome.serial, outcome.parallel = serial[0], parallel[0]  # without what `module load` says
        if serial.groups()[1:] == parallel.groups()[1:] and parallel[1] == str(nodes):
            return
    raise CannotRunError(
        f"the parallel answer {outcome.parallel!r} is not the serial one {outcome.serial!r}", code="HPC813", fix=_FIX
    )
