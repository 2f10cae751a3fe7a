"""What one node costs: its instance and its system disk, expected and at worst."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from hpc.catalog import Catalog, Price, Reliability
from hpc.cost.model import HOURS_PER_MONTH, STEP
from hpc.spec.cluster import ClusterSpec
from hpc.spec.nodes import DiskSpec
from hpc.spec.pool import PoolCharge, PoolSpec

HourlyCharge = Literal["payg", "spot"]


@dataclass(frozen=True, slots=True)
class DiskPrices:
    """A system disk: CNY per hour by the hour, CNY per month by subscription; None where unknown."""

    hour: Decimal | None
    month: Decimal | None
    hour_price: Price
    month_price: Price


def per_hour(price: Price) -> Decimal | None:
    """Amount of a price per hour, whatever its unit of time; None where unknown. Not rounded."""
    if price.amount is None:
        return None
    return price.amount / HOURS_PER_MONTH if price.unit.endswith("month") else price.amount


def rounded(value: Decimal | None) -> Decimal | None:
    """An amount to the step of a line."""
    return None if value is None else value.quantize(STEP)


def times(count: int | Decimal, value: Decimal | None) -> Decimal | None:
    """A multiple of an amount; nothing costs nothing, whatever the price."""
    if count == 0:
        return Decimal(0)
    return None if value is None else count * value


def disk_prices(disk: DiskSpec, region: str, catalog: Catalog) -> DiskPrices:
    """Prices of a system disk."""
    item = f"disk/cloud_essd/{disk.performance_level}"
    hour, month = catalog.price(item, region, "payg"), catalog.price(item, region, "prepaid")
    hourly = per_hour(hour)
    return DiskPrices(
        hour=times(disk.size_gib, hourly),
        month=None if month.amount is None else disk.size_gib * month.amount,
        hour_price=hour,
        month_price=month,
    )


def expected_spot(catalog: Catalog, region: str, instance_type: str, limit: Decimal | None) -> Price:
    """Spot price of an instance as expected: the market's, never above pay-as-you-go or the pool's own limit."""
    market = catalog.price(instance_type, region, "spot")
    payg = catalog.price(instance_type, region, "payg")
    caps = [cap for cap in (payg.amount, limit) if cap is not None]
    if market.amount is None or not caps or market.amount <= min(caps):
        return market
    if limit is not None and min(caps) == limit:
        return replace(market, amount=limit, source=f"the pool's spot_price_limit; {market.source}")
    return payg


def worst_price(catalog: Catalog, region: str, pool: PoolSpec, instance_type: str) -> Price:
    """Highest price per hour that an instance of a pool can be charged, without its disk.

    Pay-as-you-go, which no market price exceeds; for a pure spot pool with a price limit, that limit where it is lower.
    """
    payg = catalog.price(instance_type, region, "payg")
    limit = pool.spot_price_limit
    if pool.charge is not PoolCharge.SPOT or limit is None or (payg.amount is not None and payg.amount <= limit):
        return payg
    return Price(
        amount=limit,
        currency="CNY",
        unit="hour",
        reliability=Reliability.QUOTED,
        source="the pool's spot_price_limit",
        as_of="",
    )


def dearest_price(catalog: Catalog, region: str, pool: PoolSpec) -> tuple[str, Price]:
    """The type of a pool with the highest worst price; a type without any price comes first, for it has no bound."""
    candidates = [(name, worst_price(catalog, region, pool, name)) for name in pool.instance_types]
    for name, price in candidates:
        if price.amount is None:
            return name, price
    return max(candidates, key=lambda pair: pair[1].amount or Decimal(0))


def node_hour(spec: ClusterSpec, catalog: Catalog, pool: PoolSpec, instance_type: str, charge: HourlyCharge) -> Price:
    """Price of one node of a pool for an hour, system disk included; amount None where a part has no price.

    Args:
        spec: the cluster, for its region.
        pool: the pool, for its disk and spot limit.
        instance_type: which of its types.
        charge: `payg`, or `spot` at the expected market price.
    """
    if charge == "spot":
        instance = expected_spot(catalog, spec.region, instance_type, pool.spot_price_limit)
    else:
        instance = catalog.price(instance_type, spec.region, "payg")
    disk = disk_prices(pool.system_disk, spec.region, catalog)
    if instance.amount is None or disk.hour is None:
        missing = instance if instance.amount is None else disk.hour_price
        return replace(missing, amount=None, reliability=Reliability.UNKNOWN)
    order = list(Reliability)
    return replace(
        instance,
        amount=(instance.amount + disk.hour).quantize(STEP),
        reliability=max(instance.reliability, disk.hour_price.reliability, key=order.index),
        source=f"{instance.source}; with a {pool.system_disk.size_gib} GiB system disk: {disk.hour_price.source}",
        trade_amount=None,
    )
