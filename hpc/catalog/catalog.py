"""Look-ups over the shipped data and, where there is one, the override that a refresh has written."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.catalog import tables
from hpc.catalog.model import Capability, Charge, Family, Image, InstanceType, Price, Region
from hpc.catalog.pricing import PriceKey, billable_vcpus, price_of
from hpc.paths import PROJECT_ROOT, cache_dir

if TYPE_CHECKING:
    from datetime import datetime

    from hpc.catalog.override import Override
    from hpc.findings import Finding

#: A difference of one vCPU weighs as much as one of this many GiB when types are compared.
_GIB_PER_VCPU = 4


def _series(family: str) -> str:
    """Letters before the generation: `ecs.hfc7` is of the series `hfc`."""
    return family.removeprefix("ecs.").rstrip("abcdefghijklmnopqrstuvwxyz").rstrip("0123456789")


class Catalog:
    """Instance types, regions, images and prices. Look-ups are pure and need no network.

    Args:
        overrides: what refreshes have read, by region; such values beat the shipped ones in their region.
    """

    def __init__(self, overrides: tuple[Override, ...] = ()) -> None:
        self.overrides = overrides
        self._priced: dict[PriceKey, Price] = {}

    @cached_property
    def _types(self) -> dict[str, InstanceType]:
        if not self.overrides:
            return tables.instance_types()
        from hpc.catalog.override import applied_types

        return applied_types(tables.instance_types(), tables.families(), self.overrides)

    @cached_property
    def _prices(self) -> dict[PriceKey, Price]:
        out = dict(tables.prices())
        for override in self.overrides:
            out.update(override.price_table())
        return out

    def instance_type(self, name: str) -> InstanceType | None:
        """The type with this name, or None where the catalog does not know it."""
        return self._types.get(name)

    def instance_types(self) -> tuple[InstanceType, ...]:
        """All types, by family and size."""
        return tuple(self._types.values())

    def family(self, name: str) -> Family | None:
        """The family with this name (`ecs.c8ae`), or None. It says more than nothing of a size that is not listed."""
        return tables.families().get(name)

    def families(self) -> tuple[Family, ...]:
        """All families."""
        return tuple(tables.families().values())

    def nearest_erdma(self, name: str) -> InstanceType | None:
        """The type with eRDMA that is closest in vCPUs and memory to a type, same architecture.

        Of equally close ones: the same family, then the same series (`c`, `hfc`), then the same maker of the processor.
        Types that are sold by invitation only are left out. None where the name cannot be placed at all.
        """
        wanted = self.instance_type(name) or self._guess(name)
        if wanted is None:
            return None
        candidates = [
            kind
            for kind in self._types.values()
            if kind.erdma is Capability.YES and kind.architecture == wanted.architecture and not kind.invite_only
        ]

        def distance(kind: InstanceType) -> tuple[float, bool, bool, bool, bool, str]:
            vcpus = abs(billable_vcpus(kind) - billable_vcpus(wanted))
            return (
                vcpus + abs(kind.memory_gib - wanted.memory_gib) / _GIB_PER_VCPU,
                kind.family != wanted.family,
                # c7re is no longer sold everywhere; whoever asks for c7 is better served by what is on sale.
                kind.family == "ecs.c7re",
                _series(kind.family) != _series(wanted.family),
                self._maker(kind.family) != self._maker(wanted.family),
                kind.name,
            )

        return min(candidates, key=distance, default=None)

    def _guess(self, name: str) -> InstanceType | None:
        """A type of a known family whose size is not listed, by the rule of the size names."""
        family_name, _, size = name.rpartition(".")
        family = tables.families().get(family_name)
        if family is None or family.gib_per_vcpu is None:
            return None
        if size == "large":
            vcpus = 2
        elif size.endswith("xlarge") and (size == "xlarge" or size[:-6].isdigit()):
            vcpus = 4 * int(size[:-6] or 1)
        else:
            return None
        return tables.derived_type(name, family, vcpus, float(vcpus * family.gib_per_vcpu))

    def findings(self, now: datetime) -> tuple[Finding, ...]:
        """Warnings on the refreshed values in use: parts that could not be read (HPC022), old age (HPC023)."""
        return tuple(finding for override in self.overrides for finding in override.findings(now))

    def _maker(self, family_name: str) -> str:
        family = tables.families().get(family_name)
        return family.cpu.split(" ")[0] if family else ""

    def region(self, region_id: str) -> Region | None:
        """The region with this id, or None."""
        known = tables.regions().get(region_id)
        for override in self.overrides:
            if override.region == region_id and override.zones:
                return override.as_region(known)
        return known

    def regions(self) -> tuple[Region, ...]:
        """All regions."""
        return tuple(region for region_id in tables.regions() if (region := self.region(region_id)))

    def image(self, os: str, architecture: str) -> Image | None:
        """The public image of a distribution (`alinux-3`) for an architecture (`x86_64`, `arm64`), or None."""
        return tables.images().get((os, architecture))

    def images(self) -> tuple[Image, ...]:
        """All images."""
        return tuple(tables.images().values())

    def price(self, item: str, region: str, charge: Charge) -> Price:
        """Price of an item in CNY, without discounts.

        Args:
            item: an instance type, or `disk/cloud_essd/PL1`, `nas/general/performance`, `nas/extreme/standard`,
                `eip/hour`, `traffic/gib`, `nat/hour`, `monitor/basic`, `fx/USD-CNY`.
            region: region id.
            charge: `payg` (per hour), `spot` (per hour) or `prepaid` (per month).

        Returns:
            The price; its amount is None where none is known.
        """
        key = (item, region, charge)
        if key not in self._priced:
            self._priced[key] = price_of(item, region, charge, table=self._prices, types=self._types)
        return self._priced[key]


@lru_cache(maxsize=1)
def _shipped() -> Catalog:
    return Catalog()


def default_override_files() -> tuple[Path, ...]:
    """Override files that are in use without being named: `catalog.<region>.json` of the project, then of the cache.

    A file of the project, which a team commits, beats the user's own cache for the same region.
    """
    project = sorted(PROJECT_ROOT.glob("catalog.*.json"))
    taken = {path.name.split(".", 1)[1] for path in project}
    cached = [path for path in sorted((cache_dir() / "catalog").glob("*.json")) if path.name not in taken]
    return (*project, *cached)


def load_catalog(overrides: Path | None = None) -> Catalog:
    """The catalog.

    Args:
        overrides: an override file or a folder of them; `default_override_files()` unless given.

    Raises:
        CannotRunError: HPC020, an override file cannot be read or is not one.
    """
    if overrides is None:
        paths = default_override_files()
    elif overrides.is_dir():
        paths = tuple(sorted(overrides.glob("*.json")))
    else:
        paths = (overrides,)
    if not paths:
        return _shipped()
    # Late, because it brings pydantic: nothing of it is needed where there is no override.
    from hpc.catalog.override import read_override

    return Catalog(tuple(read_override(path) for path in paths))
