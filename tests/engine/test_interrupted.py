"""`hpc up` as a process of its own that is interrupted, killed, or run twice at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc.deploy.local import ensure_cloud, pulumi_dir
from hpc.paths import PROJECT_ROOT
from localcloud.api.client import LocalCloud
from tests.engine.conftest import Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def cloud(life: Stack, plugins: str) -> LocalCloud:
    life.write()
    cloud = ensure_cloud(lambda line: None, hosts=False)
    cloud.set(instance_start=6, nas_creation=4)  # so that there is a middle
    return cloud


def hpc(life: Stack, command: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from hpc.cli.main import main; main()", command, str(life.file), *arguments],
        cwd=PROJECT_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str], code: int) -> str:
    """Wait for the end; what was said."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, out + err
    assert "Traceback" not in err
    return err


def until(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def engine_of(life: Stack, process: subprocess.Popen[str]) -> int:
    """The engine that a run of `hpc` is parent of."""
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text().strip() == "pulumi":
                return int(child)
    raise AssertionError("no engine")


def names(cloud: LocalCloud) -> Counter[tuple[str, str]]:
    """How many resources of each kind and name there are."""
    found: Counter[tuple[str, str]] = Counter()
    for kind, documents in cloud.snapshot()["resources"].items():
        for document in documents:
            name = document.get("name") or document.get("hostname") or document.get("description") or document["id"]
            found[kind, str(name)] += 1
    return found


def whole(cloud: LocalCloud) -> None:
    """Nothing is missing and nothing is there twice."""
    counts = cloud.counts()
    assert (counts["instance"], counts["vpc"], counts["file_system"], counts["nat"], counts["eip"]) == (2, 1, 2, 1, 2)
    assert (counts["security_group"], counts["vswitch"], counts["mount_target"], counts["launch_template"]) == (
        2,
        1,
        2,
        1,
    )
    twice = {
        what: number for what, number in names(cloud).items() if number > 1 and what[0] not in ("rule", "disk", "eni")
    }
    assert not twice


def test_interrupted_by_ctrl_c(life: Stack, cloud: LocalCloud) -> None:
    run = hpc(life, "up", "--yes")
    until(lambda: cloud.counts().get("security_group", 0) > 0, run)
    run.send_signal(signal.SIGINT)
    said = finished(run, 130)
    assert "running it again goes on from there" in said
    assert cloud.counts().get("instance", 0) < 2, "it was stopped in the middle"
    finished(hpc(life, "up", "--yes"), 0)
    whole(cloud)


@pytest.mark.parametrize("engine_too", [True, False], ids=["with-its-engine", "alone"])
def test_killed_in_the_middle(life: Stack, cloud: LocalCloud, engine_too: bool) -> None:
    run = hpc(life, "up", "--yes")
    until(lambda: cloud.counts().get("instance", 0) > 0, run)  # the engine does not know its id yet
    engine = engine_of(life, run)
    for process in [engine, run.pid] if engine_too else [run.pid]:
        os.kill(process, signal.SIGKILL)
    run.communicate()
    if engine_too:
        said = finished(hpc(life, "up", "--yes"), 1)
        assert "HPC712" in said
        assert "hpc repair" in said
    finished(hpc(life, "repair"), 0)
    assert not Path(f"/proc/{engine}").exists(), "nobody writes the state any more"
    finished(hpc(life, "up", "--yes"), 0)
    whole(cloud)
    finished(hpc(life, "destroy", "--yes"), 0)
    assert cloud.counts() == {}


def test_two_at_once(life: Stack, cloud: LocalCloud) -> None:
    first = hpc(life, "up", "--yes")
    until(lambda: bool(list((pulumi_dir() / "state").glob(".pulumi/locks/**/*.json"))), first)
    until(lambda: cloud.counts().get("vpc", 0) > 0, first)
    cloud.set(instance_start=20)
    said = finished(hpc(life, "up", "--yes"), 1)
    assert "HPC712" in said
    assert "another run" in said
    finished(first, 0)
    whole(cloud)
