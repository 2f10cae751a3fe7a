"""What a refresh has read from an account: a file per region whose values beat the shipped ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hpc.catalog.model import Capability, Family, InstanceType, Price, Region, Reliability
from hpc.catalog.tables import derived_type
from hpc.errors import CannotRunError
from hpc.findings import Finding, Severity

#: A refresh older than this is said to be old: list prices change a few times a year, spot prices all the time.
OLD = timedelta(days=30)


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TypeOverride(_Row):
    """An instance type as DescribeInstanceTypes and DescribeAvailableResource describe it."""

    name: str
    family: str
    vcpus: int = Field(ge=1)
    physical_cores: int | None = None
    threads_per_core: int | None = None
    memory_gib: float = Field(gt=0)
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    eri_quantity: int | None = None
    network_gbps: float | None = None
    jumbo_frames: bool | None = None
    zones: tuple[str, ...] | None = None


class PriceOverride(_Row):
    """A price: list price and what the account would pay, kept apart."""

    item: str
    charge: Literal["payg", "spot", "prepaid"]
    amount: Decimal = Field(ge=0)
    trade_amount: Decimal | None = None
    currency: str = "CNY"
    unit: str = "hour"
    source: str = ""


class Problem(_Row):
    """A part of a refresh that failed; the rest is there."""

    code: str
    what: str
    message: str
    fix: str


class Override(_Row):
    """Everything that one refresh has read from one region."""

    layout: Literal[1] = 1
    """Version of the file's layout."""

    region: str
    endpoint: str | None = None
    """`HOST:PORT` of the API server that was asked, where it was not Alibaba Cloud's own."""

    read_at: datetime
    zones: tuple[str, ...] = ()
    types: tuple[TypeOverride, ...] = ()
    prices: tuple[PriceOverride, ...] = ()
    problems: tuple[Problem, ...] = ()

    def age(self, now: datetime) -> timedelta:
        """Time since the refresh."""
        return now - self.read_at

    @property
    def as_of(self) -> str:
        """Day of the refresh, UTC."""
        return self.read_at.astimezone(UTC).strftime("%Y-%m-%d")

    def as_region(self, known: Region | None) -> Region:
        """The region with the zones that the account sees."""
        return Region(
            id=self.region,
            title=known.title if known else self.region,
            zones=self.zones,
            reliability=Reliability.LIVE,
            source="DescribeAvailableResource",
            as_of=self.as_of,
        )

    def findings(self, now: datetime) -> tuple[Finding, ...]:
        """What a user of the file should know: parts of the refresh that failed (HPC022), and old age (HPC023)."""
        out = [
            Finding(problem.code, Severity.WARNING, "", self.region, f"{problem.what}: {problem.message}", problem.fix)
            for problem in self.problems
        ]
        if (age := self.age(now)) > OLD:
            out.append(
                Finding(
                    "HPC023",
                    Severity.WARNING,
                    "",
                    self.region,
                    f"prices and types of {self.region} were read {age.days} days ago ({self.as_of})",
                    f"read them again with: hpc catalog refresh --region {self.region}",
                )
            )
        return tuple(out)

    def price_table(self) -> dict[tuple[str, str, str], Price]:
        """The prices as rows of the catalog's table."""
        return {
            (row.item, self.region, row.charge): Price(
                amount=row.amount,
                currency=row.currency,
                unit=row.unit,
                reliability=Reliability.LIVE,
                source=row.source or "refresh",
                as_of=self.as_of,
                trade_amount=row.trade_amount,
            )
            for row in self.prices
        }


def applied_types(
    shipped: Mapping[str, InstanceType], families: Mapping[str, Family], overrides: tuple[Override, ...]
) -> dict[str, InstanceType]:
    """The shipped types with what refreshes know better; types that only a refresh knows are added."""
    out = dict(shipped)
    for override in overrides:
        for row in override.types:
            out[row.name] = _merged(out.get(row.name), row, families.get(row.family), override)
    return out


def _unheard_of(row: TypeOverride) -> Family:
    """A family that the shipped data do not have."""
    return Family(
        name=row.family,
        architecture=row.architecture,
        cpu="",
        threads_per_core=2,
        gib_per_vcpu=None,
        erdma=Capability.UNKNOWN,
        erdma_min_vcpus=None,
        low_latency_placement=Capability.UNKNOWN,
        supported_os=None,
        invite_only=False,
        jumbo_frames=Capability.UNKNOWN,
        reliability=Reliability.LIVE,
        note="",
        source="DescribeInstanceTypes",
        as_of="",
    )


def _merged(base: InstanceType | None, row: TypeOverride, family: Family | None, override: Override) -> InstanceType:
    if base is None:
        base = derived_type(row.name, family or _unheard_of(row), row.vcpus, row.memory_gib)
    threads = row.threads_per_core or base.threads_per_core
    cores = row.physical_cores or max(1, row.vcpus // threads)
    erdma = base.erdma
    if row.eri_quantity is not None:
        erdma = Capability.YES if row.eri_quantity > 0 else Capability.NO
    jumbo = base.jumbo_frames
    if row.jumbo_frames is not None:
        jumbo = Capability.YES if row.jumbo_frames else Capability.NO
    return replace(
        base,
        vcpus=row.vcpus,
        physical_cores=cores,
        threads_per_core=threads,
        memory_gib=row.memory_gib,
        architecture=row.architecture,
        erdma=erdma,
        eri_quantity=base.eri_quantity if row.eri_quantity is None else row.eri_quantity,
        network_gbps=base.network_gbps if row.network_gbps is None else row.network_gbps,
        jumbo_frames=jumbo,
        reliability=Reliability.LIVE,
        source=f"DescribeInstanceTypes in {override.region}",
        as_of=override.as_of,
        # Zone ids name their region, so what refreshes of several regions say of a type goes side by side.
        zones=base.zones if row.zones is None else tuple(sorted({*(base.zones or ()), *row.zones})),
    )


def read_override(path: Path) -> Override:
    """Read an override file.

    Raises:
        CannotRunError: HPC020, the file cannot be read or is not an override file.
    """
    try:
        return Override.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CannotRunError(
            f"the catalog file {path} cannot be read: {error.strerror}",
            code="HPC020",
            fix="name an existing file, or make one with: hpc catalog refresh --region REGION",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise CannotRunError(
            f"the catalog file {path} is damaged: {where}: {first['msg']}",
            code="HPC020",
            fix="make it again with: hpc catalog refresh --region REGION",
        ) from error


def write_override(override: Override, path: Path) -> None:
    """Write an override file in one step, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(override.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
