"""The job of the demonstration: a parallel program on nodes that are not there yet, checked with the serial answer."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hpc.errors import CannotRunError
from hpc.paths import PROJECT_ROOT

SOURCE = PROJECT_ROOT / "docs" / "mpi" / "cmake" / "heat.c"

#: The job's user (access.users of the local stack) and what is computed: cells in all, steps.
USER = "demo"
CELLS, STEPS = 40, 20_000

#: How long the job may take from its submission to its end, s; nodes have to be made for it.
PATIENCE_S = 420

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
    """

    timeline: list[Milestone] = field(default_factory=list)
    serial: str = ""
    parallel: str = ""
    nodes: str = ""


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


def run_job(login: Host, nodes: int, calls: Callable[[str], list[float]], told: Callable[[str], None]) -> Outcome:
    """Build the program, compute the serial answer, submit the job, and watch until its nodes are released.

    Args:
        login: a login node.
        nodes: how many nodes the job wants.
        calls: times (s since 1970) at which an API action was called.
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
    _watch(login, job, nodes, submitted, calls, reached)
    outcome.nodes = login.run(f"sacct -X -n -P -j {job} -o NodeList").strip()
    outcome.parallel = login.as_user(f"cat heat/result-{job}.txt").strip()
    _compare(outcome, nodes)
    _watch_release(submitted, calls, reached)
    return outcome


def _watch(
    login: Host,
    job: str,
    nodes: int,
    submitted: float,
    calls: Callable[[str], list[float]],
    reached: Callable[..., None],
) -> None:
    """Until the job has ended; each stage is told once."""
    asked = registered = running = False
    deadline = submitted + PATIENCE_S
    while True:
        if not asked and (bought := [at for at in calls("RunInstances") if at >= submitted]):
            asked = True
            reached("RunInstances", min(bought))
        seen = login.run(
            f"sacct -X -n -P -j {job} -o State; echo --; squeue -h -j {job} -o '%T %r' 2>/dev/null; echo --; "
            "scontrol show node -o | grep -c -E 'State=(ALLOCATED|MIXED|IDLE)[+]CLOUD ' || true"
        ).split("--")
        state, waiting, up = (part.strip() for part in seen)
        if not registered and up.isdigit() and int(up) >= nodes:
            registered = True
            reached(f"{nodes} nodes registered")
        if not running and (waiting.startswith("RUNNING") or state.startswith("COMPLETED")):
            running = True
            reached("running")
        if state.startswith("COMPLETED"):
            reached("finished")
            return
        if state.startswith(("FAILED", "CANCELLED", "TIMEOUT", "OUT_OF")) or time.time() > deadline:
            reasons = login.run("sinfo -R -h -o '%n %E'; squeue -h -o '%i %T %r'").strip()
            raise CannotRunError(f"job {job} is {state or 'unknown'}: {reasons}", code="HPC812", fix=_FIX)
        time.sleep(1)


def _watch_release(submitted: float, calls: Callable[[str], list[float]], reached: Callable[..., None]) -> None:
    """Until the idle nodes are released."""
    ended = time.time()
    while time.time() < ended + 240:
        if released := [at for at in calls("DeleteInstances") if at >= submitted]:
            reached("idle nodes released", min(released))
            return
        time.sleep(2)
    raise CannotRunError("the idle nodes were not released within 240 s", code="HPC812", fix=_FIX)


def _compare(outcome: Outcome, nodes: int) -> None:
    serial, parallel = _RESULT.search(outcome.serial), _RESULT.search(outcome.parallel)
    if serial and parallel:
        outcome.serial, outcome.parallel = serial[0], parallel[0]  # without what `module load` says
        if serial.groups()[1:] == parallel.groups()[1:] and parallel[1] == str(nodes):
            return
    raise CannotRunError(
        f"the parallel answer {outcome.parallel!r} is not the serial one {outcome.serial!r}", code="HPC813", fix=_FIX
    )
