"""Everything in a stack file that costs money, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from hpc.catalog import Catalog, Price, Reliability
from hpc.cost.model import HOURS_PER_MONTH, Amounts, Item, Line, ScopeKind, known_sum
from hpc.cost.nodes import dearest_price, disk_prices, expected_spot, per_hour, rounded, times
from hpc.spec.cluster import ClusterSpec
from hpc.spec.nodes import DiskSpec, LoginSpec, ManagementSpec, NodeCharge
from hpc.spec.pool import PoolCharge, PoolSpec
from hpc.spec.storage import StorageKind

#: Share of node hours that run as spot where the usage profile does not say.
_SPOT_SHARE = {
    PoolCharge.SPOT: Decimal(1),
    PoolCharge.SPOT_THEN_PAYG: Decimal("0.7"),
    PoolCharge.PAYG: Decimal(0),
    PoolCharge.PREPAID: Decimal(0),
}

#: GB that one Mbit/s carries in an hour (decimal, as traffic is billed).
_GB_PER_MBPS_HOUR = Decimal(3600) / 8 / 1000


def lines_of(spec: ClusterSpec, catalog: Catalog) -> tuple[Line, ...]:
    """All lines of a cluster: pools, long-lived nodes, storage, network, monitoring."""
    return (
        *(line for pool in spec.pools for line in _pool(spec, pool, catalog)),
        *_long_lived(spec, "management", spec.management, 2 if spec.management.backup else 1, catalog),
        *_long_lived(spec, "login", spec.login, spec.login.count, catalog),
        *_storage(spec, catalog),
        *_network(spec, catalog),
        _steady(spec, catalog, Item.MONITORING, "cluster", "basic CloudMonitor", "monitor/basic", 1),
    )


def node_hours(spec: ClusterSpec, pool: PoolSpec) -> Decimal:
    """Node hours of a pool in a month: what the usage profile says, at least what its minimum runs anyway."""
    usage = spec.usage.get(pool.name)
    said = Decimal(str(usage.node_hours_per_month)) if usage else Decimal(0)
    return max(said, pool.min * HOURS_PER_MONTH)


def spot_share(spec: ClusterSpec, pool: PoolSpec, charge: PoolCharge | None = None) -> Decimal:
    """Share of a pool's node hours that run as spot, 0 to 1."""
    how = charge or pool.charge
    usage = spec.usage.get(pool.name)
    # Only a pool that falls back has a choice: a pure spot pool runs nothing else, whatever the profile says.
    if how is PoolCharge.SPOT_THEN_PAYG and usage is not None and usage.spot_share is not None:
        return Decimal(str(usage.spot_share))
    return _SPOT_SHARE[how]


@dataclass(frozen=True, slots=True)
class ExpectedHour:
    """CNY per node hour as expected (None where unknown, not rounded), and the less reliable price behind it."""

    amount: Decimal | None
    reliability: Reliability


def expected_hour(
    spec: ClusterSpec, pool: PoolSpec, catalog: Catalog, charge: PoolCharge | None = None
) -> ExpectedHour:
    """What an hour of a pool's first type is expected to cost, without its disk."""
    first = pool.instance_types[0]
    share = spot_share(spec, pool, charge)
    parts = (
        (share, expected_spot(catalog, spec.region, first, pool.spot_price_limit)),
        (1 - share, catalog.price(first, spec.region, "payg")),
    )
    used = [(part, price) for part, price in parts if part > 0]
    amounts = [times(part, price.amount) for part, price in used]
    return ExpectedHour(
        amount=None if None in amounts else known_sum(amounts),
        reliability=max((price.reliability for _, price in used), key=list(Reliability).index),
    )


def _pool(spec: ClusterSpec, pool: PoolSpec, catalog: Catalog) -> Iterator[Line]:
    hours = node_hours(spec, pool)
    name, worst = dearest_price(catalog, spec.region, pool)
    expected = expected_hour(spec, pool, catalog)
    yield Line(
        item=Item.COMPUTE,
        kind=ScopeKind.POOL,
        scope=pool.name,
        name=name,
        count=pool.max,
        price=worst,
        amounts=Amounts(
            zero=Decimal(0),
            # The nodes that are always kept are no reason to expect stock-outs: they cost what the pool is meant to.
            minimum=rounded(times(pool.min, expected.amount)),
            worst=rounded(times(pool.max, worst.amount)),
            month=rounded(times(hours, expected.amount)),
        ),
        note=""
        if len(pool.instance_types) == 1
        else f"worst case: the dearest type; expected: {pool.instance_types[0]}",
        expected=expected.reliability,
    )
    disk = disk_prices(pool.system_disk, spec.region, catalog)
    yield Line(
        item=Item.SYSTEM_DISK,
        kind=ScopeKind.POOL,
        scope=pool.name,
        name=_disk_name(pool.system_disk),
        count=pool.max,
        price=disk.hour_price,
        amounts=Amounts(
            zero=Decimal(0),
            minimum=rounded(times(pool.min, disk.hour)),
            worst=rounded(times(pool.max, disk.hour)),
            month=rounded(times(hours, disk.hour)),
        ),
    )


def _disk_name(disk: DiskSpec) -> str:
    return f"{disk.size_gib} GiB ESSD {disk.performance_level}"


def _always(month: Decimal | None) -> Amounts:
    """Amounts of what runs day and night."""
    hour = None if month is None else rounded(month / HOURS_PER_MONTH)
    return Amounts(zero=hour, minimum=hour, worst=hour, month=rounded(month))


def _always_by_hour(hour: Decimal | None) -> Amounts:
    return Amounts(
        zero=rounded(hour),
        minimum=rounded(hour),
        worst=rounded(hour),
        month=rounded(None if hour is None else hour * HOURS_PER_MONTH),
    )


def _long_lived(
    spec: ClusterSpec, scope: str, node: ManagementSpec | LoginSpec, count: int, catalog: Catalog
) -> Iterator[Line]:
    if count == 0:
        return
    disk = disk_prices(node.system_disk, spec.region, catalog)
    if node.charge is NodeCharge.PREPAID:
        price = catalog.price(node.instance_type, spec.region, "prepaid")
        amounts, disk_amounts = _always(times(count, price.amount)), _always(times(count, disk.month))
        disk_price, note = (
            disk.month_price,
            f"subscription of {node.period_months} month(s), month's price without discount",
        )
    else:
        price = catalog.price(node.instance_type, spec.region, "payg")
        amounts, disk_amounts = _always_by_hour(times(count, price.amount)), _always_by_hour(times(count, disk.hour))
        disk_price, note = disk.hour_price, ""
    yield Line(Item.COMPUTE, ScopeKind.FIXED, scope, node.instance_type, count, price, amounts, note)
    yield Line(Item.SYSTEM_DISK, ScopeKind.FIXED, scope, _disk_name(node.system_disk), count, disk_price, disk_amounts)


def _storage(spec: ClusterSpec, catalog: Catalog) -> Iterator[Line]:
    for storage in spec.storage:
        price = catalog.price(f"nas/{storage.kind}/{storage.resolved_type}", spec.region, "payg")
        size = storage.capacity_gib if storage.kind is StorageKind.EXTREME else storage.expected_gib
        note = ""
        if storage.file_system_id is not None:
            size, note = 0, "exists already, not counted"
        elif size is None:
            size, note = 0, "no size given (expected_gib): counted as empty, is charged by what it holds"
        hour = per_hour(price)
        yield Line(
            item=Item.NAS,
            kind=ScopeKind.FIXED,
            scope="storage",
            name=f"{storage.mount}: {size} GiB {storage.kind} {storage.resolved_type}",
            count=1,
            price=price,
            amounts=_always(times(size, None if hour is None else hour * HOURS_PER_MONTH)),
            note=note,
        )


def _network(spec: ClusterSpec, catalog: Catalog) -> Iterator[Line]:
    count = spec.login.count if spec.login.public_ip else 0
    if count:
        yield _steady(spec, catalog, Item.EIP, "network", "elastic IP of a login node", "eip/hour", count)
        yield _traffic(spec, count, catalog.price("traffic/gib", spec.region, "payg"))
    if spec.network.nat:
        yield _steady(spec, catalog, Item.NAT, "network", "NAT gateway", "nat/hour", 1, "without capacity units by use")
        yield _steady(spec, catalog, Item.EIP, "network", "elastic IP of the NAT gateway", "eip/nat-hour", 1)


def _traffic(spec: ClusterSpec, count: int, price: Price) -> Line:
    peak = count * spec.login.bandwidth_mbps * _GB_PER_MBPS_HOUR
    return Line(
        item=Item.TRAFFIC,
        kind=ScopeKind.FIXED,
        scope="network",
        name=f"outbound traffic of login nodes, at most {peak:g} GB/h",
        count=count,
        price=price,
        amounts=Amounts(
            zero=Decimal(0), minimum=Decimal(0), worst=rounded(times(peak, price.amount)), month=Decimal(0)
        ),
        note="worst case: full bandwidth for the hour; no traffic expected in the month",
    )


def _steady(
    spec: ClusterSpec, catalog: Catalog, item: Item, scope: str, name: str, key: str, count: int, note: str = ""
) -> Line:
    price = catalog.price(key, spec.region, "payg")
    return Line(item, ScopeKind.FIXED, scope, name, count, price, _always_by_hour(times(count, per_hour(price))), note)
