"""Prices of instances, disks and spot: DescribePrice and DescribeSpotPriceHistory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from hpc.catalog.override import PriceOverride
from hpc.catalog.refresh.clients import Clients, Failures, call, ecs_models

Unit = Literal["Hour", "Month"]

#: Performance levels of ESSD and their smallest size in GiB.
_LEVELS = {"PL0": 40, "PL1": 20, "PL2": 461, "PL3": 1261}

_CHARGE: dict[Unit, Literal["payg", "prepaid"]] = {"Hour": "payg", "Month": "prepaid"}


@dataclass(frozen=True, slots=True)
class _Quote:
    """List and trade price of one part of an instance."""

    amount: Decimal
    trade: Decimal | None
    currency: str
    alone: bool
    """The answer told the part's own price and not only that of the whole."""


def read_instance_prices(
    clients: Clients, region: str, names: Sequence[str], failures: Failures, progress: Callable[[str], None]
) -> tuple[PriceOverride, ...]:
    """Price of each type by the hour and by the month, without its disk."""
    out: list[PriceOverride] = []
    for number, name in enumerate(names, 1):
        for unit in _CHARGE:
            if failures.hopeless:
                return tuple(out)
            quote = _quote(clients, region, name, unit, "PL0", _LEVELS["PL0"], "instanceType", failures)
            if quote is not None:
                out.append(
                    PriceOverride(
                        item=name,
                        charge=_CHARGE[unit],
                        amount=quote.amount,
                        trade_amount=quote.trade,
                        currency=quote.currency,
                        unit=unit.lower(),
                        source="DescribePrice" if quote.alone else "DescribePrice, with a 40 GiB ESSD PL0 disk",
                    )
                )
        if number % 25 == 0:
            progress(f"prices of {number} of {len(names)} instance types")
    return tuple(out)


def read_disk_prices(clients: Clients, region: str, name: str, failures: Failures) -> tuple[PriceOverride, ...]:
    """Price of a GiB of system disk per performance level, read off the price of an instance of the type `name`."""
    out: list[PriceOverride] = []
    for level, size in _LEVELS.items():
        for unit, charge in _CHARGE.items():
            if failures.hopeless:
                return tuple(out)
            quote = _quote(clients, region, name, unit, level, size, "systemDisk", failures)
            if quote is not None and quote.alone:
                out.append(
                    PriceOverride(
                        item=f"disk/cloud_essd/{level}",
                        charge=charge,
                        amount=quote.amount / size,
                        trade_amount=None if quote.trade is None else quote.trade / size,
                        currency=quote.currency,
                        unit=f"GiB-{unit.lower()}",
                        source=f"DescribePrice, system disk of {size} GiB",
                    )
                )
    return tuple(out)


def _quote(
    clients: Clients, region: str, name: str, unit: Unit, level: str, size: int, part: str, failures: Failures
) -> _Quote | None:
    models = ecs_models()
    request = models.DescribePriceRequest(
        region_id=region,
        resource_type="instance",
        instance_type=name,
        price_unit=unit,
        period=1,
        amount=1,
        instance_network_type="vpc",
        system_disk=models.DescribePriceRequestSystemDisk(category="cloud_essd", size=size, performance_level=level),
    )
    try:
        body = call(clients, clients.ecs.describe_price, request).body
    except Exception as error:
        failures.add(f"{name} by the {unit.lower()}", error)
        return None
    price = body.price_info.price if body.price_info else None
    if price is None:
        failures.note("NoPrice", f"{name} by the {unit.lower()}", "the answer holds no price")
        return None
    details = (price.detail_infos.detail_info or ()) if price.detail_infos else ()
    own = next((row for row in details if (row.resource or "").lower() == part.lower()), None)
    source = own if own is not None and own.original_price is not None else price
    if source.original_price is None:
        failures.note("NoPrice", f"{name} by the {unit.lower()}", "the answer holds no list price")
        return None
    return _Quote(
        amount=_exact(source.original_price),
        trade=None if source.trade_price is None else _exact(source.trade_price),
        currency=price.currency or "CNY",
        alone=source is own,
    )


def _exact(value: Any) -> Decimal:
    """The number as the API wrote it: the SDK hands out floats."""
    return Decimal(str(value))


def read_spot_prices(
    clients: Clients, region: str, names: Sequence[str], failures: Failures, progress: Callable[[str], None]
) -> tuple[PriceOverride, ...]:
    """Market price of each type now: the dearest zone of the last three hours."""
    out = []
    for number, name in enumerate(names, 1):
        if failures.hopeless:
            break
        latest = _latest_by_zone(clients, region, name, failures)
        if latest:
            zone, (_, price, currency) = max(latest.items(), key=lambda pair: (pair[1][1], pair[0]))
            out.append(
                PriceOverride(
                    item=name,
                    charge="spot",
                    amount=price,
                    currency=currency,
                    unit="hour",
                    source=f"DescribeSpotPriceHistory, dearest zone ({zone})",
                )
            )
        if number % 25 == 0:
            progress(f"spot prices of {number} of {len(names)} instance types")
    return tuple(out)


def _latest_by_zone(
    clients: Clients, region: str, name: str, failures: Failures
) -> dict[str, tuple[str, Decimal, str]]:
    latest: dict[str, tuple[str, Decimal, str]] = {}
    offset: int | None = None
    while True:
        request = ecs_models().DescribeSpotPriceHistoryRequest(
            region_id=region, instance_type=name, network_type="vpc", ostype="linux", offset=offset
        )
        try:
            body = call(clients, clients.ecs.describe_spot_price_history, request).body
        except Exception as error:
            failures.add(name, error)
            return {}
        rows = (body.spot_prices.spot_price_type or ()) if body.spot_prices else ()
        for row in rows:
            # Timestamps are ISO 8601 in UTC, so text order is time order.
            if row.spot_price is not None and row.timestamp >= latest.get(row.zone_id, ("",))[0]:
                latest[row.zone_id] = (row.timestamp, _exact(row.spot_price), body.currency or "CNY")
        following = body.next_offset
        if not rows or not following or following <= (offset or 0):
            return latest
        offset = following
