"""Rules on how compute nodes are paid for, how many there are and how long they live."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.nodes import DiskSpec, PerformanceLevel
from hpc.spec.pool import PoolCharge
from hpc.spec.rules.context import Context
from hpc.spec.units import format_duration

#: Bounds of AutoReleaseTime (RunInstances).
SHORTEST_RELEASE = timedelta(minutes=30)
LONGEST_RELEASE = timedelta(days=3 * 365)

#: Least time from launch to registration.
SHORTEST_START = timedelta(seconds=30)

#: Smallest ESSD of a performance level, GiB
#: (https://www.alibabacloud.com/help/en/elastic-compute-service/latest/block-storage-overview-disks).
SMALLEST_DISK = {PerformanceLevel.PL2: 461, PerformanceLevel.PL3: 1261}


def no_subscription(context: Context) -> Iterator[Finding]:
    """HPC316, HPC346: compute nodes are no subscriptions, which have no release time."""
    for path, pool in context.pools:
        if pool.charge is not PoolCharge.PREPAID:
            continue
        text = f"pool {pool.name} would be bought by subscription, which cannot be released when jobs are done"
        yield finding("HPC316", f"{path}.charge", str(pool.charge), text)
        if "auto_release" in pool.model_fields_set:
            text = f"pool {pool.name} is a subscription with a release time"
            yield finding("HPC346", f"{path}.auto_release", format_duration(pool.auto_release), text)


def spot_settings(context: Context) -> Iterator[Finding]:
    """HPC317, HPC320, HPC321: settings of spot are on spot pools and possible."""
    for path, pool in context.pools:
        limit = pool.spot_price_limit
        if limit is not None:
            if not pool.uses_spot:
                text = f"pool {pool.name} has a price limit for spot, but charge: {pool.charge}"
                yield finding("HPC317", f"{path}.spot_price_limit", str(limit), text)
            exponent = limit.normalize().as_tuple().exponent
            if limit == 0 or (isinstance(exponent, int) and exponent < -3):
                text = f"{limit} CNY per hour is no possible price limit"
                yield finding("HPC320", f"{path}.spot_price_limit", str(limit), text)
        if pool.spot_duration and not pool.uses_spot:
            text = f"pool {pool.name} has a protected spot hour, but charge: {pool.charge}"
            yield finding("HPC321", f"{path}.spot_duration", pool.spot_duration, text)


def spot_limit_has_effect(context: Context) -> Iterator[Finding]:
    """HPC318, HPC319: a price limit is below the pay-as-you-go price."""
    for path, pool in context.pools:
        limit = pool.spot_price_limit
        if limit is None or not pool.uses_spot:
            continue
        where = f"{path}.spot_price_limit"
        for kind in context.types_of(pool):
            price = context.catalog.price(kind.name, context.spec.region, "payg")
            if price.amount is None:
                text = f"no pay-as-you-go price of {kind.name} is known to compare {limit} CNY with"
                yield finding("HPC319", where, str(limit), text)
            elif limit > price.amount:
                text = (
                    f"{limit} CNY is above the pay-as-you-go price of {kind.name}: {price.amount:.4f} CNY per hour "
                    f"({price.reliability}, {price.as_of})"
                )
                yield finding("HPC318", where, str(limit), text)


def sizes(context: Context) -> Iterator[Finding]:
    """HPC322: the minimum is not above the maximum."""
    for path, pool in context.pools:
        if pool.min > pool.max:
            text = f"pool {pool.name} has min {pool.min} above max {pool.max}"
            yield finding("HPC322", f"{path}.min", pool.min, text)


def release_time(context: Context) -> Iterator[Finding]:
    """HPC324, HPC326: the release time is one the cloud takes and lies behind the start-up."""
    for path, pool in context.pools:
        written = format_duration(pool.auto_release)
        if not SHORTEST_RELEASE <= pool.auto_release <= LONGEST_RELEASE:
            text = f"{written} is not between 30 minutes and 3 years"
            yield finding("HPC324", f"{path}.auto_release", written, text)
        if pool.auto_release <= pool.resume_timeout:
            text = f"nodes may take {format_duration(pool.resume_timeout)} to start, but are released after {written}"
            yield finding("HPC326", f"{path}.auto_release", written, text)


def lifetime(context: Context) -> Iterator[Finding]:
    """HPC325, HPC328, HPC330: a node lives long enough to start, to be idle, and to run the longest job."""
    for path, pool in context.pools:
        if pool.max_lifetime is None:
            continue
        written, where = format_duration(pool.max_lifetime), f"{path}.max_lifetime"
        if pool.max_lifetime <= pool.resume_timeout:
            text = f"nodes may take {format_duration(pool.resume_timeout)} to start, but live for {written}"
            yield finding("HPC328", where, written, text)
        elif pool.idle >= pool.max_lifetime:
            text = f"nodes live for {written}, but are released after {format_duration(pool.idle)} of idleness"
            yield finding("HPC325", f"{path}.idle", format_duration(pool.idle), text)
        if pool.max_time is not None and pool.max_time > pool.max_lifetime:
            text = f"jobs may run for {format_duration(pool.max_time)}, but nodes live for {written}"
            yield finding("HPC330", f"{path}.max_time", format_duration(pool.max_time), text)


def start_time(context: Context) -> Iterator[Finding]:
    """HPC329: nodes have time to start."""
    for path, pool in context.pools:
        if pool.resume_timeout < SHORTEST_START:
            written = format_duration(pool.resume_timeout)
            yield finding("HPC329", f"{path}.resume_timeout", written, f"no node registers within {written}")


def disks(context: Context) -> Iterator[Finding]:
    """HPC345: system disks are large enough for their performance level."""
    spec = context.spec
    all_disks: list[tuple[str, DiskSpec]] = [
        ("management", spec.management.system_disk),
        ("login", spec.login.system_disk),
        *((path, pool.system_disk) for path, pool in context.pools),
    ]
    for path, disk in all_disks:
        least = SMALLEST_DISK.get(disk.performance_level, 0)
        if disk.size_gib < least:
            text = f"a disk of {disk.size_gib} GiB cannot have {disk.performance_level}, which begins at {least} GiB"
            yield finding("HPC345", f"{path}.system_disk.performance_level", str(disk.performance_level), text)


RULES = (
    no_subscription,
    spot_settings,
    spot_limit_has_effect,
    sizes,
    release_time,
    lifetime,
    start_time,
    disks,
)
