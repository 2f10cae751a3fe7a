"""The shipped stacks, and Slurm's programs from the Debian packages, unpacked into the cache and never installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hpc.catalog import Catalog, load_catalog
from hpc.paths import PROJECT_ROOT, cache_dir
from hpc.slurm.profile import CLOUD, LOCAL, HostProfile
from hpc.spec.cluster import ClusterSpec

STACKS = ("dev", "staging", "prod", "local")
PACKAGES = (
    "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libmunge2", "libpmix2", "libhwloc15",
    "libjwt0", "libevent-2.1-7", "libevent-core-2.1-7", "libevent-pthreads-2.1-7", "liblua5.1-0",
)  # fmt: skip


def load_stack(name: str) -> ClusterSpec:
    text = (PROJECT_ROOT / f"Pulumi.{name}.yaml").read_text()
    return ClusterSpec.model_validate(yaml.safe_load(text)["config"]["hpc:cluster"])


def profile_of(name: str) -> HostProfile:
    return LOCAL if name == "local" else CLOUD


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(params=STACKS)
def stack(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass(frozen=True)
class Slurm:
    """Slurm's programs in a folder of their own."""

    root: Path
    libraries: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LD_LIBRARY_PATH": f"{self.libraries}:{self.libraries / 'slurm-wlm'}",
            "PATH": f"{self.root / 'usr/bin'}:{self.root / 'usr/sbin'}:{os.environ['PATH']}",
        }


@pytest.fixture(scope="session")
def slurm() -> Slurm:
    """Real slurmctld and slurmd, or a skip that says why there are none."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("Slurm's programs come from Debian packages; this is no Debian machine")
    if os.geteuid() != 0:
        pytest.skip("slurmctld and munged have to start as root here")
    folder = cache_dir() / "slurm-test"
    root = folder / "root"
    if not (folder / ".complete").exists():
        debs = folder / "debs"
        debs.mkdir(parents=True, exist_ok=True)
        names = _available()
        got = subprocess.run(
            ["apt-get", "download", "-q", *names], cwd=debs, capture_output=True, text=True, timeout=300
        )
        if got.returncode != 0:
            pytest.skip(f"Debian's Slurm packages cannot be had: {got.stderr.strip().splitlines()[-1:]}")
        for deb in debs.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
        (folder / ".complete").touch()
    libraries = next(iter((root / "usr/lib").glob("*-linux-gnu")), None)
    if libraries is None or not (root / "usr/sbin/slurmctld-wlm").exists():
        pytest.skip("Debian's Slurm packages are laid out in another way than expected")
    return Slurm(root, libraries)


def _available() -> list[str]:
    done = subprocess.run(["apt-cache", "policy", *PACKAGES], capture_output=True, text=True)
    return [line.rstrip(":") for line in done.stdout.splitlines() if line and not line.startswith(" ")]
