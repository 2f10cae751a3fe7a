"""Other ways of paying: subscription against the hour, spot against pay-as-you-go, against always-on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from hpc.catalog import Catalog
from hpc.cost.lines import expected_hour, node_hours
from hpc.cost.model import HOURS_PER_MONTH, STEP, Alternative, BreakEven, Line, Saving, ScopeKind, known_sum
from hpc.cost.nodes import dearest_price, disk_prices, expected_spot, rounded, times
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import PoolCharge, PoolSpec

_CHOICES = (PoolCharge.SPOT, PoolCharge.SPOT_THEN_PAYG, PoolCharge.PAYG)


def saving(spec: ClusterSpec, catalog: Catalog, lines: Sequence[Line], month: Decimal | None) -> Saving:
    """What the cluster saves against having every pool at its maximum all month, by pay-as-you-go.

    Each pool is taken at its first type, so that the comparison is of use and not of types.
    """
    parts: list[Decimal | None] = [line.amounts.month for line in lines if line.kind is ScopeKind.FIXED]
    for pool in spec.pools:
        disk = disk_prices(pool.system_disk, spec.region, catalog).hour
        payg = catalog.price(pool.instance_types[0], spec.region, "payg").amount
        parts += [times(pool.max * HOURS_PER_MONTH, payg), times(pool.max * HOURS_PER_MONTH, disk)]
    unknown = None in parts or any(line.amounts.month is None for line in lines)
    always = known_sum(parts).quantize(STEP)
    if unknown or month is None or always == 0:
        return Saving(None, None)
    return Saving(always, (1 - month / always).quantize(STEP))


def break_even(spec: ClusterSpec, catalog: Catalog) -> tuple[BreakEven, ...]:
    """Subscription against the hour for each pool's first type and for the long-lived nodes.

    Disks are left out: their price by the hour and by the month differ little, and a pool's go with its nodes.
    """
    out = []
    for pool in spec.pools:
        expected = (node_hours(spec, pool) / (pool.max * HOURS_PER_MONTH)).quantize(STEP)
        out.append(_against(spec, catalog, pool.name, pool.instance_types[0], "payg", expected, None))
        if pool.uses_spot:
            limit = pool.spot_price_limit
            out.append(_against(spec, catalog, pool.name, pool.instance_types[0], "spot", expected, limit))
    out.append(_against(spec, catalog, "management", spec.management.instance_type, "payg", Decimal(1), None))
    if spec.login.count:
        out.append(_against(spec, catalog, "login", spec.login.instance_type, "payg", Decimal(1), None))
    return tuple(out)


def _against(
    spec: ClusterSpec,
    catalog: Catalog,
    scope: str,
    instance_type: str,
    charge: str,
    expected: Decimal,
    limit: Decimal | None,
) -> BreakEven:
    month = catalog.price(instance_type, spec.region, "prepaid").amount
    if charge == "spot":
        hour = expected_spot(catalog, spec.region, instance_type, limit).amount
    else:
        hour = catalog.price(instance_type, spec.region, "payg").amount
    share = None
    if month is not None and hour is not None and hour > 0:
        share = (month / (hour * HOURS_PER_MONTH)).quantize(STEP)
    return BreakEven(scope, instance_type, charge, hour, month, share, expected)


def alternatives(spec: ClusterSpec, catalog: Catalog) -> tuple[Alternative, ...]:
    """Each pool under every way of paying, for the same node hours."""
    return tuple(row for pool in spec.pools for row in _of_pool(spec, pool, catalog))


def _of_pool(spec: ClusterSpec, pool: PoolSpec, catalog: Catalog) -> Iterator[Alternative]:
    hours = node_hours(spec, pool)
    disk = disk_prices(pool.system_disk, spec.region, catalog)
    for charge in _CHOICES:
        month = _both(times(hours, expected_hour(spec, pool, catalog, charge).amount), times(hours, disk.hour))
        as_if = pool.model_copy(update={"charge": charge})
        _, worst = dearest_price(catalog, spec.region, as_if)
        most = _both(times(pool.max, worst.amount), times(pool.max, disk.hour))
        yield Alternative(pool.name, charge, rounded(month), rounded(most), charge is pool.charge)
    prepaid = catalog.price(pool.instance_types[0], spec.region, "prepaid").amount
    month = _both(times(pool.max, prepaid), times(pool.max, disk.month))
    hour = None if month is None else month / HOURS_PER_MONTH
    yield Alternative(pool.name, "prepaid", rounded(month), rounded(hour), pool.charge is PoolCharge.PREPAID)


def _both(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    return None if first is None or second is None else first + second
