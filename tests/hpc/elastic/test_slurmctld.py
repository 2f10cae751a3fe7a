"""The daemon with the real slurmctld, its real programs and a model of the cloud: what no table can tell."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hpc.elastic.daemon import Daemon
from hpc.elastic.server import Server
from hpc.elastic.slurm import Slurm, SlurmError
from hpc.elastic.state import State
from tests.hpc.elastic.settings_for_tests import TYPES, ZONES, pool, settings
from tests.hpc.elastic.simulation import Clock, FakeCloud
from tests.hpc.slurm.conftest import Slurm as Programs
from tests.hpc.slurm.conftest import slurm  # noqa: F401  (a fixture)
from tests.hpc.slurm.test_real_slurm import controller, free_port, munge

pytestmark = pytest.mark.slow

CONFIGURATION = """
ClusterName=cfd
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
TreeWidth=65533
JobRequeue=1
PrivateData=cloud
ResumeProgram={folder}/resume
SuspendProgram={folder}/suspend
ResumeFailProgram={folder}/suspend
ResumeRate=0
SuspendRate=0
ResumeTimeout=25
SuspendTimeout=5
SuspendTime=300
SlurmctldParameters=cloud_reg_addrs,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=1
PluginDir={plugins}
AuthInfo=socket={folder}/munge.socket
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
SlurmdLogFile={folder}/slurmd.log
SlurmdPort={slurmd_port}
NodeName=mpi-[1-5] CPUs=1 State=CLOUD
NodeName=mpi-6 CPUs=1 RealMemory=99999999 State=CLOUD
PartitionName=mpi Nodes=mpi-[1-6] Default=YES State=UP
"""


class Now(Clock):
    """The real time, for the model of the cloud."""

    @property
    def now(self) -> datetime:  # type: ignore[override]
        return datetime.now(UTC)

    @now.setter
    def now(self, value: datetime) -> None:
        pass


class Live:
    """slurmctld, the daemon in a thread, and the cloud."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cloud = FakeCloud(Now(), boot=10**6)
        tuning = {"poll": 1, "cooldown": 25, "missing_limit": 2, "missing_age": 3}
        self.settings = settings(pool(max=6, resume_timeout=600), tuning=tuning)
        self.state = State(folder / "elastic.sqlite")
        self.daemon = Daemon(self.settings, Slurm(), self.cloud, self.state)

    def states(self, *names: str) -> list[str]:
        found = {node.name: node for node in Slurm().nodes()}
        return ["+".join(sorted(found[name].states - {"CLOUD", "NOT_RESPONDING"})) for name in names]

    def command(self, *words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout

    def until(self, what: Callable[[], Any], seconds: float = 40) -> None:
        deadline = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < deadline, self.command("scontrol", "show", "node", "--all", "--oneliner")
            time.sleep(0.2)


@pytest.fixture
def live(slurm: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:  # noqa: F811
    for name, module in (("resume", "resume"), ("suspend", "suspend")):
        program = tmp_path / name
        program.write_text(
            f"#!/bin/sh\nexport HPC_ELASTIC_SOCKET={tmp_path}/socket\nunset LD_LIBRARY_PATH\n"
            f'exec {sys.executable} -I -m hpc.elastic.{module} "$@" 2>>{tmp_path}/programs.log\n'
        )
        program.chmod(0o755)
    (tmp_path / "slurm.conf").write_text(
        CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=tmp_path, port=free_port(),
            slurmd_port=free_port(), plugins=slurm.libraries / "slurm-wlm",
        )
    )  # fmt: skip
    # Where slurmctld cannot resolve the name of a node it tries for ten seconds, and answers nobody meanwhile.
    hosts = Path("/etc/hosts").read_text() + "".join(f"127.0.1.{n} mpi-{n}\n" for n in range(1, 7))
    (tmp_path / "hosts").write_text(hosts)
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "slurmctld-wlm"
    wrapper.write_text(
        f"#!/bin/sh\nexec unshare --mount sh -c 'mount --bind {tmp_path}/hosts /etc/hosts && "
        f'exec {slurm.root}/usr/sbin/slurmctld-wlm "$@"\' slurmctld "$@"\n'
    )
    wrapper.chmod(0o755)
    environment = slurm.environment | {"SLURM_CONF": str(tmp_path / "slurm.conf")}
    environment["PATH"] = f"{tmp_path}/bin:{environment['PATH']}"
    for key in ("PATH", "LD_LIBRARY_PATH", "SLURM_CONF"):
        monkeypatch.setenv(key, environment[key])
    with munge(slurm, tmp_path), controller(slurm, tmp_path, dict(os.environ)):
        cluster = Live(tmp_path)
        with Server(cluster.daemon.handle, str(tmp_path / "socket")):
            thread = threading.Thread(target=cluster.daemon.run)
            thread.start()
            try:
                yield cluster
            finally:
                cluster.daemon.stop()
                thread.join(60)
                cluster.state.close()


def submit(live: Live, *options: str) -> int:
    answer = live.command("sbatch", "--output=/dev/null", "--wrap=sleep 60", *options)
    return int(answer.split()[-1])


def test_a_job_that_cannot_have_its_nodes(live: Live) -> None:
    key = (TYPES[0], ZONES[0], "payg")
    live.cloud.stock[key] = 2
    job = submit(live, "--nodes=4")
    names = [f"mpi-{n}" for n in range(1, 5)]
    live.until(lambda: live.states(*names) == ["DOWN+POWERED_DOWN"] * 4)
    assert live.cloud.bought == 0, "all or none: the programs told which nodes belong together"
    told = live.command("sinfo", "--list-reasons", "--noheader", "--format=%n|%E")
    assert [line.split("|")[0] for line in told.splitlines()] == names
    assert "hpc: no stock: ecs.c8ae.4xlarge payg in cn-hangzhou-j: OperationDenied.NoStock" in told
    shown = live.command("scontrol", "show", "job", str(job))
    assert "AdminComment=waits for nodes: no stock" in shown and "JobState=PENDING" in shown
    begin = re.search(r"StartTime=(\S+)", shown)
    assert begin and begin[1] != "Unknown"
    # A second job wants less and gets it.
    submit(live, "--nodes=2")
    live.until(lambda: live.states("mpi-5", "mpi-6") == ["ALLOCATED+POWERING_UP"] * 2)
    live.until(lambda: len(live.cloud.living) == 2)
    # The cool-down ends by itself; without the job they are not asked for again.
    live.command("scancel", str(job))
    live.until(lambda: live.states(*names) == ["IDLE+POWERED_DOWN"] * 4, 60)
    assert not (live.folder / "programs.log").read_text()


def test_nodes_that_do_not_register_come_back(live: Live) -> None:
    submit(live, "--nodes=1", "--nodelist=mpi-1")
    live.until(lambda: len(live.cloud.living) == 1)
    # ResumeTimeout is 25 s here: slurmctld gives up before the daemon would.
    live.until(lambda: "ResumeTimeout" in Slurm().nodes()[0].reason, 60)
    live.until(lambda: not live.cloud.living)
    assert live.state.memory().failures == {"mpi": 1}
    # It stays out of use for a while, so that people can read why; given back by hand it is in use.
    live.until(lambda: live.state.memory().marks["mpi-1"].held)
    Slurm().resume(["mpi-1"])
    time.sleep(3)
    assert live.states("mpi-1") == ["IDLE+POWERED_DOWN"]


def test_what_people_set_stays(live: Live) -> None:
    live.command("scontrol", "update", "nodename=mpi-1", "state=down", "reason=memory [see ticket=7] Comment=x")
    live.command("scontrol", "update", "nodename=mpi-2", "state=drain", "reason=look")
    live.command("scontrol", "update", "nodename=mpi-3", "state=power_up")
    live.until(lambda: len(live.cloud.living) == 1)
    time.sleep(3)
    assert live.states("mpi-1", "mpi-2", "mpi-3") == [
        "DOWN+POWERED_DOWN",
        "DRAIN+IDLE+POWERED_DOWN",
        "IDLE+POWERING_UP",
    ]
    assert Slurm().nodes()[0].reason.startswith("memory [see ticket=7]")


@contextmanager
def slurmd(slurm: Programs, live: Live, name: str) -> Iterator[None]:  # noqa: F811
    """A real slurmd that takes itself for a node: with a host name, names and a slurmstepd of its own."""
    sbin = live.folder / "sbin"
    sbin.mkdir()
    (live.folder / "spool").mkdir()
    shutil.copy(slurm.root / "usr/sbin/slurmstepd-wlm", sbin / "slurmstepd")
    mounts = f"mount --bind {live.folder}/hosts /etc/hosts && mount --bind {sbin} /usr/sbin"
    server = subprocess.Popen(
        ["unshare", "--mount", "--uts", "sh", "-c", f"hostname {name} && {mounts} && exec slurmd-wlm -D -b"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        server.kill()
        server.wait(30)


def test_a_node_that_registers_with_too_little_memory(live: Live, slurm: Programs) -> None:  # noqa: F811
    job = submit(live, "--nodes=1", "--nodelist=mpi-6")
    # Registered before this, slurmctld would run the job all the same.
    live.until(lambda: live.states("mpi-6") == ["ALLOCATED+POWERING_UP"])
    live.until(lambda: len(live.cloud.living) == 1)
    with slurmd(slurm, live, "mpi-6"):
        live.until(lambda: live.state.memory().failures == {"mpi": 1})
        live.until(lambda: not live.cloud.living)
    live.until(lambda: live.states("mpi-6")[0].startswith("DOWN+") and "POWERED_DOWN" in live.states("mpi-6")[0])
    told = live.command("sinfo", "--list-reasons", "--noheader", "--format=%n|%E")
    assert "mpi-6|hpc: registered with less than slurm.conf says: Low RealMemory (reported:" in told
    assert "JobState=PENDING" in live.command("scontrol", "show", "job", str(job))
    assert live.cloud.bought == 1


def test_errors_of_scontrol_are_told(live: Live) -> None:
    with pytest.raises(SlurmError, match=r"(?i)invalid node"):
        Slurm().resume(["nobody-1"])
    Slurm().tell([999999], "text")
