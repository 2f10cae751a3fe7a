"""The real MPI stacks: installed by mpi.sh from the wheels, loaded through the rendered modules, run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpc.catalog import load_catalog
from hpc.paths import PROJECT_ROOT, cache_dir
from hpc.slurm.bundle import bundle_files
from hpc.slurm.mpi import MODULES, VERSIONS
from hpc.slurm.profile import LOCAL
from hpc.spec.cluster import ClusterSpec
from hpc.spec.software import MpiStack

MODULES_INIT = Path("/usr/share/modules/init/bash")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def index_url() -> str:
    """The package index that pip is set up with on this machine."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    )
    return os.environ.get("PIP_INDEX_URL") or done.stdout.strip() or "https://pypi.org/simple"


@pytest.fixture(scope="session")
def stacks() -> Path:
    """A cluster folder with all MPI stacks, kept in the cache: half a GB of wheels need not be loaded each time."""
    for program in ("gcc", "cmake"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is needed to build MPI programs")
    if not MODULES_INIT.exists():
        pytest.skip("environment-modules is needed to load the stacks")
    link = cache_dir() / "mpi-test"
    files = bundle_files(ClusterSpec.model_validate(CLUSTER), load_catalog(), LOCAL)
    for folder in ("bootstrap", "modulefiles"):
        shutil.rmtree(link / folder, ignore_errors=True)
    for name, content in files.items():
        path = link / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.replace(b"/opt/hpc", str(link).encode()))
    venv = link / "venv"
    if not (venv / "bin/pip").exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    done = subprocess.run(
        ["bash", link / "bootstrap/mpi.sh"],
        env={
            **os.environ,
            "HPC_ROOT": str(link),
            "HPC_LINK": str(link),
            "HPC_VENV": str(venv),
            "HPC_PYPI": index_url(),
        },
        capture_output=True,
        text=True,
    )
    if done.returncode != 0 and "HPC928" in done.stderr and "cannot be installed from" in done.stderr:
        pytest.skip(f"the wheels cannot be had: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return link


CLUSTER = {
    "name": "local",
    "region": "cn-hangzhou",
    "zones": ["cn-hangzhou-j"],
    "image": {"os": "debian-12"},
    "pools": [{"name": "mpi", "instance_types": ["ecs.c8i.large"], "interconnect": "tcp", "max": 4}],
}


def run(stacks: Path, module: str, script: str, folder: Path) -> str:
    """Run a script with a module loaded; the only interface that is there in any sandbox is the loopback."""
    load = f". {MODULES_INIT}; module use {stacks}/modulefiles; module load {module} || exit 9"
    text = f"{load}; set -e; cd {folder}\n{script}"
    done = subprocess.run(
        ["bash", "-c", text],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


LOOPBACK = "export OMPI_MCA_btl_tcp_if_include=lo FI_TCP_IFACE=lo; unset PRTE_MCA_oob_tcp_if_include\n"


@pytest.mark.parametrize("stack", list(MpiStack))
def test_c_program_through_cmake(stack: MpiStack, stacks: Path, tmp_path: Path) -> None:
    source = PROJECT_ROOT / "docs/mpi/cmake"
    out = run(
        stacks,
        f"{MODULES[stack]}/{VERSIONS[stack]}",
        f"{LOOPBACK}cmake -S {source} -B build >/dev/null && cmake --build build >/dev/null\n"
        f"ldd build/heat | grep -c '{stacks}/mpi/{MODULES[stack]}/.*libmpi'\nmpirun -np 2 build/heat 10 4000",
        tmp_path,
    )
    assert out.splitlines()[0] == "1"
    found = re.search(r"ranks 2 cells 20 steps 4000 largest difference (\S+)", out)
    assert found and float(found[1]) < 1e-9


def test_module_mpi_is_the_default_stack(stacks: Path, tmp_path: Path) -> None:
    out = run(stacks, "mpi", 'echo "$HPC_MPI"; command -v mpicc; module list -t 2>&1', tmp_path)
    assert out.splitlines()[:2] == ["openmpi", f"{stacks}/mpi/openmpi/5.0.11/bin/mpicc"]
    assert "openmpi/5.0.11" in out


def test_only_one_stack_at_a_time(stacks: Path, tmp_path: Path) -> None:
    out = run(stacks, "openmpi", "module load mpich 2>/dev/null || true; echo $HPC_MPI", tmp_path)
    assert out.strip() == "openmpi"


def test_fortran_with_intel_mpi(stacks: Path, tmp_path: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is needed to build Fortran programs")
    source = PROJECT_ROOT / "docs/mpi/hello.f90"
    out = run(stacks, "intelmpi", f"{LOOPBACK}mpifc {source} -o hello && mpirun -np 2 ./hello", tmp_path)
    assert out.strip() == "ranks 2 sum 3"


@pytest.mark.parametrize("stack", list(MpiStack))
def test_mpi4py(stack: MpiStack, stacks: Path, tmp_path: Path) -> None:
    python = stacks / "venv/bin/python"
    if not list((stacks / "venv").glob("lib/*/site-packages/mpi4py")):
        got = subprocess.run(
            [python, "-m", "pip", "install", "-q", "--index-url", index_url(), "mpi4py==4.1.2"],
            capture_output=True,
            text=True,
        )
        if got.returncode != 0:
            pytest.skip(f"mpi4py cannot be had: {got.stderr.splitlines()[-1]}")
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1), MPI.get_vendor()[0])"
    out = run(stacks, MODULES[stack], f"{LOOPBACK}mpirun -np 2 {python} -c '{program}'", tmp_path)
    vendor = {MpiStack.OPENMPI: "Open MPI", MpiStack.MPICH: "MPICH", MpiStack.INTELMPI: "Intel MPI"}[stack]
    assert out.splitlines() == [f"3 {vendor}"] * 2


def test_second_run_installs_nothing(stacks: Path) -> None:
    done = subprocess.run(
        ["bash", stacks / "bootstrap/mpi.sh"],
        env={**os.environ, "HPC_ROOT": str(stacks), "HPC_LINK": str(stacks), "HPC_PYPI": "http://127.0.0.1:9/simple"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")
