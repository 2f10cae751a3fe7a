"""What the API server and the instance hosts ask of each other.

The API server owns the truth (the SQLite database). It tells a `HostBackend` what should exist; the backend makes it
exist on this machine. The metadata service and the NAS helper, which live with the hosts, ask a `MetadataSource` about
an instance.
Every type here is frozen, plain data: either side can be tested without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class HostState(StrEnum):
    """States of an instance host, named as `DescribeInstances` names them."""

    PENDING = "Pending"
    RUNNING = "Running"
    STARTING = "Starting"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class Host:
    """An instance as the machine below it needs to know it.

    Attributes:
        instance_id: `i-...`.
        hostname: the host name the API gave it (lower case; resolvable by every host of the same VPC).
        vpc_id, vswitch_id: where its primary interface is.
        private_ip: address of the primary interface, inside the vSwitch's CIDR.
        mac: MAC address of the primary interface.
        security_group_ids: groups of the primary interface.
        vcpus: number of vCPUs of the instance type.
        memory_mib: memory of the instance type in MiB.
        image_id: image it boots from (`debian_12_x64_20G_alibase_...` or an image made by CreateImage).
        system_disk_id: survives stop and reboot, goes with the instance on release.
    """

    instance_id: str
    hostname: str
    vpc_id: str
    vswitch_id: str
    private_ip: str
    mac: str
    security_group_ids: tuple[str, ...]
    vcpus: int
    memory_mib: int
    image_id: str
    system_disk_id: str


@dataclass(frozen=True, slots=True)
class VSwitchNet:
    """A vSwitch of the local cloud: `cidr` such as 10.16.0.0/20, gateway = last usable address but two of it."""

    vswitch_id: str
    vpc_id: str
    zone_id: str
    cidr: str


@dataclass(frozen=True, slots=True)
class SecurityRule:
    """One rule of a security group, as the API stores it.

    Attributes:
        direction: `ingress` or `egress`.
        protocol: `tcp`, `udp`, `icmp`, `gre` or `all`.
        port_range: `22/22`, `30000/31000`, or `-1/-1` for protocols without ports.
        cidr: IPv4 CIDR of the other side, or None when `group_id` is given.
        group_id: the other side is every member of this group.
        accept: False for a drop rule.
        priority: 1 (first) to 100.
    """

    direction: str
    protocol: str
    port_range: str
    cidr: str | None
    group_id: str | None
    accept: bool
    priority: int


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    """A security group. `inner_access`: members may talk to each other without a rule (default of a basic group)."""

    group_id: str
    vpc_id: str
    inner_access: bool
    rules: tuple[SecurityRule, ...]


@dataclass(frozen=True, slots=True)
class Eip:
    """An elastic IP address bound to an instance (None while unbound)."""

    allocation_id: str
    address: str
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class MountTarget:
    """A NAS mount target: a host of `vpc_id` whose address one of `allowed_cidrs` holds may mount it.

    Attributes:
        domain: e.g. `1a2b3c-abc1.cn-hangzhou.nas.aliyuncs.com`.
        file_system_id: the directory behind it is kept per file system and outlives mount targets.
        export: exported path, `/` for general NAS and `/share` for extreme NAS.
        read_only_cidrs: subset of `allowed_cidrs` that may only read.
    """

    domain: str
    file_system_id: str
    vpc_id: str
    export: str
    allowed_cidrs: tuple[str, ...]
    read_only_cidrs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Network:
    """Everything that decides which packet may go where; always the whole picture, applied in one transaction.

    `nat_vswitches` are the vSwitches with a SNAT entry: only their hosts (and hosts with an EIP) reach package
    mirrors outside of the cloud's own services.
    """

    vswitches: tuple[VSwitchNet, ...]
    security_groups: tuple[SecurityGroup, ...]
    eips: tuple[Eip, ...]
    nat_vswitches: tuple[str, ...]
    mount_targets: tuple[MountTarget, ...]
    hosts: tuple[Host, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What 100.100.100.200 tells an instance about itself.

    Attributes:
        host: the instance.
        region_id, zone_id, instance_type, vpc_cidr, vswitch_cidr: as the API knows them.
        user_data: raw bytes after base64 decoding (b"" if none).
        public_keys: OpenSSH public keys of its key pair(s).
        token_required: `http_tokens=required`: requests without a token are answered 403.
        ram_role: name of the RAM role bound to it, or None.
        spot_termination_time: set once the cloud has decided to reclaim it.
        tags: instance tags.
    """

    host: Host
    region_id: str
    zone_id: str
    instance_type: str
    vpc_cidr: str
    vswitch_cidr: str
    user_data: bytes
    public_keys: tuple[str, ...]
    token_required: bool
    ram_role: str | None
    spot_termination_time: datetime | None
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RoleCredentials:
    """Temporary credentials of a RAM role, as the metadata service hands them out."""

    access_key_id: str
    access_key_secret: str
    security_token: str
    expiration: datetime


class MetadataSource(Protocol):
    """Answered by the API server, asked by the metadata service, the DNS server and the NAS helper."""

    def metadata(self, vpc_id: str, private_ip: str) -> Metadata | None:
        """The instance with this address in this VPC, or None."""

    def role_credentials(self, instance_id: str, role: str) -> RoleCredentials | None:
        """Fresh credentials of the role if it is bound to the instance, else None."""


class HostBackend(Protocol):
    """Makes instances real on this machine. Calls return at once or within seconds and may come from any thread.

    Hosts outlive the API server: after a kill -9 of the server they go on running, and `adopt` finds them again.
    """

    #: False for the API-only backend: instances then change state by the clock alone.
    real: bool

    def adopt(
        self, hosts: Sequence[Host], source: MetadataSource, on_exit: Callable[[str], None]
    ) -> Mapping[str, HostState]:
        """Called once at start: find the hosts that live, remove leftovers in no list, say who is in which state.

        `on_exit(instance_id)` is to be called when a host powers itself off or dies.
        """

    def apply(self, network: Network) -> None:
        """Make bridges, packet filters, addresses, NAT, names and mount targets what `network` says."""

    def start(self, host: Host) -> None:
        """Boot the instance (first boot: make its disk from the image)."""

    def stop(self, instance_id: str, *, force: bool) -> None:
        """Power off; the disk stays."""

    def reboot(self, instance_id: str, *, force: bool) -> None:
        """Reboot in place."""

    def release(self, instance_id: str) -> None:
        """End the host and remove its disk. Unknown ids are not an error."""

    def create_image(self, instance_id: str, image_id: str) -> None:
        """Keep the disk of a stopped or running instance as an image to boot others from."""

    def delete_image(self, image_id: str) -> None:
        """Forget an image made by `create_image`."""

    def delete_file_system(self, file_system_id: str) -> None:
        """Remove the directory behind a NAS file system."""

    def console_output(self, instance_id: str) -> str:
        """The last 64 KiB of what the host wrote to its console."""

    def close(self) -> None:
        """The API server stops in an orderly way: hosts are left as they are."""
