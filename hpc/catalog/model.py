"""What the catalog knows: types of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Literal

Architecture = Literal["x86_64", "arm64"]
Charge = Literal["payg", "spot", "prepaid"]
PackageFamily = Literal["apt", "dnf"]


class Capability(StrEnum):
    """Whether a type can do something: `likely` is inferred from sibling families, `unknown` was not found out."""

    YES = "yes"
    LIKELY = "likely"
    NO = "no"
    UNKNOWN = "unknown"

    @property
    def usable(self) -> bool:
        """Whether it is worth trying: yes or likely."""
        return self in (Capability.YES, Capability.LIKELY)


class Reliability(StrEnum):
    """How far a figure can be trusted.

    `live` was read from the account's own API, `quoted` from a page of the cloud, `third-party` from somebody else's
    public file, `derived` is computed by the formula that its source states, `unknown` was not found at all.
    """

    LIVE = "live"
    QUOTED = "quoted"
    THIRD_PARTY = "third-party"
    DERIVED = "derived"
    UNKNOWN = "unknown"

    @property
    def weak(self) -> bool:
        """Whether money that rests on it should be read with doubt."""
        return self in (Reliability.DERIVED, Reliability.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Family:
    """An instance family.

    Attributes:
        name: for instance `ecs.c8ae`.
        architecture: of its processors.
        cpu: processor and clock, as the cloud's page describes it.
        threads_per_core: vCPUs per physical core.
        gib_per_vcpu: documented memory rule, or None where the family has none.
        erdma: whether its types have an elastic RDMA interface.
        erdma_min_vcpus: smallest type with eRDMA, in vCPUs, or None where all have it.
        low_latency_placement: whether a deployment set with the strategy LowLatency takes it.
        supported_os: names of `hpc.spec` that the page allows, or None where it does not restrict them.
        invite_only: sold by ticket only.
        jumbo_frames: whether the page lists jumbo frames (MTU 8500).
        reliability: of the row.
        note: what else a user should know.
        source: where the row comes from.
        as_of: when it was read.
    """

    name: str
    architecture: Architecture
    cpu: str
    threads_per_core: int
    gib_per_vcpu: int | None
    erdma: Capability
    erdma_min_vcpus: int | None
    low_latency_placement: Capability
    supported_os: tuple[str, ...] | None
    invite_only: bool
    jumbo_frames: Capability
    reliability: Reliability
    note: str
    source: str
    as_of: str


@dataclass(frozen=True, slots=True)
class InstanceType:
    """An instance type.

    Attributes:
        name: for instance `ecs.c8ae.32xlarge`.
        family: for instance `ecs.c8ae`.
        vcpus: CPUs that the operating system sees; physical cores where hyper-threading is off for good.
        physical_cores: cores.
        threads_per_core: vCPUs per core, 1 or 2.
        memory_gib: nominal memory, GiB.
        architecture: of its processor.
        erdma: whether it has an elastic RDMA interface.
        eri_quantity: number of elastic RDMA interfaces, or None where not known.
        network_gbps: guaranteed network bandwidth, Gbit/s, or None where not known.
        erdma_gbps: bandwidth of the RDMA interface, Gbit/s, or None where not published.
        low_latency_placement: whether a deployment set with the strategy LowLatency takes it.
        supported_os: names of `hpc.spec` that the family allows, or None where it does not restrict them.
        invite_only: sold by ticket only.
        jumbo_frames: whether the family has jumbo frames (MTU 8500).
        reliability: of the sizes.
        source: where the row comes from.
        as_of: when it was read.
        zones: zones that sold it at the last refresh, or None where the catalog was not refreshed.
    """

    name: str
    family: str
    vcpus: int
    physical_cores: int
    threads_per_core: int
    memory_gib: float
    architecture: Architecture
    erdma: Capability
    eri_quantity: int | None
    network_gbps: float | None
    erdma_gbps: float | None
    low_latency_placement: Capability
    supported_os: tuple[str, ...] | None
    invite_only: bool
    jumbo_frames: Capability
    reliability: Reliability
    source: str
    as_of: str
    zones: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """A region and its zones; ids as `cn-hangzhou` and `cn-hangzhou-j`."""

    id: str
    title: str
    zones: tuple[str, ...]
    reliability: Reliability
    source: str
    as_of: str


@dataclass(frozen=True, slots=True)
class Image:
    """A public image of one distribution for one architecture.

    Attributes:
        os: name in `hpc.spec`, for instance `alinux-3`.
        title: for people.
        architecture: of the machines it boots on.
        package_family: `apt` or `dnf`.
        name_regex: finds all builds of it among the system images.
        image_id: a build that has been published; the newest is better found by `name_regex`.
        login_user: the administrator's account in it.
        erdma_driver: whether the eRDMA installer lists the distribution.
        note: what else a user should know.
        reliability: of the row.
        source: where the row comes from.
        as_of: when it was read.
    """

    os: str
    title: str
    architecture: Architecture
    package_family: PackageFamily
    name_regex: str
    image_id: str
    login_user: str
    erdma_driver: bool
    note: str
    reliability: Reliability
    source: str
    as_of: str


@dataclass(frozen=True, slots=True)
class Price:
    """A price.

    Attributes:
        amount: money per unit, or None where no price is known. List price, without discounts of an account.
        currency: `CNY`.
        unit: `hour`, `month`, `GiB-hour`, `GiB-month`, `GB`, ...
        reliability: how far it can be trusted.
        source: where it comes from, the formula where it is derived.
        as_of: when it was read.
        trade_amount: what this account would pay after its discounts, where a refresh has read it.
    """

    amount: Decimal | None
    currency: str
    unit: str
    reliability: Reliability
    source: str
    as_of: str
    trade_amount: Decimal | None = None
