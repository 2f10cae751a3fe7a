"""slurmctld and names that a resolver leaves it waiting for: the hosts file of the scripts keeps it from asking."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hpc.paths import PROJECT_ROOT
from tests.hpc.slurm.conftest import Slurm
from tests.hpc.slurm.test_real_slurm import free_port, munge

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CONFIGURATION = """
ClusterName=names
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmctldPort={port}
SlurmdPort={slurmd_port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TreeWidth=65533
CommunicationParameters=NoAddrCache
PrivateData=cloud
ResumeProgram=/bin/true
SuspendProgram=/bin/true
ResumeTimeout=5
SuspendTimeout=1
SuspendTime=300
SlurmctldParameters=cloud_reg_addrs,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=1
PluginDir={plugins}
AuthInfo=socket={folder}/munge.socket
NodeName=mpi-[1-4] CPUs=1 State=CLOUD
PartitionName=mpi Nodes=mpi-[1-4] Default=YES State=UP
"""


class Resolver:
    """A name server that is asked and never answers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                self.asked.append(self._socket.recv(600)[12:])
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()


@contextmanager
def controller(slurm: Slurm, folder: Path, resolver: Resolver, hosts: str) -> Iterator[dict[str, str]]:
    folder.mkdir()
    (folder / "hosts").write_text(hosts)
    (folder / "resolv.conf").write_text(f"nameserver {resolver.address}\n")
    (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    text = CONFIGURATION.format(
        host=socket.gethostname().split(".")[0], folder=folder, port=free_port(), slurmd_port=free_port(),
        plugins=slurm.libraries / "slurm-wlm",
    )  # fmt: skip
    (folder / "slurm.conf").write_text(text)
    environment = slurm.environment | {"SLURM_CONF": str(folder / "slurm.conf")}
    binds = " && ".join(
        f"mount --bind {folder}/{name} /etc/{name}" for name in ("hosts", "resolv.conf", "nsswitch.conf")
    )
    with munge(slurm, folder):
        server = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f"{binds} && exec slurmctld-wlm -D -c"],
            env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + 30
            while "is UP" not in run(environment, "scontrol", "ping"):
                assert server.poll() is None and time.monotonic() < deadline, (folder / "slurmctld.log").read_text()
                time.sleep(0.2)
            yield environment
        finally:
            # While it waits for the resolver it does not take notice of a polite request.
            server.send_signal(signal.SIGKILL)
            server.wait(20)


def run(environment: dict[str, str], *words: str) -> str:
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60).stdout


def written_by_the_scripts(folder: Path) -> str:
    link = folder / "cluster"
    (link / "etc").mkdir(parents=True)
    (link / "etc/hosts.static").write_text("127.0.0.1 localhost\n")
    (link / "etc/cluster.env").write_text("HPC_NODES='mpi/4'\n")
    # The route is the machine's, not this test's.
    (folder / "bin").mkdir()
    (folder / "bin/ip").write_text("#!/bin/sh\n")
    (folder / "bin/ip").chmod(0o755)
    subprocess.run(
        ["bash", PROJECT_ROOT / "scripts/bootstrap/sync-hosts.sh", "--all"],
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HPC_ROOT": str(folder), "HPC_LINK": str(link)},
        check=True,
        capture_output=True,
    )
    return (folder / "etc/hosts").read_text()


def test_slurmctld_asks_no_resolver_for_nodes_that_do_not_live(slurm: Slurm, tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is needed to give slurmctld files of its own")
    silent, unasked = Resolver("127.53.0.1"), Resolver("127.53.0.2")
    own = f"127.0.0.1 localhost {socket.gethostname()}\n"
    try:
        with ExitStack() as stack:
            without = stack.enter_context(controller(slurm, tmp_path / "without", silent, own))
            named = stack.enter_context(
                controller(slurm, tmp_path / "with", unasked, own + written_by_the_scripts(tmp_path))
            )
            for environment in (without, named):
                run(environment, "sbatch", "-N2", "-n2", "-o", "/dev/null", "--wrap", "true")
            time.sleep(3)
            for environment in (without, named):
                run(environment, "scontrol", "update", "nodename=mpi-[1-2]", "state=down", "reason=test")
                run(environment, "scontrol", "update", "nodename=mpi-[1-2]", "state=power_down_force")
            deadline = time.monotonic() + 120
            while not silent.asked:
                assert time.monotonic() < deadline, "slurmctld looked no node up: this test shows nothing"
                time.sleep(0.5)
            time.sleep(5)
            run(named, "scontrol", "reconfigure")
            assert "mpi" in run(named, "sinfo", "--noheader")
        assert any(b"mpi-" in question for question in silent.asked)
        assert unasked.asked == []
    finally:
        silent.close()
        unasked.close()
