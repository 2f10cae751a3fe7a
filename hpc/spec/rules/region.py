"""Rules on the region and its zones."""

from __future__ import annotations

from collections.abc import Iterator

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.problems import closest
from hpc.spec.rules.context import Context, listed


def region_known(context: Context) -> Iterator[Finding]:
    """HPC101: the catalog knows the region."""
    region = context.spec.region
    if context.catalog.region(region) is not None:
        return
    meant = closest(region, (known.id for known in context.catalog.regions()))
    fix = f"write {meant} if that is meant" if meant else None
    yield finding("HPC101", "region", region, f"the region {region} is not in the catalog", fix)


def zones_of_region(context: Context) -> Iterator[Finding]:
    """HPC102, HPC103: every zone belongs to the region and is known."""
    region = context.catalog.region(context.spec.region)
    for index, zone in enumerate(context.spec.zones):
        path = f"zones[{index}]"
        if region is not None and zone in region.zones:
            continue
        # Ids are cn-hangzhou-j in China and ap-southeast-1a elsewhere.
        rest = zone.removeprefix(context.spec.region).removeprefix("-")
        if region is None and closest(context.spec.region, (known.id for known in context.catalog.regions())):
            continue  # a slip of the region, reported with it
        if not zone.startswith(context.spec.region) or not 1 <= len(rest) <= 2 or not rest[-1].isalpha():
            yield finding("HPC102", path, zone, f"{zone} is not a zone of {context.spec.region}")
        elif region is not None:
            known = f"known are {listed(region.zones)}"
            yield finding("HPC103", path, zone, f"the catalog does not list {zone}; {known}")


def zones_once(context: Context) -> Iterator[Finding]:
    """HPC105: no zone stands twice, in the cluster or in a pool."""
    lists = [("zones", context.spec.zones), *((f"{path}.zones", pool.zones) for path, pool in context.pools)]
    for path, zones in lists:
        for index, zone in enumerate(zones):
            if zone in zones[:index]:
                yield finding("HPC105", f"{path}[{index}]", zone, f"the zone {zone} stands twice")


def pool_zones(context: Context) -> Iterator[Finding]:
    """HPC336: zones of a pool are zones of the cluster."""
    for path, pool in context.pools:
        for index, zone in enumerate(pool.zones):
            if zone not in context.spec.zones:
                text = f"pool {pool.name} uses {zone}, which is not among the cluster's zones"
                yield finding("HPC336", f"{path}.zones[{index}]", zone, text)


RULES = (region_known, zones_of_region, zones_once, pool_zones)
