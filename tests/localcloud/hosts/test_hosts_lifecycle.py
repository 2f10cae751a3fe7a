"""Stop, start, reboot, release, images: what happens to a host, its disk and what it had of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from host_cloud import Cloud, wait_for

from localcloud.contracts import Host
from localcloud.hosts import cgroups, namespaces
from localcloud.hosts.disks import mounts_below

pytestmark = pytest.mark.hosts

EIP = "198.18.5.10"


@pytest.fixture(scope="module")
def host(cloud: Cloud) -> Iterator[Host]:
    cloud.add_vpc("life", "10.95.0.0/24")
    host = cloud.add_host("node-1", "vpc-life", "10.95.0.10", eip=EIP)
    cloud.wait_ssh(EIP)
    return host


def boot_id(cloud: Cloud) -> str:
    """Changes with each boot: when process 1 of the host began."""
    return cloud.ssh(EIP, "stat -c %Y.%i /run/systemd")


def traces(cloud: Cloud, host: Host) -> list[str]:
    """What the machine has of a host beside its disk."""
    names = cloud.backend._names
    found = [str(point) for point in mounts_below(cloud.state_dir.resolve()) if host.instance_id in point.parts]
    found += namespaces.listed(names.namespace(host.instance_id))
    found += [name for name in cgroups.children(names.cgroup) if name == host.instance_id]
    return found


def test_reboot_keeps_the_disk(cloud: Cloud, host: Host) -> None:
    cloud.ssh(EIP, "echo kept > /root/file")
    before = boot_id(cloud)
    cloud.backend.reboot(host.instance_id, force=False)
    cloud.wait_ssh(EIP)
    assert boot_id(cloud) != before
    assert cloud.ssh(EIP, "cat /root/file") == "kept"
    assert cloud.exits == []


def test_reboot_from_inside(cloud: Cloud, host: Host) -> None:
    before = boot_id(cloud)
    cloud.ssh(EIP, "systemctl reboot", check=False)
    wait_for(lambda: cloud.ssh(EIP, "stat -c %Y.%i /run/systemd", check=False) not in ("", before), "the next boot")
    assert cloud.exits == []


def test_forced_reboot(cloud: Cloud, host: Host) -> None:
    before = boot_id(cloud)
    cloud.backend.reboot(host.instance_id, force=True)
    cloud.wait_ssh(EIP)
    assert boot_id(cloud) != before
    assert cloud.exits == []


@pytest.mark.parametrize("force", [False, True])
def test_stop_and_start(cloud: Cloud, host: Host, force: bool) -> None:
    cloud.ssh(EIP, "echo still > /root/file; sync")
    cloud.backend.stop(host.instance_id, force=force)
    assert traces(cloud, host) == []
    assert cloud.ssh_process(EIP, "true").returncode == 255
    cloud.backend.start(host)
    cloud.wait_ssh(EIP)
    assert cloud.ssh(EIP, "cat /root/file; cat /etc/hostname").split() == ["still", "node-1"]


def test_start_of_a_running_host_changes_nothing(cloud: Cloud, host: Host) -> None:
    before = boot_id(cloud)
    cloud.backend.start(host)
    assert boot_id(cloud) == before


def test_host_that_powers_itself_off_is_reported(cloud: Cloud, host: Host) -> None:
    cloud.ssh(EIP, "systemctl poweroff", check=False)
    wait_for(lambda: cloud.exits == [host.instance_id], "the report")
    assert traces(cloud, host) == []
    cloud.exits.clear()
    cloud.backend.start(host)
    cloud.wait_ssh(EIP)


def test_image_of_a_host_boots_others(cloud: Cloud, host: Host) -> None:
    cloud.ssh(EIP, "echo baked > /opt/software; rm /etc/motd")
    machine_id = cloud.ssh(EIP, "cat /etc/machine-id")
    cloud.backend.create_image(host.instance_id, "m-baked")
    address, script = "198.18.5.11", b"#!/bin/sh\necho own > /root/user-data\n"
    other = cloud.add_host("node-2", "vpc-life", "10.95.0.11", eip=address, image_id="m-baked", user_data=script)
    cloud.wait_ssh(address)
    cloud.ssh(address, "cloud-init status --wait")
    assert cloud.ssh(address, "cat /root/user-data; cat /var/lib/cloud/data/instance-id").split() == [
        "own",
        other.instance_id,
    ]
    assert cloud.ssh(address, "cat /opt/software; test -e /etc/motd || echo gone; hostname").split() == [
        "baked",
        "gone",
        "node-2",
    ]
    assert cloud.ssh(address, "cat /etc/machine-id") not in ("", machine_id)
    assert cloud.ssh(address, "cat /etc/ssh/ssh_host_ed25519_key.pub") != cloud.ssh(
        EIP, "cat /etc/ssh/ssh_host_ed25519_key.pub"
    )
    cloud.backend.delete_image("m-baked")
    assert cloud.ssh(address, "cat /opt/software") == "baked"
    cloud.remove_host(other)


def test_memory_limit_is_the_instance_types(cloud: Cloud, host: Host) -> None:
    small = replace(host, instance_id="i-life900", hostname="small", private_ip="10.95.0.90", mac="00:16:3e:00:00:90")
    groups = cgroups.HostGroups(cloud.backend._names.cgroup, small.instance_id)
    cloud.backend.start(replace(small, memory_mib=512))
    limits = [f.read_text().strip() for d in groups.folders for f in d.glob("memory.limit_in_bytes")]
    limits += [f.read_text().strip() for d in groups.folders for f in d.glob("memory.max")]
    assert limits == [str(512 << 20)]
    cloud.backend.release(small.instance_id)


def test_release_leaves_nothing(cloud: Cloud, host: Host) -> None:
    cloud.remove_host(host)
    assert traces(cloud, host) == []
    assert not cloud.backend._disks.exists(host.instance_id)
    assert cloud.backend.console_output(host.instance_id) == ""
    cloud.backend.release("i-never-was")
    assert cloud.exits == []
