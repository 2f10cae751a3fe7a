"""NAS mount targets as `mount -t nfs` in a host meets them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from host_cloud import Cloud

from localcloud.contracts import MountTarget

pytestmark = pytest.mark.hosts

A, B, OUT = "198.18.4.10", "198.18.4.11", "198.18.4.200"
GENERAL, EXTREME = "0a1b-xyz1.cn-hangzhou.nas.aliyuncs.com", "0c2d-extreme.cn-hangzhou.extreme.nas.aliyuncs.com"
#: The options of the cloud's own help page.
OPTIONS = "vers=3,nolock,proto=tcp,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport"


@pytest.fixture(scope="module")
def nas(cloud: Cloud) -> Iterator[Cloud]:
    cloud.add_vpc("nas", "10.94.0.0/24")
    cloud.add_target(MountTarget(GENERAL, "fs-general", "vpc-nas", "/", ("10.94.0.0/28",), ("10.94.0.11/32",)))
    cloud.add_target(MountTarget(EXTREME, "fs-extreme", "vpc-nas", "/share", ("10.94.0.0/24",)))
    cloud.add_host("a", "vpc-nas", "10.94.0.10", eip=A)
    cloud.add_host("b", "vpc-nas", "10.94.0.11", eip=B)
    cloud.add_host("out", "vpc-nas", "10.94.0.200", eip=OUT)
    for address in (A, B, OUT):
        cloud.wait_ssh(address)
    cloud.ssh(
        A,
        f"mkdir -p /mnt/g /mnt/x && mount -t nfs -o {OPTIONS} {GENERAL}:/ /mnt/g"
        f" && mount -t nfs {EXTREME}:/share /mnt/x",
    )
    cloud.ssh(B, f"mkdir -p /mnt/g /mnt/x && mount -t nfs {GENERAL}:/ /mnt/g && mount -t nfs4 {EXTREME}:/share /mnt/x")
    return cloud


def test_two_hosts_share_files(nas: Cloud) -> None:
    nas.ssh(A, "echo hello > /mnt/x/file; echo general > /mnt/g/file")
    assert nas.ssh(B, "cat /mnt/x/file /mnt/g/file").split() == ["hello", "general"]
    nas.ssh(B, "echo back >> /mnt/x/file")
    assert nas.ssh(A, "cat /mnt/x/file").split() == ["hello", "back"]


def test_read_only_client_cannot_write(nas: Cloud) -> None:
    done = nas.ssh_process(B, "touch /mnt/g/no")
    assert (done.returncode, "Read-only file system" in done.stderr) == (1, True)
    assert (
        "Read-only"
        in nas.ssh_process(A, f"mkdir /mnt/ro; mount -t nfs -o ro {EXTREME}:/share /mnt/ro; touch /mnt/ro/a").stderr
    )
    nas.ssh(A, "umount /mnt/ro")


def test_client_outside_of_the_access_group_is_refused(nas: Cloud) -> None:
    done = nas.ssh_process(OUT, f"mkdir -p /mnt/g; mount -t nfs {GENERAL}:/ /mnt/g")
    assert done.returncode == 32
    assert "access denied by server" in done.stderr
    assert nas.ssh(OUT, f"mkdir -p /mnt/x; mount -t nfs {EXTREME}:/share /mnt/x; ls /mnt/x") == "file"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"{EXTREME}:/", "No such file or directory"),
        (f"{EXTREME}:/share/missing", "No such file or directory"),
        (f"{EXTREME}:/share/../..", "No such file or directory"),
        (f"{EXTREME}:/share/way-out", "No such file or directory"),
        ("0e3f-none.cn-hangzhou.nas.aliyuncs.com:/", "Name or service not known"),
    ],
)
def test_what_is_not_there_cannot_be_mounted(nas: Cloud, source: str, message: str) -> None:
    nas.ssh(A, "ln -sfn ../../../../etc /mnt/x/way-out")
    done = nas.ssh_process(A, f"mkdir -p /mnt/no; mount -t nfs {source} /mnt/no")
    assert (done.returncode, message in done.stderr) == (32, True), done.stderr


def test_subdirectory_and_umount(nas: Cloud) -> None:
    nas.ssh(A, f"mkdir -p /mnt/x/dir /mnt/d && touch /mnt/x/dir/in && mount -t nfs {EXTREME}:/share/dir /mnt/d")
    assert nas.ssh(A, "ls /mnt/d; umount /mnt/d; ls /mnt/d") == "in"


def test_fstab_mounts_again_after_a_reboot(nas: Cloud) -> None:
    nas.ssh(
        A, f"echo '{GENERAL}:/ /home nfs {OPTIONS},_netdev 0 0' >> /etc/fstab; systemctl daemon-reload; mount /home"
    )
    nas.ssh(A, "echo mine > /home/file")
    host = next(host for host in nas.network.hosts if host.hostname == "a")
    nas.backend.reboot(host.instance_id, force=False)
    nas.wait_ssh(A)
    # sshd does not wait for network mounts.
    assert nas.ssh(A, "systemctl is-system-running --wait; systemctl is-active home.mount").split() == [
        "running",
        "active",
    ]
    assert nas.ssh(A, "cat /home/file; ls /mnt/x") == "mine"


def test_nfs_common_does_not_replace_the_helper(nas: Cloud) -> None:
    nas.ssh(A, "apt-get update -qq && apt-get install -y -qq nfs-common >/dev/null 2>&1", timeout=300)
    nas.ssh(A, f"mkdir -p /mnt/e && mount -t nfs {EXTREME}:/share /mnt/e && test -e /mnt/e/file")


def test_deleted_file_system_is_gone(nas: Cloud) -> None:
    nas.add_target(MountTarget("0d.nas.aliyuncs.com", "fs-gone", "vpc-nas", "/", ("10.94.0.0/24",)))
    nas.ssh(A, "mkdir -p /mnt/z && mount -t nfs 0d.nas.aliyuncs.com:/ /mnt/z && echo 1 > /mnt/z/1 && umount /mnt/z")
    assert (nas.state_dir / "nas/fs-gone/1").read_text() == "1\n"
    nas.backend.delete_file_system("fs-gone")
    assert not (nas.state_dir / "nas/fs-gone").exists()
