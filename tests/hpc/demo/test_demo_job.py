"""The demo's job on a host that answers as a cluster does, with wrong answers, too."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from hpc.demo import job as demo_job
from hpc.demo.job import Host, run_job
from hpc.errors import CannotRunError

SERIAL = "Loading mpi\\nranks 1 cells 40 steps 20000 largest difference 1.177e-14"
PARALLEL = "ranks 2 cells 40 steps 20000 largest difference 1.177e-14"


def host(parallel: str = PARALLEL, states: str = "RUNNING", end: str = "COMPLETED") -> Host:
    """Answers by what is in the command; the job is in `states` once, then `end`."""
    seen = iter([states])

    def command(text: str) -> list[str]:
        if "sbatch" in text:
            answer = "7"
        elif "mpirun" in text:
            answer = SERIAL
        elif "sacct -X -n -P -j 7 -o State" in text:
            answer = f"{next(seen, end)}\\n--\\nRUNNING None\\n--\\n2"
        elif "NodeList" in text:
            answer = "mpi-[1-2]"
        elif "result-7" in text:
            answer = parallel
        else:
            answer = ""
        return ["sh", "-c", f"cat >/dev/null; printf {shlex.quote(answer)}"]

    return Host(command)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_job.time, "sleep", lambda seconds: None)


class Cloud:
    """A cloud with two elastic nodes and one instance that is always there."""

    def calls(self, action: str) -> list[dict[str, Any]]:
        return [{"at": 1.0}, {"at": 4e9}, {"at": 5e9}]  # before the submission, and far after it

    def instances(self) -> list[dict[str, Any]]:
        tags = {"hpc:pool": "mpi"}
        node = {"status": "Running", "price_hour": 3.5, "tags": tags}
        return [{"id": "i-1", **node}, {"id": "i-2", **node}, {"id": "i-3", **node, "tags": {}}]


def run(made: Host, nodes: int = 2) -> demo_job.Outcome:
    return run_job(made, nodes, Cloud(), lambda line: None)


def test_the_timeline_and_the_answers() -> None:
    outcome = run(host())
    assert [m.what for m in outcome.timeline] == [
        "submitted job 7 for 2 nodes; none is there",
        "RunInstances",
        "booted",
        "2 nodes registered",
        "running",
        "finished",
        "idle nodes released",
    ]
    assert outcome.serial == SERIAL.split("\\n")[1]
    assert outcome.parallel == PARALLEL
    assert outcome.nodes == "mpi-[1-2]"


@pytest.mark.parametrize(
    "parallel", ["", PARALLEL.replace("1.177e-14", "2.0e-01"), PARALLEL.replace("ranks 2", "ranks 1")]
)
def test_a_wrong_answer_is_found(parallel: str) -> None:
    with pytest.raises(CannotRunError) as caught:
        run(host(parallel))
    assert caught.value.code == "HPC813"


def test_a_failed_job_is_told_with_its_reason() -> None:
    with pytest.raises(CannotRunError, match="job 7 is FAILED") as caught:
        run(host(end="FAILED"))
    assert caught.value.code == "HPC812"


def test_a_command_that_fails_is_told_with_what_it_said() -> None:
    broken = Host(lambda text: ["sh", "-c", "echo 'disk full' >&2; exit 1"])
    with pytest.raises(CannotRunError, match="disk full") as caught:
        run(broken)
    assert caught.value.code == "HPC811"
