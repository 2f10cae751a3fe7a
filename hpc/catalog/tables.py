"""Reading of the shipped data files, once, when first asked for."""

from __future__ import annotations

import csv
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import cast

from hpc.catalog.model import (
    Architecture,
    Capability,
    Family,
    Image,
    InstanceType,
    PackageFamily,
    Price,
    Region,
    Reliability,
)


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("hpc.catalog") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _whole(text: str) -> int | None:
    return int(text) if text else None


def _number(text: str) -> float | None:
    return float(text) if text else None


@cache
def families() -> dict[str, Family]:
    """All families by name."""
    return {
        row["family"]: Family(
            name=row["family"],
            architecture=cast(Architecture, row["architecture"]),
            cpu=row["cpu"],
            threads_per_core=int(row["threads_per_core"]),
            gib_per_vcpu=_whole(row["gib_per_vcpu"]),
            erdma=Capability(row["erdma"]),
            erdma_min_vcpus=_whole(row["erdma_min_vcpus"]),
            low_latency_placement=Capability(row["low_latency_placement"]),
            supported_os=tuple(row["supported_os"].split()) or None,
            invite_only=row["invite_only"] == "yes",
            jumbo_frames=Capability(row["jumbo_frames"] or "unknown"),
            reliability=Reliability(row["reliability"]),
            note=row["note"],
            source=row["source"],
            as_of=row["as_of"],
        )
        for row in _rows("families")
    }


def erdma_of(family: Family, vcpus: int) -> Capability:
    """eRDMA capability of a size of the family."""
    if family.erdma_min_vcpus is not None and vcpus < family.erdma_min_vcpus:
        return Capability.NO
    return family.erdma


def derived_type(name: str, family: Family, vcpus: int, memory_gib: float) -> InstanceType:
    """A type of a known family of which no more than its size is known."""
    return InstanceType(
        name=name,
        family=family.name,
        vcpus=vcpus,
        physical_cores=max(1, vcpus // family.threads_per_core),
        threads_per_core=family.threads_per_core,
        memory_gib=memory_gib,
        architecture=family.architecture,
        erdma=erdma_of(family, vcpus),
        eri_quantity=None,
        network_gbps=None,
        erdma_gbps=None,
        low_latency_placement=family.low_latency_placement,
        supported_os=family.supported_os,
        invite_only=family.invite_only,
        jumbo_frames=family.jumbo_frames,
        reliability=Reliability.DERIVED,
        source=family.source,
        as_of=family.as_of,
    )


@cache
def instance_types() -> dict[str, InstanceType]:
    """All instance types by name, in the order of the data file: family, then size."""
    out = {}
    for row in _rows("sizes"):
        family = families()[row["family"]]
        vcpus = int(row["vcpus"])
        out[row["instance_type"]] = InstanceType(
            name=row["instance_type"],
            family=family.name,
            vcpus=vcpus,
            physical_cores=int(row["physical_cores"]),
            threads_per_core=int(row["threads_per_core"]),
            memory_gib=float(row["memory_gib"]),
            architecture=family.architecture,
            erdma=erdma_of(family, vcpus),
            eri_quantity=_whole(row["eri_quantity"]),
            network_gbps=_number(row["network_gbps"]),
            erdma_gbps=_number(row["erdma_gbps"]),
            low_latency_placement=family.low_latency_placement,
            supported_os=family.supported_os,
            invite_only=family.invite_only,
            jumbo_frames=family.jumbo_frames,
            reliability=Reliability(row["reliability"]),
            source=row["source"],
            as_of=row["as_of"],
        )
    return out


@cache
def regions() -> dict[str, Region]:
    """All regions by id."""
    return {
        row["region"]: Region(
            id=row["region"],
            title=row["title"],
            zones=tuple(row["zones"].split()),
            reliability=Reliability(row["reliability"]),
            source=row["source"],
            as_of=row["as_of"],
        )
        for row in _rows("regions")
    }


@cache
def images() -> dict[tuple[str, str], Image]:
    """All images by distribution and architecture."""
    return {
        (row["os"], row["architecture"]): Image(
            os=row["os"],
            title=row["title"],
            architecture=cast(Architecture, row["architecture"]),
            package_family=cast(PackageFamily, row["package_family"]),
            name_regex=row["name_regex"],
            image_id=row["image_id"],
            login_user=row["login_user"],
            erdma_driver=row["erdma_driver"] == "yes",
            note=row["note"],
            reliability=Reliability(row["reliability"]),
            source=row["source"],
            as_of=row["as_of"],
        )
        for row in _rows("images")
    }


@cache
def prices() -> dict[tuple[str, str, str], Price]:
    """All price rows by item, region (`cn`: mainland China) and charge."""
    return {
        (row["item"], row["region"], row["charge"]): Price(
            amount=Decimal(row["amount"]) if row["amount"] else None,
            currency=row["currency"],
            unit=row["unit"],
            reliability=Reliability(row["reliability"]),
            source=row["source"],
            as_of=row["as_of"],
        )
        for row in _rows("prices")
    }
