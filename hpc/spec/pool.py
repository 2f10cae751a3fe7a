"""A compute pool: nodes that come when jobs need them and go when they do not."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from hpc.spec.base import Form, InstanceTypeName, Name, SpecModel, TagKey, TagValue, Whole, ZoneId
from hpc.spec.image import ImageSpec
from hpc.spec.nodes import DiskSpec
from hpc.spec.units import Duration, Money


class PoolCharge(StrEnum):
    """How compute nodes are paid for. `prepaid` can be written but is refused: a subscription cannot be released."""

    SPOT = "spot"
    PAYG = "payg"
    SPOT_THEN_PAYG = "spot-then-payg"
    PREPAID = "prepaid"


class Interconnect(StrEnum):
    """Fabric of MPI: elastic RDMA, or TCP over the VPC."""

    ERDMA = "erdma"
    TCP = "tcp"


class Placement(StrEnum):
    """Deployment set of a pool: none, close together, or spread over racks."""

    NONE = "none"
    LOW_LATENCY = "low-latency"
    AVAILABILITY = "availability"


#: A feature name of Slurm.
Feature = Annotated[
    str, Form(r"^[A-Za-z][A-Za-z0-9_]{0,31}$", "a feature name: letters, digits and underscores, first a letter")
]


class PoolSpec(SpecModel):
    """A pool of elastic compute nodes; each pool is a partition of the same name."""

    name: Name
    """Name of the pool, of its partition, and first part of its node names (`mpi-1`, `mpi-2`, ...)."""

    instance_types: Annotated[tuple[InstanceTypeName, ...], Field(min_length=1, max_length=10)]
    """Instance types in order of preference; all must look the same to Slurm."""

    zones: Annotated[tuple[ZoneId, ...], Field(max_length=8)] = ()
    """Zones in order of preference; all zones of the cluster, in its order, unless given."""

    charge: PoolCharge = PoolCharge.SPOT
    """`spot`, `payg` or `spot-then-payg` (pay-as-you-go where there is no spot stock)."""

    spot_price_limit: Money | None = None
    """Highest price per instance and hour (CNY) for spot; the market price, at most pay-as-you-go, unless given."""

    spot_duration: Literal[0, 1] = 0
    """Protected hours of a spot instance: 1 for one hour without reclaim, 0 for none (cheaper)."""

    min: Annotated[Whole, Field(ge=0, le=10000)] = 0
    """Nodes that are always kept; 0 scales to zero."""

    max: Annotated[Whole, Field(ge=1, le=10000)] = 8
    """Most nodes at once."""

    idle: Duration = timedelta(minutes=10)
    """How long a node may be idle before it is released (SuspendTime)."""

    auto_release: Duration = timedelta(hours=1)
    """Dead-man's switch: how far ahead the release time of a node is kept while the elastic daemon watches it."""

    max_lifetime: Duration | None = None
    """Longest life of a node; it is then drained and released. No limit unless given."""

    resume_timeout: Duration = timedelta(minutes=10)
    """How long a node may take from launch to registration (ResumeTimeout)."""

    interconnect: Interconnect = Interconnect.ERDMA
    """`erdma` or `tcp`."""

    placement: Placement = Placement.NONE
    """`none`, `low-latency` or `availability`."""

    hyperthreading: bool = False
    """Let Slurm use both threads of a core. Off, each physical core is one CPU."""

    memory_margin_percent: Annotated[Whole, Field(ge=1, le=50)] = 5
    """Share of the memory that Slurm leaves to the system: RealMemory is the type's memory minus this."""

    image: ImageSpec | None = None
    """Image of this pool; the cluster's unless given."""

    system_disk: DiskSpec = DiskSpec(size_gib=40)
    """System disk of each node."""

    features: Annotated[tuple[Feature, ...], Field(max_length=32)] = ()
    """Extra features for `sbatch --constraint`; the instance family and interconnect are always there."""

    weight: Annotated[Whole, Field(ge=1, le=65533)] | None = None
    """Slurm weight: pools with a lower one are used first; the order in the file unless given."""

    max_time: Duration | None = None
    """Longest job in the pool's partition (MaxTime); no limit unless given."""

    tags: dict[TagKey, TagValue] = Field(default_factory=dict, max_length=100)
    """Tags of the pool's instances, disks and interfaces, beside the cluster's."""

    @property
    def uses_spot(self) -> bool:
        """Whether nodes may be spot instances."""
        return self.charge in (PoolCharge.SPOT, PoolCharge.SPOT_THEN_PAYG)
