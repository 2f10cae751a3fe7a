"""A booted instance as its user and its bootstrap scripts see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from host_cloud import TYPE, Cloud

from localcloud.contracts import Host

pytestmark = pytest.mark.hosts

EIP = "198.18.7.10"
USER_DATA = b"#!/bin/sh\necho ran >> /root/ran\n"
MD = "http://100.100.100.200/latest"
TOKEN = f'$(curl -sf -X PUT -H "X-aliyun-ecs-metadata-token-ttl-seconds: 60" {MD}/api/token)'


@pytest.fixture(scope="module")
def host(cloud: Cloud) -> Iterator[Host]:
    cloud.add_vpc("boot", "10.97.0.0/20")
    host = cloud.add_host(
        "login-0",
        "vpc-boot",
        "10.97.0.10",
        eip=EIP,
        user_data=USER_DATA,
        token_required=True,
        ram_role="hpc-elastic",
        spot_termination_time=datetime(2030, 1, 5, 18, 2, tzinfo=UTC),
    )
    cloud.add_host("node-1", "vpc-boot", "10.97.0.11")
    cloud.wait_ssh(EIP)
    return host


def get(cloud: Cloud, path: str) -> str:
    return cloud.ssh(EIP, f'curl -sf -H "X-aliyun-ecs-metadata-token: {TOKEN}" {MD}/{path}')


def test_cloud_init_did_its_work(cloud: Cloud, host: Host) -> None:
    assert json.loads(cloud.ssh(EIP, "cloud-init status --wait --format json"))["status"] == "done"
    assert json.loads(cloud.ssh(EIP, "cat /run/cloud-init/instance-data.json"))["v1"]["cloud_name"] == "aliyun"
    assert cloud.ssh(EIP, "cat /root/ran") == "ran"
    assert cloud.ssh(EIP, "hostname; hostname -I").split() == ["login-0", "10.97.0.10"]
    assert cloud.ssh(EIP, "systemctl is-system-running --wait") == "running"


def test_sshd_starts_once(cloud: Cloud, host: Host) -> None:
    # A restart while cloud-init works would cut the first login off.
    cloud.ssh(EIP, "cloud-init status --wait")
    assert cloud.ssh(EIP, "journalctl -b -u ssh -o cat | grep -c 'Server listening on 0.0.0.0'") == "1"


def test_no_token_in_the_log_of_cloud_init(cloud: Cloud, host: Host) -> None:
    log = cloud.ssh(EIP, "grep -h X-aliyun-ecs-metadata-token /var/log/cloud-init.log")
    assert "REDACTED" in log
    assert not [line for line in log.splitlines() if "REDACTED" not in line]


def test_metadata_needs_a_token(cloud: Cloud, host: Host) -> None:
    status = "curl -s -o /dev/null -w %{http_code}"
    assert cloud.ssh(EIP, f"{status} {MD}/meta-data/instance-id") == "403"
    assert cloud.ssh(EIP, f'{status} -H "X-aliyun-ecs-metadata-token: made-up" {MD}/meta-data/instance-id') == "403"
    assert get(cloud, "meta-data/instance-id") == host.instance_id


def test_metadata_of_the_instance(cloud: Cloud, host: Host) -> None:
    assert get(cloud, "meta-data/instance/instance-type") == TYPE
    assert get(cloud, "meta-data/instance/spot/termination-time") == "2030-01-05T18:02:00Z"
    assert get(cloud, "meta-data/eipv4") == EIP
    assert get(cloud, "user-data") == USER_DATA.decode().strip()
    assert get(cloud, "meta-data/ram/security-credentials/") == "hpc-elastic"
    credentials = json.loads(get(cloud, "meta-data/ram/security-credentials/hpc-elastic"))
    assert (credentials["Code"], credentials["AccessKeyId"]) == ("Success", f"STS.{host.instance_id}")


def test_names_resolve(cloud: Cloud, host: Host) -> None:
    for name, address in (
        ("node-1", "10.97.0.11"),
        ("login-0.", "10.97.0.10"),
        ("mirrors.cloud.aliyuncs.com", "100.100.2.148"),
        ("ecs.cn-hangzhou.aliyuncs.com", "100.100.2.150"),
    ):
        # login-0 is in /etc/hosts, too: ask the resolver itself.
        script = f"import socket; print(socket.gethostbyname({name!r}))"
        assert cloud.ssh(EIP, f'python3 -c "{script}"') in (address, "127.0.1.1")
    assert cloud.ssh(EIP, "getent hosts 10.97.0.11").split()[1] == "node-1"


def test_boot_time_is_the_hosts_own(cloud: Cloud, host: Host) -> None:
    # slurmctld takes a node for rebooted by its boot time: sysinfo(2) has to say when the host booted.
    up = float(cloud.ssh(EIP, "cut -d' ' -f1 /proc/uptime"))
    with open("/proc/uptime", encoding="ascii") as file:  # noqa: PTH123
        machine = float(file.read().split()[0])
    assert 0 <= up < machine
    assert up < 900


def test_packages_come_through_the_mirror(cloud: Cloud, host: Host) -> None:
    cloud.ssh(EIP, "apt-get update -qq && apt-get install -y -qq tree >/dev/null", timeout=300)
    assert "tree v" in cloud.ssh(EIP, "tree --version")


def test_pip_works_through_the_mirror(cloud: Cloud, host: Host) -> None:
    cloud.ssh(EIP, "python3 -m venv /opt/v && /opt/v/bin/pip install -q iniconfig", timeout=300)
    assert cloud.ssh(EIP, "/opt/v/bin/python -c 'import iniconfig; print(iniconfig.__name__)'") == "iniconfig"


def test_console_has_the_boot(cloud: Cloud, host: Host) -> None:
    assert "Reached target" in cloud.backend.console_output(host.instance_id)


def test_only_the_clouds_names_for_a_host_without_a_way_out(cloud: Cloud, host: Host) -> None:
    cloud.wait_ssh("10.97.0.11", through=EIP)
    for name, code in (("login-0", "0"), ("mirrors.cloud.aliyuncs.com", "0"), ("deb.debian.org", "2")):
        assert cloud.ssh("10.97.0.11", f"getent hosts {name} >/dev/null; echo $?", through=EIP) == code
    # 28: timed out, no answer and no refusal
    assert cloud.ssh("10.97.0.11", "curl -s -m 3 http://203.0.113.80/; echo $?", through=EIP) == "28"
