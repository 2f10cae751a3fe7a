"""The bootstrap scripts on apt and dnf hosts: what they do, that a second run does nothing, and how they fail."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import subprocess
import tarfile
import time
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from hpc.paths import PROJECT_ROOT
from hpc.spec.cluster import ClusterSpec
from tests.scripts.conftest import PASSWORD, FakeHost, make_host

SCRIPTS = sorted((PROJECT_ROOT / "scripts/bootstrap").glob("*.sh"))
#: Commands that only look.
LOOKS = (
    "systemctl is-",
    "dpkg-query",
    "rpm -q",
    "mountpoint",
    "getent",
    "hostname",
    "getenforce",
    "getsebool",
    "firewall-cmd --permanent --get-zones",
    "sacctmgr -nP list",
    "sacctmgr -n list",
    "scontrol ping",
    "modinfo",
    "cloud-init status",
    "mysql -e SELECT",
    "python3.13 -c",
    "python -c",
    "sinfo",
    "slurmd -V",
    "slurmctld -V",
    "firewall-cmd --quiet --permanent --zone=hpc --query-source",
    "mount -o remount",
    "ip route replace unreachable",
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_scripts_are_clean() -> None:
    shellcheck = shutil.which("shellcheck") or str(PROJECT_ROOT / ".venv/bin/shellcheck")
    done = subprocess.run(
        [shellcheck, "-x", "-P", str(SCRIPTS[0].parent), *map(str, SCRIPTS)], capture_output=True, text=True
    )
    assert done.stdout + done.stderr == ""


def test_management(host: FakeHost) -> None:
    done = host.management()
    assert done.returncode == 0, done.stdout + done.stderr
    folder = host.root / "home/.hpc"
    assert (host.root / "opt/hpc").resolve() == folder
    assert mode(folder / "etc/munge.key") == 0o400
    assert (host.root / "etc/munge/munge.key").read_bytes() == b"munge" * 20
    assert mode(host.root / "etc/slurm/slurmdbd.conf") == 0o600
    assert f"StoragePass={PASSWORD}" in (host.root / "etc/slurm/slurmdbd.conf").read_text()
    assert (host.root / "etc/slurm/slurm.conf").resolve() == folder / "etc/slurm/slurm.conf"
    assert (
        "abc.cn-hangzhou.nas.aliyuncs.com:/ /home nfs vers=4,minorversion=0,hard,"
        in (host.root / "etc/fstab").read_text()
    )
    assert "10.99.0.11 login-0" in (host.root / "etc/hosts").read_text()
    assert (folder / "etc/users").read_text() == "alice 20000\nbob 20001\n"
    assert (host.root / "home/alice/.ssh/authorized_keys").read_text().count("ssh-ed25519") == 3
    assert (host.state / "sacctmgr.user").read_text().split() == ["alice", "bob"]
    assert (folder / "mpi/openmpi/5.0.11/.complete").exists()
    assert f"IDENTIFIED BY '{PASSWORD}'" in (host.state / "mysql.stdin").read_text()
    service = (host.root / "etc/systemd/system/hpc-elastic.service").read_text()
    assert "User=slurm" in service
    install = [call for call in host.calls if " install " in call and call.startswith(("apt-get", "dnf"))]
    if host.os == "debian-12":
        assert any("slurmctld" in call and "libpmix2" in call for call in install)
        assert not (host.root / "usr/sbin/policy-rc.d").exists()
    else:
        assert any("slurm-slurmctld-ohpc" in call and "python3.11" in call for call in install)
        assert "firewall-cmd --quiet --permanent --zone=hpc --add-source=10.99.0.0/16" in host.calls
        assert "setsebool -P use_nfs_home_dirs on" in host.calls


def test_secrets_are_nowhere_else(debian: FakeHost) -> None:
    done = debian.management()
    log = (debian.root / "var/log/hpc-bootstrap.log").read_text()
    for text in (done.stdout, done.stderr, log, "\n".join(debian.calls)):
        assert PASSWORD not in text
        assert "munge" * 4 not in text
    assert not list(debian.state.glob("hpc-input*"))


@pytest.mark.parametrize("script", ["management", "login", "compute"])
def test_second_run_changes_nothing(host: FakeHost, script: str) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        if script == "compute":
            return host.run("compute.sh", "--pool", "mpi")
        return host.management() if script == "management" else host.login()

    if script != "management":
        host.set_up_cluster_folder()
    first = run()
    assert first.returncode == 0, first.stdout + first.stderr
    before = host.snapshot()
    host.forget_calls()
    second = run()
    assert second.returncode == 0, second.stdout + second.stderr
    assert f"{script}.sh done, 0 change(s)" in second.stdout
    assert host.snapshot() == before
    assert [call for call in host.calls if not call.startswith(LOOKS) and "mysql" not in call] == []


def test_changed_configuration_is_read_again_or_restarted(debian: FakeHost, tmp_path: Path) -> None:
    assert debian.management().returncode == 0
    for old, new, expected in (
        ("KillWait=30", "KillWait=31", "scontrol reconfigure"),
        ("RealMemory=", "Gres=x RealMemory=", "systemctl restart slurmctld"),
    ):
        debian.bundle = changed_bundle(debian.bundle, tmp_path / f"{new.split('=')[0]}.tar.gz", old, new)
        debian.forget_calls()
        done = debian.management()
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in debian.calls
        assert [call for call in debian.calls if "restart" in call or "reconfigure" in call] == [expected]


def changed_bundle(bundle: Path, target: Path, old: str, new: str) -> Path:
    with tarfile.open(bundle) as source, tarfile.open(target, "w:gz") as copy:
        for entry in source:
            content = source.extractfile(entry).read()  # type: ignore[union-attr]
            if entry.name == "etc/slurm/slurm.conf":
                assert old.encode() in content
                content = content.replace(old.encode(), new.encode())
                entry.size = len(content)
            copy.addfile(entry, io.BytesIO(content))
    return target


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("mount", "HPC901", "abc.cn-hangzhou.nas.aliyuncs.com:/ does not mount on /home"),
        ("apt-get", "HPC905", "mirror"),
        ("mysql", "HPC917", "MariaDB"),
        ("sacctmgr", "HPC918", "slurmdbd"),
        ("scontrol", "HPC911", "slurmctld"),
    ],
)
def test_first_error_is_the_last_line(debian: FakeHost, command: str, code: str, words: str) -> None:
    debian.fail(command)
    done = debian.management()
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"{code}: ")
    assert words in last
    assert last in (debian.root / "var/log/hpc-bootstrap.log").read_text()


def test_what_nobody_thought_of_has_a_code_too(debian: FakeHost) -> None:
    debian.fail("sysctl")
    debian.fail("groupadd")
    done = debian.management()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("HPC900: `groupadd")


def test_old_slurm_is_refused(debian: FakeHost) -> None:
    (debian.state / "slurm-version").write_text("slurm-wlm 21.08.5\n")
    assert "HPC907: slurm-wlm 21.08.5 is too old" in debian.management().stderr


def test_incomplete_input_is_refused(debian: FakeHost) -> None:
    done = debian.run("management.sh", "--bundle", str(debian.bundle), stdin="facts.env QQ==\n")
    assert done.stderr.splitlines()[-1] == "HPC915: the input has no facts.json"


def test_compute(host: FakeHost) -> None:
    host.set_up_cluster_folder()
    done = host.run("compute.sh", "--pool", "mpi")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "vm.swappiness = 1" in (host.root / "etc/sysctl.d/90-hpc.conf").read_text()
    assert "* hard memlock unlimited" in (host.root / "etc/security/limits.d/90-hpc.conf").read_text()
    assert mode(host.root / "etc/munge/munge.key") == 0o400
    assert "systemctl start slurmd" in host.calls
    packages = next(call for call in host.calls if " install " in call and "munge" in call)
    assert ("slurmd" if host.os == "debian-12" else "slurm-slurmd-ohpc") in packages
    assert "gcc" not in packages


def test_compute_failure_is_left_on_shared_storage(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    debian.fail("apt-get")
    done = debian.run("compute.sh", "--pool", "mpi")
    assert done.returncode == 1
    reason = (debian.root / "home/.hpc/nodes/mpi-3.failed").read_text()
    assert reason == "HPC905: the package mirror does not answer: check the route to mirrors.cloud.aliyuncs.com\n"
    (debian.state / "fail/apt-get").unlink()
    assert debian.run("compute.sh", "--pool", "mpi").returncode == 0
    assert not (debian.root / "home/.hpc/nodes/mpi-3.failed").exists()


def test_instance_without_a_node_name_waits_for_it(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    (debian.state / "hostname").write_text("iZbp1234\n")
    (debian.root / "home/.hpc/nodes/i-123.name").write_text("mpi-2")
    done = debian.run("compute.sh", "--pool", "mpi")
    assert done.returncode == 0, done.stderr
    assert "hostnamectl set-hostname mpi-2" in debian.calls
    (debian.root / "home/.hpc/nodes/i-123.name").unlink()
    done = debian.run("compute.sh", "--pool", "mpi", HPC_NAME_ATTEMPTS="3")
    assert done.stderr.splitlines()[-1] == "HPC909: instance i-123 was given no node name within 3 s"


def rdma_device(host: FakeHost, *, state: str = "4: ACTIVE", compat: str = "Y", counters: bool = True) -> None:
    port = host.root / "sys/class/infiniband/erdma_0/ports/1"
    (port / "hw_counters").mkdir(parents=True, exist_ok=True)
    (port / "state").write_text(state)
    if counters:
        (port / "hw_counters/hw_rx_bytes_cnt").write_text("0")
    parameters = host.root / "sys/module/erdma/parameters"
    parameters.mkdir(parents=True, exist_ok=True)
    (parameters / "compat_mode").write_text(compat)


def rdma_run(host: FakeHost, **environment: str) -> subprocess.CompletedProcess[str]:
    host.set_up_cluster_folder()
    (host.state / "hostname").write_text("rdma-1\n")
    return host.run("compute.sh", "--pool", "rdma", **environment)


def test_erdma_driver_is_pinned_built_and_checked(host: FakeHost) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        script = b'#!/bin/sh\necho "$ERDMA_CM_NO_BOUND_IF $@" >$SHIM_STATE/installer\n'
        entry = tarfile.TarInfo("erdma_installer-1.5.7/install.sh")
        entry.size, entry.mode = len(script), 0o755
        tar.addfile(entry, io.BytesIO(script))
    (host.state / "download").write_bytes(archive.getvalue())
    rdma_device(host)
    done = rdma_run(host, HPC_ERDMA_SHA256=hashlib.sha256(archive.getvalue()).hexdigest())
    assert done.returncode == 0, done.stdout + done.stderr
    assert (host.state / "installer").read_text() == "1 --batch\n"
    assert any("erdma_installer-1.5.7.tar.gz" in call for call in host.calls)
    assert (host.root / "etc/modprobe.d/hpc-erdma.conf").read_text() == "options erdma compat_mode=Y\n"
    assert "modprobe -r erdma" in host.calls


def test_erdma_driver_with_another_checksum_is_not_run(debian: FakeHost) -> None:
    (debian.state / "download").write_bytes(b"something else")
    rdma_device(debian)
    done = rdma_run(debian)
    assert "HPC921" in (debian.root / "home/.hpc/nodes/rdma-1.failed").read_text()
    assert done.returncode == 1
    assert not (debian.state / "installer").exists()


@pytest.mark.parametrize(
    ("device", "code"),
    [
        (None, "HPC924"),
        ({"state": "1: DOWN"}, "HPC925"),
        ({"compat": "N"}, "HPC926"),
        ({"counters": False}, "HPC927"),
    ],
)
def test_node_without_working_erdma_is_refused(debian: FakeHost, device: dict[str, object] | None, code: str) -> None:
    (debian.state / "erdma-driver").touch()
    if device is not None:
        rdma_device(debian, **device)  # type: ignore[arg-type]
    done = rdma_run(debian)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(code)
    assert (debian.root / "home/.hpc/nodes/rdma-1.failed").read_text().startswith(code)
    assert "systemctl start slurmd" not in debian.calls


def test_bake_leaves_nothing_of_this_host(host: FakeHost) -> None:
    (host.root / "etc/ssh").mkdir()
    (host.root / "etc/ssh/ssh_host_rsa_key").touch()
    done = host.run("compute.sh", "--bake")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (host.root / "etc/ssh/ssh_host_rsa_key").exists()
    assert "systemctl start slurmd" not in host.calls
    assert "cloud-init clean --logs" in host.calls


def test_login_waits_for_the_controller(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    debian.fail("sinfo")
    (debian.state / "fail/sinfo").unlink()
    assert debian.login().returncode == 0
    assert any("gfortran" in call for call in debian.calls)


def test_login_before_management(debian: FakeHost) -> None:
    done = debian.login()
    assert done.stderr.splitlines()[-1].startswith("HPC902: the cluster folder is empty")


def test_hosts_follow_the_daemon(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    nodes = debian.root / "home/.hpc/nodes/hosts"
    nodes.write_text("10.99.0.50 mpi-1\n")
    assert debian.run("sync-hosts.sh").returncode == 0
    assert "10.99.0.50 mpi-1" in (debian.root / "etc/hosts").read_text()
    nodes.write_text("10.99.0.51 mpi-2\n")
    assert debian.run("sync-hosts.sh").returncode == 0
    text = (debian.root / "etc/hosts").read_text()
    assert "mpi-1" not in text and "10.99.0.51 mpi-2" in text and text.count(">>> hpc nodes") == 1


def test_every_name_of_slurm_conf_resolves_where_slurmctld_runs(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    nodes = debian.root / "home/.hpc/nodes/hosts"
    nodes.write_text("10.99.0.50 mpi-2\n")
    assert debian.run("sync-hosts.sh", "--all").returncode == 0
    assert "ip route replace unreachable 240.0.0.0/16" in debian.calls
    pairs = [line.split() for line in (debian.root / "etc/hosts").read_text().splitlines() if line[0].isdigit()]
    names = {name: address for address, name in pairs}
    assert len(pairs) == len(names) == 10
    assert names["mpi-2"] == "10.99.0.50" and names["management-0"] == "10.99.0.10"
    assert {name for name, address in names.items() if address.startswith("240.0.")} == {
        *(f"mpi-{n}" for n in (1, 3, 4)),
        *(f"rdma-{n}" for n in (1, 2, 3, 4)),
    }
    # What a node is told is only who lives: nothing there would look up anybody else.
    (debian.root / "etc/hosts").unlink()
    assert debian.run("sync-hosts.sh").returncode == 0
    assert "240.0" not in (debian.root / "etc/hosts").read_text()


def test_names_of_ten_thousand_nodes(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    env = debian.root / "home/.hpc/etc/cluster.env"
    env.write_text(env.read_text().replace("mpi/4 rdma/4", "mpi/9000 rdma/1000"))
    (debian.root / "home/.hpc/nodes/hosts").write_text(
        "".join(f"10.98.{n // 250}.{n % 250} mpi-{n}\n" for n in range(1, 501))
    )
    assert debian.run("sync-hosts.sh", "--all").returncode == 0
    pairs = [line.split() for line in (debian.root / "etc/hosts").read_text().splitlines() if line[0].isdigit()]
    assert len({name for _, name in pairs}) == len({address for address, _ in pairs}) == 10_002
    for address, _ in pairs:
        assert IPv4Address(address)


#: Root without the right to pass over permissions, as the root of a node is on storage that squashes root.
SQUASHED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner,-chown", "--")


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_squashed_root_reads_the_key_and_reports_its_reason(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    # pytest's folders are for root only.
    for path in debian.root.parents:
        if path.stat().st_mode & 0o055 != 0o055 and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    folder = debian.root / "home/.hpc"
    key = folder / "etc/munge.key"
    key.chmod(0o400)
    os.chown(key, 64030, 64030)
    os.chown(folder / "nodes", 64030, 64030)
    (folder / "nodes/mpi-3.failed").write_text("from an earlier life\n")
    os.chown(folder / "nodes/mpi-3.failed", 64030, 64030)
    refused = subprocess.run([*SQUASHED, "touch", str(folder / "nodes/x")], capture_output=True, text=True)
    assert "Permission denied" in refused.stderr
    done = debian.run("compute.sh", "--pool", "mpi", under=SQUASHED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (debian.root / "etc/munge/munge.key").read_bytes() == b"munge" * 20
    assert not (folder / "nodes/mpi-3.failed").exists()
    (debian.root / "etc/munge/munge.key").unlink()
    os.chown(key, 12345, 12345)
    (debian.state / "packages/munge").unlink()
    debian.fail("apt-get")
    done = debian.run("compute.sh", "--pool", "mpi", under=SQUASHED)
    assert done.returncode == 1
    assert (folder / "nodes/mpi-3.failed").read_text().startswith("HPC905: ")
    assert (folder / "nodes/mpi-3.failed").stat().st_uid == 64030


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_reason_goes_to_slurm_where_storage_takes_nothing(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    folder = debian.root / "home/.hpc/nodes"
    os.chown(folder, 64030, 64030)
    folder.chmod(0o500)
    debian.fail("apt-get")
    done = debian.run("compute.sh", "--pool", "mpi", under=SQUASHED)
    assert done.returncode == 1 and not (folder / "mpi-3.failed").exists()
    (call,) = [call for call in debian.calls if call.startswith("scontrol update")]
    assert call.startswith("scontrol update NodeName=mpi-3 Reason=HPC905:")


def verified(units: list[Path], folder: Path) -> str:
    """What `systemd-analyze verify` says of these units."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, units)],
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"},
    )
    return "\n".join(line for line in done.stderr.splitlines() if any(unit.name in line for unit in units))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
def test_units_are_right(debian: FakeHost) -> None:
    assert debian.management().returncode == 0
    folder = debian.root / "etc/systemd/system"
    units = sorted(path for path in folder.glob("hpc-*") if path.is_file())
    assert {unit.name for unit in units} == {"hpc-elastic.service", "hpc-hosts.service", "hpc-hosts.timer"}
    assert verified(units, folder) == ""
    wrong = folder / "hpc-elastic.service"
    wrong.write_text(wrong.read_text().replace("TimeoutStopSec=120", "TimeoutStopSec=soon"))
    assert "Failed to parse time value" in verified([wrong], folder)


def test_units_end_in_bounded_time_and_come_back(debian: FakeHost) -> None:
    assert debian.management().returncode == 0
    folder = debian.root / "etc/systemd/system"
    elastic = (folder / "hpc-elastic.service").read_text()
    for line in ("Restart=always", "TimeoutStopSec=120", "NoNewPrivileges=yes", "ProtectSystem=full"):
        assert f"\n{line}\n" in elastic
    assert "\nTimeoutStartSec=60\n" in (folder / "hpc-hosts.service").read_text()
    controller = (folder / "slurmctld.service.d/90-hpc.conf").read_text()
    assert "Restart=on-failure" in controller
    # At boot shared storage may come later: the distribution's condition on slurm.conf would leave the controller out.
    assert "ConditionPathExists=\n" in controller and "remote-fs.target" in controller


def test_second_elastic_daemon_waits_for_the_first(tmp_path: Path, spec: ClusterSpec) -> None:
    management = spec.management.model_copy(update={"backup": True})
    host = make_host("debian-12", tmp_path, spec.model_copy(update={"management": management}))
    assert host.management().returncode == 0
    unit = (host.root / "etc/systemd/system/hpc-elastic.service").read_text()
    command = next(line.partition("=")[2].split() for line in unit.splitlines() if line.startswith("ExecStart="))
    assert command[:2] == ["/usr/bin/flock", "--no-fork"]
    # The unit's own way of starting, with something else than the daemon behind it.
    python = next(index for index, word in enumerate(command) if word.endswith("/python"))
    started = tmp_path / "started"
    words = [*command[:python], "sh", "-c", f"echo $$ >>{started}; exec sleep 300"]
    first = subprocess.Popen(words)
    try:
        wait_for(lambda: started.exists() and started.read_text().count("\n") == 1)
        second = subprocess.Popen(words)
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                second.wait(2)
            assert started.read_text() == f"{first.pid}\n"
            first.kill()
            first.wait(10)
            wait_for(lambda: started.read_text() == f"{first.pid}\n{second.pid}\n")
        finally:
            second.kill()
            second.wait(10)
    finally:
        first.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_slurm_of_dnf_hosts_is_signed(tmp_path: Path, spec: ClusterSpec) -> None:
    host = make_host("alinux-3", tmp_path, spec)
    host.set_up_cluster_folder()
    assert host.run("compute.sh", "--pool", "mpi").returncode == 0
    text = (host.root / "etc/yum.repos.d/hpc-slurm.repo").read_text()
    assert text.count("gpgcheck=1") == 2 and "gpgcheck=0" not in text
    assert "OpenHPC/2/updates/EL_8" in text
    key = host.root / "etc/pki/rpm-gpg/RPM-GPG-KEY-hpc-slurm"
    assert f"gpgkey=file:///{key.relative_to(host.root)}" in text
    assert key.read_text().startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----")


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"HPC_SLURM_REPOSITORY": "http://mirror.example/slurm"}, "HPC936"),
        ({"HPC_SLURM_KEY": "/no/key", "HPC_SLURM_KEY_SHA256": "0"}, "HPC937"),
        (
            {
                "HPC_SLURM_REPOSITORY": "http://mirror.example/slurm",
                "HPC_SLURM_KEY": "https://mirror.example/key.asc",
                "HPC_SLURM_KEY_SHA256": hashlib.sha256(b"the right key").hexdigest(),
            },
            "HPC938",
        ),
        ({"HPC_SLURM_KEY": "https://mirror.example/key.asc", "HPC_SLURM_KEY_SHA256": "0" * 64}, "HPC938"),
    ],
)  # fmt: skip
def test_slurm_without_the_right_key_is_refused(
    tmp_path: Path, spec: ClusterSpec, environment: dict[str, str], code: str
) -> None:
    host = make_host("alinux-3", tmp_path, spec)
    host.set_up_cluster_folder()
    (host.state / "download").write_bytes(b"some other key")
    done = host.run("compute.sh", "--pool", "mpi", **environment)
    assert done.returncode == 1
    assert (host.root / "home/.hpc/nodes/mpi-3.failed").read_text().startswith(f"{code}: ")
    assert not (host.root / "etc/yum.repos.d/hpc-slurm.repo").exists()
    assert not (host.state / "packages/munge").exists()


def test_repository_of_slurm_that_does_not_answer(tmp_path: Path, spec: ClusterSpec) -> None:
    host = make_host("alinux-3", tmp_path, spec)
    host.set_up_cluster_folder()
    (host.state / "no-repository").touch()
    done = host.run("compute.sh", "--pool", "mpi")
    assert done.stderr.splitlines()[-1].startswith(
        "HPC939: Slurm's packages are not to be had from https://repos.openhpc"
    )


def test_own_repository_with_its_own_key(tmp_path: Path, spec: ClusterSpec) -> None:
    host = make_host("rocky-9", tmp_path, spec)
    host.set_up_cluster_folder()
    (host.state / "download").write_bytes(b"the right key")
    done = host.run(
        "compute.sh", "--pool", "mpi",
        HPC_SLURM_REPOSITORY="http://mirror.example/slurm",
        HPC_SLURM_KEY="https://mirror.example/key.asc",
        HPC_SLURM_KEY_SHA256=hashlib.sha256(b"the right key").hexdigest(),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (host.root / "etc/pki/rpm-gpg/RPM-GPG-KEY-hpc-slurm").read_bytes() == b"the right key"
    epel = (host.root / "etc/yum.repos.d/epel.repo").read_text()
    assert "\nbaseurl=http://mirrors.cloud.aliyuncs.com/epel/9\ngpgcheck=1\n" in epel


def test_task_prolog_replaces_the_fabric_of_another_pool(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    link = str(debian.root / "opt/hpc")
    same = debian.run("task-prolog.sh", HPC_LINK=link, HPC_MPI="openmpi", HPC_MPI_POOL="mpi", SLURM_JOB_PARTITION="mpi")
    assert same.stdout == ""
    other = debian.run(
        "task-prolog.sh", HPC_LINK=link, HPC_MPI="openmpi", HPC_MPI_POOL="mpi", SLURM_JOB_PARTITION="rdma"
    )
    lines = other.stdout.splitlines()
    assert "unset OMPI_MCA_btl" in lines
    assert "export UCX_TLS=rc_verbs,ud_verbs,self,sm" in lines
    assert lines[-1] == "export HPC_MPI_POOL=rdma"


def test_prolog_refuses_an_erdma_node_without_device(debian: FakeHost) -> None:
    debian.set_up_cluster_folder()
    link = str(debian.root / "opt/hpc")
    assert debian.run("prolog.sh", HPC_LINK=link, SLURM_JOB_PARTITION="mpi").returncode == 0
    refused = debian.run("prolog.sh", HPC_LINK=link, SLURM_JOB_PARTITION="rdma")
    assert refused.returncode == 1 and "HPC924" in refused.stderr
    rdma_device(debian)
    assert debian.run("prolog.sh", HPC_LINK=link, SLURM_JOB_PARTITION="rdma").returncode == 0


def test_pmix_is_found_under_the_name_that_slurm_asks_for(debian: FakeHost) -> None:
    folder = debian.root / "usr/lib/x86_64-linux-gnu/pmix2/lib"
    folder.mkdir(parents=True)
    (folder / "libpmix.so.2").touch()
    debian.set_up_cluster_folder()
    assert debian.run("compute.sh", "--pool", "mpi").returncode == 0
    assert (folder / "libpmix.so").resolve() == folder / "libpmix.so.2"
