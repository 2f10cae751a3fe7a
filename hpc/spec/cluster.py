"""The whole description of a cluster: the value of `hpc:cluster` in a stack file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hpc.spec.base import Form, Name, RegionId, SpecModel, TagKey, TagValue, ZoneId
from hpc.spec.image import ImageSpec
from hpc.spec.money import BudgetSpec, QuotaSpec, UsageSpec
from hpc.spec.network import NetworkSpec
from hpc.spec.nodes import LoginSpec, ManagementSpec
from hpc.spec.pool import PoolSpec
from hpc.spec.software import AccessSpec, MpiSpec, SlurmSpec
from hpc.spec.storage import StorageSpec

FindingCode = Annotated[str, Form(r"^HPC\d{3}$", "a code such as HPC207")]


class ClusterSpec(SpecModel):
    """A cluster. Only `name`, `region`, `zones` and `pools` have to be given."""

    name: Name
    """Name of the cluster; first part of every resource name."""

    region: RegionId
    """Region, for instance `cn-hangzhou`; must agree with `alicloud:region` where that is set."""

    zones: Annotated[tuple[ZoneId, ...], Field(min_length=1, max_length=8)]
    """Zones in order of preference; each gets a vSwitch. Management and login nodes live in the first."""

    network: NetworkSpec = NetworkSpec()
    """Network."""

    image: ImageSpec = ImageSpec()
    """Image of all nodes; pools may have their own."""

    storage: Annotated[tuple[StorageSpec, ...], Field(max_length=20)] = (StorageSpec(mount="/home"),)
    """Shared file systems. The first general one also holds the cluster's configuration and software."""

    management: ManagementSpec = ManagementSpec()
    """Management node(s)."""

    login: LoginSpec = LoginSpec()
    """Login nodes."""

    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1, max_length=100)]
    """Compute pools in order of preference."""

    slurm: SlurmSpec = SlurmSpec()
    """Scheduler settings."""

    mpi: MpiSpec = MpiSpec()
    """MPI stacks."""

    access: AccessSpec = AccessSpec()
    """Keys and users."""

    budget: BudgetSpec = BudgetSpec()
    """Caps on price and size."""

    usage: dict[Name, UsageSpec] = Field(default_factory=dict, max_length=200)
    """Expected use by pool, for the monthly estimate."""

    quota: QuotaSpec = QuotaSpec()
    """Quota of the account."""

    tags: dict[TagKey, TagValue] = Field(default_factory=dict, max_length=100)
    """Tags of every resource, beside `hpc:cluster` and `hpc:role`, which are always there."""

    checks: dict[FindingCode, Literal["warning", "off"]] = Field(default_factory=dict, max_length=200)
    """Findings to be downgraded to a warning or switched off, by code, where the code allows it."""

    protect: bool = True
    """Protect file systems and management nodes from being replaced or deleted."""

    def pool(self, name: str) -> PoolSpec | None:
        """The pool with this name, or None."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def pool_zones(self, pool: PoolSpec) -> tuple[str, ...]:
        """Zones of a pool in order of preference."""
        return pool.zones or self.zones

    def pool_image(self, pool: PoolSpec) -> ImageSpec:
        """Image of a pool."""
        return pool.image or self.image
