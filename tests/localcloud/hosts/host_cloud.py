"""A small cloud for tests: keeps a `Network`, answers as the API server would, speaks SSH to its hosts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localcloud.contracts import (
    Eip,
    Host,
    HostState,
    Metadata,
    MountTarget,
    Network,
    RoleCredentials,
    SecurityGroup,
    SecurityRule,
    VSwitchNet,
)
from localcloud.hosts.backend import NspawnBackend

REGION, ZONE, TYPE = "cn-hangzhou", "cn-hangzhou-j", "ecs.c8i.large"
SSH_RULE = SecurityRule("ingress", "tcp", "22/22", "192.0.2.0/24", None, True, 1)
WAIT_S = 120


@dataclass
class Source:
    """What the API server would know of the instances."""

    records: dict[tuple[str, str], Metadata]

    def metadata(self, vpc_id: str, private_ip: str) -> Metadata | None:
        return self.records.get((vpc_id, private_ip))

    def role_credentials(self, instance_id: str, role: str) -> RoleCredentials | None:
        for record in self.records.values():
            if record.host.instance_id == instance_id and record.ram_role == role:
                return RoleCredentials(f"STS.{instance_id}", "secret", "token", datetime.now(UTC) + timedelta(hours=6))
        return None


class Cloud:
    """One local cloud with real hosts; `public_key` logs in to all of them."""

    def __init__(self, state_dir: Path, key: Path, *, api_port: int | None = None) -> None:
        self.state_dir = state_dir
        self.key = key
        self.source = Source({})
        self.exits: list[str] = []
        self.network = Network((), (), (), (), (), ())
        self.backend = NspawnBackend(state_dir, api_port=api_port)
        self._count = 0

    def adopt(self) -> Mapping[str, HostState]:
        return self.backend.adopt(self.network.hosts, self.source, self.exits.append)

    def change(self, **parts: tuple[object, ...]) -> None:
        """Replace parts of the network and apply it."""
        self.network = replace(self.network, **parts)  # type: ignore[arg-type]
        self.backend.apply(self.network)

    def add_vpc(self, name: str, cidr: str, *rules: SecurityRule, nat: bool = False) -> str:
        """A VPC with one vSwitch and one group; returns its id."""
        vpc_id, vswitch_id, group_id = f"vpc-{name}", f"vsw-{name}", f"sg-{name}"
        self.change(
            vswitches=(*self.network.vswitches, VSwitchNet(vswitch_id, vpc_id, ZONE, cidr)),
            security_groups=(
                *self.network.security_groups,
                SecurityGroup(group_id, vpc_id, True, (SSH_RULE, *rules)),
            ),
            nat_vswitches=(*self.network.nat_vswitches, vswitch_id) if nat else self.network.nat_vswitches,
        )
        return vpc_id

    def add_host(
        self,
        hostname: str,
        vpc: str,
        ip: str,
        *,
        eip: str | None = None,
        user_data: bytes = b"",
        groups: tuple[str, ...] | None = None,
        image_id: str = "debian_12_x64_20G_alibase_20250101.vhd",
        start: bool = True,
        **metadata: object,
    ) -> Host:
        """An instance, started at once, with an elastic IP address if given."""
        self._count += 1
        name = vpc.removeprefix("vpc-")
        host = Host(
            instance_id=f"i-{name}{self._count:03d}",
            hostname=hostname,
            vpc_id=vpc,
            vswitch_id=f"vsw-{name}",
            private_ip=ip,
            mac=f"00:16:3e:00:00:{self._count:02x}",
            security_group_ids=groups or (f"sg-{name}",),
            vcpus=2,
            memory_mib=4096,
            image_id=image_id,
            system_disk_id=f"d-{name}{self._count:03d}",
        )
        cidr = next(v.cidr for v in self.network.vswitches if v.vswitch_id == host.vswitch_id)
        values = {
            "token_required": False,
            "ram_role": None,
            "spot_termination_time": None,
            "tags": {"pool": "mpi"},
            **metadata,
        }
        self.source.records[(vpc, ip)] = Metadata(
            host=host,
            region_id=REGION,
            zone_id=ZONE,
            instance_type=TYPE,
            vpc_cidr=cidr,
            vswitch_cidr=cidr,
            user_data=user_data,
            public_keys=(self.key.with_suffix(".pub").read_text().strip(),),
            **values,  # type: ignore[arg-type]
        )
        eips = (Eip(f"eip-{host.instance_id}", eip, host.instance_id),) if eip else ()
        self.change(hosts=(*self.network.hosts, host), eips=(*self.network.eips, *eips))
        if start:
            self.backend.start(host)
        return host

    def remove_host(self, host: Host) -> None:
        """Release an instance."""
        self.backend.release(host.instance_id)
        self.source.records.pop((host.vpc_id, host.private_ip), None)
        self.change(
            hosts=tuple(h for h in self.network.hosts if h != host),
            eips=tuple(e for e in self.network.eips if e.instance_id != host.instance_id),
        )

    def add_target(self, target: MountTarget) -> None:
        self.change(mount_targets=(*self.network.mount_targets, target))

    def ssh(
        self, address: str, command: str, *, check: bool = True, timeout: int = 60, through: str | None = None
    ) -> str:
        """Run a command on a host as root, through another one if given; returns what it printed."""
        done = self.ssh_process(address, command, timeout, through)
        if check and done.returncode:
            raise AssertionError(f"{command!r} on {address}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def ssh_process(
        self, address: str, command: str, timeout: int = 60, through: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        options = "BatchMode=yes StrictHostKeyChecking=no UserKnownHostsFile=/dev/null ConnectTimeout=5 LogLevel=ERROR"
        words = [word for option in options.split() for word in ("-o", option)]
        if through:
            inner = " ".join(["ssh", "-i", str(self.key), *words, "-W", "%h:%p", f"root@{through}"])
            words += ["-o", f"ProxyCommand={inner}"]
        return subprocess.run(
            ["ssh", "-i", str(self.key), *words, f"root@{address}", command],
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )

    def wait_ssh(self, address: str, through: str | None = None) -> None:
        """Wait until the host takes a login (it refuses while cloud-init has not yet placed the key)."""
        wait_for(lambda: self.ssh_process(address, "true", through=through).returncode == 0, f"SSH to {address}")


def wait_for(condition: Callable[[], bool], what: str, timeout: float = WAIT_S) -> None:
    """Poll a condition; fails with its name."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout} s")
        time.sleep(0.1)
