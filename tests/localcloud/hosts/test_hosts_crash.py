"""The API server is killed with its hosts alive; leftovers are found; many hosts boot at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from host_cloud import Cloud, wait_for

from localcloud.contracts import HostState
from localcloud.hosts.disks import mounts_below
from localcloud.hosts.reset import leftovers, reset

pytestmark = pytest.mark.hosts

EIP = "198.18.3.10"
#: A process that owns a cloud with two hosts and says so once one can be logged in to.
OWNER = """
import os, sys, time
from pathlib import Path
from host_cloud import Cloud
os.umask(0o077)  # as the API server has it
cloud = Cloud(Path(sys.argv[1]), Path(sys.argv[2]))
cloud.adopt()
cloud.add_vpc("crash", "10.93.0.0/24")
cloud.add_host("node-1", "vpc-crash", "10.93.0.10", eip="198.18.3.10")
cloud.add_host("node-2", "vpc-crash", "10.93.0.11")
cloud.wait_ssh("198.18.3.10")
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def crashed(hosts_possible: None, ssh_key: Path, tmp_path: Path) -> Iterator[Path]:
    """State folder of a cloud whose owner was killed while two hosts ran."""
    here = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": here}
    command = [sys.executable, "-c", OWNER, str(tmp_path), str(ssh_key)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        owner.send_signal(signal.SIGKILL)
    yield tmp_path
    reset(tmp_path, data=True)
    assert leftovers(tmp_path) == ()


def test_hosts_outlive_their_owner_and_are_adopted(crashed: Path, ssh_key: Path) -> None:
    cloud = Cloud(crashed, ssh_key)
    booted = cloud.ssh(EIP, "cat /proc/sys/kernel/random/boot_id; stat -c %i.%Y /run/systemd")
    known = add_again(cloud, "node-1", "10.93.0.10", EIP)
    assert cloud.adopt() == {known: HostState.RUNNING}  # node-2 is in no list: it was released meanwhile
    cloud.backend.apply(cloud.network)
    assert cloud.ssh(EIP, "cat /proc/sys/kernel/random/boot_id; stat -c %i.%Y /run/systemd") == booted
    assert cloud.ssh(EIP, "curl -sf http://100.100.100.200/latest/meta-data/instance-id") == known
    assert not [line for line in leftovers(crashed) if "i-crash002" in line]
    assert cloud.ssh(EIP, "systemctl is-system-running --wait; stat -c %a /").split() == ["running", "755"]
    cloud.ssh(EIP, "poweroff", check=False)
    wait_for(lambda: cloud.exits == [known], "the report of the adopted host's end")
    cloud.backend.close()


def add_again(cloud: Cloud, hostname: str, ip: str, eip: str) -> str:
    """Put a host into the cloud's list without any effect on the machine."""
    kept, cloud.backend.apply = cloud.backend.apply, lambda network: None  # type: ignore[method-assign]
    try:
        cloud.add_vpc("crash", "10.93.0.0/24")
        return cloud.add_host(hostname, "vpc-crash", ip, eip=eip, start=False).instance_id
    finally:
        cloud.backend.apply = kept  # type: ignore[method-assign]


def test_reset_removes_what_a_crash_left(crashed: Path) -> None:
    before = leftovers(crashed)
    for what in ("host i-crash001", "network namespace", "mount", "link", "route 10.93.0.0/24", "filter", "control"):
        assert any(line.startswith(what) for line in before), what
    command = [sys.executable, "-m", "localcloud.hosts.reset", str(crashed)]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "host i-crash001" in first.stdout
    assert leftovers(crashed) == ()
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "nothing was left\n"


def test_reset_finds_mounts_of_a_folder_that_was_moved(crashed: Path) -> None:
    (crashed / "hosts").rename(crashed / "moved")
    subprocess.run([sys.executable, "-m", "localcloud.hosts.reset", str(crashed)], check=True, capture_output=True)
    assert leftovers(crashed) == ()
    assert mounts_below(crashed) == ()


def test_reset_spares_a_running_cloud(cloud: Cloud) -> None:
    command = [sys.executable, "-m", "localcloud.hosts.reset", str(cloud.state_dir)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "HPC852" in done.stderr


def test_eight_hosts_at_once(cloud: Cloud) -> None:
    cloud.add_vpc("many", "10.92.0.0/24", nat=True)
    hosts = [
        cloud.add_host(f"node-{n}", "vpc-many", f"10.92.0.{10 + n}", eip=f"198.18.2.{10 + n}", start=False)
        for n in range(8)
    ]
    for host in hosts:
        cloud.backend.start(host)
    for n in range(8):
        cloud.wait_ssh(f"198.18.2.{10 + n}")
    assert cloud.ssh("198.18.2.10", "hostname") == "node-0"
    assert cloud.ssh("198.18.2.17", "getent hosts node-3").split()[0] == "10.92.0.13"
    for host in hosts:
        cloud.remove_host(host)
