"""Runs the bootstrap scripts against a folder that stands for the root of a host, with recorded commands on PATH."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from components.bootstrap import management_items, public_items
from hpc.catalog import load_catalog
from hpc.paths import PROJECT_ROOT
from hpc.slurm.bundle import build_bundle, bundle_files
from hpc.slurm.facts import Facts, MountFact, NodeFact, PoolFact
from hpc.slurm.profile import LOCAL
from hpc.spec.cluster import ClusterSpec

SHIM = Path(__file__).with_name("shims") / "command"
NAMES = (
    "apt-get",
    "chrony",
    "cloud-init",
    "curl",
    "dnf",
    "dpkg-query",
    "firewall-cmd",
    "getenforce",
    "getent",
    "getsebool",
    "groupadd",
    "hostname",
    "hostnamectl",
    "ip",
    "modinfo",
    "modprobe",
    "mount",
    "mount.nfs",
    "mountpoint",
    "mysql",
    "python3.13",
    "rpm",
    "sacctmgr",
    "scontrol",
    "setsebool",
    "sinfo",
    "slurmctld",
    "slurmd",
    "sysctl",
    "systemctl",
    "useradd",
)
OS_RELEASE = {
    "debian-12": 'ID=debian\nVERSION_ID="12"\n',
    "ubuntu-24.04": 'ID=ubuntu\nVERSION_ID="24.04"\n',
    "rocky-9": 'ID="rocky"\nVERSION_ID="9.5"\n',
    "alinux-3": 'ID="alinux"\nVERSION_ID="3"\n',
}
PASSWORD = "pass-word-of-the-database"


@dataclass
class FakeHost:
    """A folder as a host's root, and what the commands that were called say."""

    root: Path
    state: Path
    spec: ClusterSpec
    bundle: Path
    os: str

    def run(
        self, script: str, *arguments: str, stdin: str = "", under: Sequence[str] = (), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*under, "bash", str(PROJECT_ROOT / "scripts/bootstrap" / script), *arguments],
            input=stdin,
            text=True,
            capture_output=True,
            timeout=120,
            env={
                "PATH": f"{self.state / 'bin'}:{os.environ['PATH']}",
                "HPC_ROOT": str(self.root),
                "SHIM_STATE": str(self.state),
                "HPC_PAUSE": "0",
                "TMPDIR": str(self.state),
                **environment,
            },
        )

    def management(self) -> subprocess.CompletedProcess[str]:
        items = public_items(self.spec, self.facts) + management_items(
            self.spec, load_catalog(), self.facts, base64.b64encode(b"munge" * 20).decode(), PASSWORD
        )
        return self.run("management.sh", "--bundle", str(self.bundle), stdin=items)

    def login(self) -> subprocess.CompletedProcess[str]:
        return self.run("login.sh", stdin=public_items(self.spec, self.facts))

    @property
    def facts(self) -> Facts:
        return Facts(
            region="cn-hangzhou",
            vpc_cidr="10.99.0.0/16",
            management=(NodeFact("management-0", "10.99.0.10"),),
            login=(NodeFact("login-0", "10.99.0.11"),),
            mounts=(MountFact("/home", "abc.cn-hangzhou.nas.aliyuncs.com"),),
            vswitches={"cn-hangzhou-j": "vsw-1"},
            security_group_id="sg-1",
            ram_role="role",
            pools={"mpi": PoolFact("lt-1", "m-1"), "rdma": PoolFact("lt-2", "m-1")},
        )

    @property
    def calls(self) -> list[str]:
        path = self.state / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def forget_calls(self) -> None:
        (self.state / "calls").unlink(missing_ok=True)

    def fail(self, command: str) -> None:
        (self.state / "fail").mkdir(exist_ok=True)
        (self.state / "fail" / command).touch()

    def snapshot(self) -> dict[str, tuple[str, int]]:
        """Every file's content and mode, logs aside."""
        return {
            str(path.relative_to(self.root)): (
                str(path.readlink()) if path.is_symlink() else path.read_bytes().hex(),
                path.lstat().st_mode,
            )
            for path in sorted(self.root.rglob("*"))
            if (path.is_symlink() or path.is_file()) and not path.name.startswith("hpc-bootstrap.log")
        }

    def set_up_cluster_folder(self) -> None:
        """What a management node leaves on shared storage, for nodes that come after it."""
        folder = self.root / "home/.hpc"
        for name, content in bundle_files(self.spec, load_catalog(), LOCAL).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if content.startswith(b"#!") else 0o644)
        for line in public_items(self.spec, self.facts).splitlines():
            name, data = line.split()
            (folder / "etc" / name).write_bytes(base64.b64decode(data))
        (folder / "etc/munge.key").write_bytes(b"munge" * 20)
        (folder / "etc/users").write_text("alice 20000\n")
        (folder / "nodes").mkdir()
        (self.root / "opt").mkdir(exist_ok=True)
        (self.root / "opt/hpc").symlink_to(folder)


@pytest.fixture
def spec() -> ClusterSpec:
    return ClusterSpec.model_validate(
        {
            "name": "local",
            "region": "cn-hangzhou",
            "zones": ["cn-hangzhou-j"],
            "image": {"os": "debian-12"},
            "access": {"users": ["alice", "bob"], "ssh_keys": ["ssh-ed25519 AAAAC3Nza admin@example"]},
            "pools": [
                {"name": "mpi", "instance_types": ["ecs.c8i.large"], "interconnect": "tcp", "max": 4},
                {"name": "rdma", "instance_types": ["ecs.c8ae.4xlarge"], "max": 4},
            ],
        }
    )


@pytest.fixture(params=["debian-12", "alinux-3"])
def host(request: pytest.FixtureRequest, tmp_path: Path, spec: ClusterSpec) -> FakeHost:
    return make_host(request.param, tmp_path, spec)


@pytest.fixture
def debian(tmp_path: Path, spec: ClusterSpec) -> FakeHost:
    return make_host("debian-12", tmp_path, spec)


def make_host(os_name: str, folder: Path, spec: ClusterSpec) -> FakeHost:
    root, state = folder / "root", folder / "state"
    (state / "bin").mkdir(parents=True)
    for name in NAMES:
        shutil.copy(SHIM, state / "bin" / name)
    for path in ("etc", "usr/sbin", "root/.ssh", "sys"):
        (root / path).mkdir(parents=True)
    (root / "etc/os-release").write_text(OS_RELEASE[os_name])
    (root / "root/.ssh/authorized_keys").write_text("ssh-ed25519 AAAAprogram program\n")
    (state / "hostname").write_text("mpi-3\n")
    (state / "slurm-version").write_text("slurm-wlm 22.05.8\n" if os_name == "debian-12" else "slurm 22.05.9\n")
    if os_name.startswith(("alinux", "rocky")):
        (state / "active").mkdir()
        (state / "active/firewalld").touch()
    bundle = build_bundle(spec, load_catalog(), folder / "bundles", LOCAL).path
    return FakeHost(root, state, spec, bundle, os_name)
