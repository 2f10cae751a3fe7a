"""The real slurmctld and slurmd read what is rendered. Slurm's programs are unpacked, not installed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet

from hpc.catalog import Catalog
from hpc.slurm.config import cgroup_conf, slurm_conf, topology_conf
from hpc.slurm.shape import node_shape
from hpc.spec.cluster import ClusterSpec
from tests.hpc.slurm.conftest import Slurm, load_stack, profile_of

pytestmark = pytest.mark.slow


def adapted(text: str, folder: Path, slurm: Slurm, port: int) -> str:
    """The rendered file with what ties it to a real cluster turned to this folder: user, places, and no database."""
    changes = {
        "SlurmUser": "root",
        "StateSaveLocation": f"{folder}/state",
        "SlurmctldPidFile": f"{folder}/slurmctld.pid",
        "SlurmdPidFile": f"{folder}/slurmd.pid",
        "SlurmdSpoolDir": f"{folder}/spool",
        "SlurmctldLogFile": f"{folder}/slurmctld.log",
        "SlurmdLogFile": f"{folder}/slurmd.log",
        "SlurmctldPort": str(port),
        "ResumeProgram": "/bin/true",
        "SuspendProgram": "/bin/true",
        "ResumeFailProgram": "/bin/true",
        "Prolog": "/bin/true",
        "TaskProlog": "/bin/true",
        "AccountingStorageType": "accounting_storage/none",
    }
    text = re.sub(r"^SlurmctldHost=management-1\n", "", text, flags=re.M)
    text = re.sub(
        r"^SlurmctldHost=.*$", f"SlurmctldHost={socket.gethostname().split('.')[0]}(127.0.0.1)", text, flags=re.M
    )
    for key, value in changes.items():
        text, count = re.subn(rf"^{key}=.*$", f"{key}={value}", text, flags=re.M)
        assert count == 1, key
    return text + f"PluginDir={slurm.libraries}/slurm-wlm\nAuthInfo=socket={folder}/munge.socket\n"


@contextmanager
def munge(slurm: Slurm, folder: Path) -> Iterator[None]:
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    for name in ("munge", "state"):
        (folder / name).mkdir(mode=0o700)
    files = [f"--{name}-file={folder}/munge/{name}" for name in ("log", "pid", "seed")]
    server = subprocess.Popen(
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}", *files],
        env=slurm.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        server.terminate()
        server.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def controller(slurm: Slurm, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    server = subprocess.Popen(
        ["slurmctld-wlm", "-D", "-c"], env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 30
        while True:
            ping = subprocess.run(["scontrol", "ping"], env=environment, capture_output=True, text=True)
            if "is UP" in ping.stdout:
                break
            assert server.poll() is None, (folder / "slurmctld.log").read_text()
            assert time.monotonic() < deadline, (folder / "slurmctld.log").read_text()
            time.sleep(0.2)
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


def configured(spec: ClusterSpec, name: str, catalog: Catalog, slurm: Slurm, folder: Path) -> dict[str, str]:
    profile = profile_of(name)
    (folder / "slurm.conf").write_text(adapted(slurm_conf(spec, catalog, profile), folder, slurm, free_port()))
    (folder / "cgroup.conf").write_text(cgroup_conf(spec, profile))
    if topology := topology_conf(spec):
        (folder / "topology.conf").write_text(topology)
    return slurm.environment | {"SLURM_CONF": str(folder / "slurm.conf")}


@pytest.mark.parametrize("topology", [False, True])
def test_slurmctld_reads_it_and_knows_the_nodes(
    stack: str, topology: bool, catalog: Catalog, slurm: Slurm, tmp_path: Path
) -> None:
    spec = load_stack(stack)
    spec = spec.model_copy(update={"slurm": spec.slurm.model_copy(update={"topology": topology})})
    environment = configured(spec, stack, catalog, slurm, tmp_path)
    with munge(slurm, tmp_path), controller(slurm, tmp_path, environment):
        nodes = subprocess.run(
            ["scontrol", "-o", "show", "nodes"], env=environment, capture_output=True, text=True, check=True
        ).stdout
        partitions = subprocess.run(
            ["scontrol", "-o", "show", "partitions"], env=environment, capture_output=True, text=True, check=True
        ).stdout
    for pool in spec.pools:
        shape = node_shape(spec, pool, catalog)
        lines = [line for line in nodes.splitlines() if line.startswith(f"NodeName={pool.name}-")]
        assert len(lines) == len(NodeSet(shape.hostlist)) == pool.max
        assert f"RealMemory={shape.memory_mib} " in lines[0] and f"CPUTot={shape.cpus} " in lines[0]
        assert "CLOUD" in lines[0]
        assert f"PartitionName={pool.name} " in partitions
    log = (tmp_path / "slurmctld.log").read_text()
    wrong = [line for line in log.splitlines() if re.search(r"error|fatal|Parse|deprecat", line, re.I)]
    # A first start finds no saved state, there is no accounting database here, and the plugin looks for its PMIx
    # library at the place of an installed package.
    expected = re.compile(r"state file|Trying backup state|accounting information gathered|pmix", re.I)
    assert [line for line in wrong if not expected.search(line)] == []


def test_slurmd_reads_the_machine_and_the_file(catalog: Catalog, slurm: Slurm, tmp_path: Path) -> None:
    environment = configured(load_stack("local"), "local", catalog, slurm, tmp_path)
    seen = subprocess.run(["slurmd-wlm", "-C"], env=environment, capture_output=True, text=True)
    assert seen.returncode == 0, seen.stderr
    memory = re.search(r"RealMemory=(\d+)", seen.stdout)
    assert memory and int(memory[1]) > 0
    # What a node of this size would be given is below what slurmd measures: it would not be set to INVALID.
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert int(memory[1]) <= total
