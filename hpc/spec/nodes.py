"""The long-lived nodes: management and login."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from hpc.spec.base import InstanceTypeName, SpecModel, Whole, ZoneId


class NodeCharge(StrEnum):
    """How a long-lived node is paid for: by the hour, or by subscription."""

    PAYG = "payg"
    PREPAID = "prepaid"


class PerformanceLevel(StrEnum):
    """Performance levels of ESSD disks."""

    PL0 = "PL0"
    PL1 = "PL1"
    PL2 = "PL2"
    PL3 = "PL3"


class DiskSpec(SpecModel):
    """A system disk (always an ESSD)."""

    size_gib: Annotated[Whole, Field(ge=20, le=2048)] = 60
    """Size in GiB, 20 to 2,048 (system disks of ECS)."""

    performance_level: PerformanceLevel = PerformanceLevel.PL0
    """`PL0` to `PL3`."""

    encrypted: bool = True
    """Encrypt at rest with the account's default ECS service key."""


class ManagementSpec(SpecModel):
    """The management node: slurmctld, slurmdbd, MariaDB and the elastic daemon; two of them with `backup`."""

    instance_type: InstanceTypeName = "ecs.c7.2xlarge"
    """Instance type; eRDMA is not needed here."""

    charge: NodeCharge = NodeCharge.PAYG
    """`payg` or `prepaid` (subscription)."""

    period_months: Annotated[Whole, Field(ge=1, le=60)] = 1
    """Length of a subscription in months."""

    auto_renew: bool = True
    """Renew the subscription by itself."""

    backup: bool = False
    """Make a second management node with a backup controller that takes over."""

    zone: ZoneId | None = None
    """Zone of the (first) management node; the first zone of the cluster unless given."""

    system_disk: DiskSpec = DiskSpec(size_gib=100)
    """System disk; it holds the accounting database."""


class LoginSpec(SpecModel):
    """Login nodes: where people log in, build and submit."""

    count: Annotated[Whole, Field(ge=0, le=10)] = 1
    """Number of login nodes."""

    instance_type: InstanceTypeName = "ecs.c7.xlarge"
    """Instance type; eRDMA is not needed here."""

    charge: NodeCharge = NodeCharge.PAYG
    """`payg` or `prepaid` (subscription)."""

    period_months: Annotated[Whole, Field(ge=1, le=60)] = 1
    """Length of a subscription in months."""

    auto_renew: bool = True
    """Renew the subscription by itself."""

    public_ip: bool = True
    """Give each login node an elastic IP address; without it they are reached through a VPN or a peered VPC."""

    bandwidth_mbps: Annotated[Whole, Field(ge=1, le=200)] = 20
    """Peak outbound bandwidth of the elastic IP address in Mbit/s (paid by traffic)."""

    system_disk: DiskSpec = DiskSpec(size_gib=60)
    """System disk."""
