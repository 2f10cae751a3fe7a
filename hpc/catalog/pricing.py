"""Prices by quote where there is one, else by a stated formula, else unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from hpc.catalog.model import Charge, InstanceType, Price, Reliability

#: Key of the rows that hold for all regions of mainland China.
MAINLAND = "cn"

#: Key of a price row: item, region, charge.
PriceKey = tuple[str, str, str]
PriceTable = Mapping[PriceKey, Price]


def _rounded(amount: Decimal, unit: str) -> Decimal:
    """To a hundredth of a cent; prices of a GiB are small and keep more digits."""
    return amount.quantize(Decimal("0.00000001") if unit.startswith("GiB") else Decimal("0.0001"))


def is_mainland(region: str) -> bool:
    """Whether the prices of mainland China hold in a region."""
    return region.startswith("cn-") and region != "cn-hongkong"


def price_of(
    item: str,
    region: str,
    charge: Charge,
    *,
    table: PriceTable,
    types: Mapping[str, InstanceType],
) -> Price:
    """Price of an item in CNY; `amount` is None where neither a quote nor a formula covers it.

    Order: a row of the region itself, a row of mainland China, a formula over such rows. Hong Kong is the mainland
    price times the ratio that a public comparison found; for other regions no price is made up.
    """
    if own := table.get((item, region, charge)):
        return _in_cny(own, table)
    if is_mainland(region):
        found = _mainland(item, charge, table, types)
    elif ratio := table.get((f"ratio/{region}", region, "payg")):
        found = _scaled(_mainland(item, charge, table, types), ratio)
    else:
        found = None
    if spot := _spot_from_own_payg(item, region, charge, table, found):
        return spot
    return found or _unknown(item, region, charge)


def _spot_from_own_payg(item: str, region: str, charge: Charge, table: PriceTable, found: Price | None) -> Price | None:
    # A refreshed pay-as-you-go price of the region is a better base of the spot share than a shipped one.
    own = table.get((item, region, "payg"))
    if charge != "spot" or own is None or own.amount is None:
        return None
    return _times(_in_cny(own, table), table[("ratio/spot", MAINLAND, "spot")], "of pay-as-you-go")


def _mainland(item: str, charge: Charge, table: PriceTable, types: Mapping[str, InstanceType]) -> Price | None:
    if row := table.get((item, MAINLAND, charge)):
        return _in_cny(row, table)
    kind = types.get(item)
    if charge == "spot":
        payg = _mainland(item, "payg", table, types)
        return _times(payg, table[("ratio/spot", MAINLAND, "spot")], "of pay-as-you-go") if payg else None
    if kind is None:
        return None
    if scaled := _from_sibling(kind, charge, table, types):
        return scaled
    if charge == "payg":
        return _from_rates(kind, table)
    payg = _mainland(item, "payg", table, types)
    if payg is None or payg.amount is None:
        return None
    hours = table[("ratio/prepaid-month", MAINLAND, "prepaid")]
    return replace(_times(payg, hours, "pay-as-you-go hours a month"), unit="month")


def billable_vcpus(kind: InstanceType) -> int:
    """vCPUs that a type would have with hyper-threading.

    The hpc families sell whole cores under a size name that counts two vCPUs a core (32xlarge: 64 cores).
    """
    return kind.physical_cores * 2 if kind.family.startswith("ecs.hpc") else kind.vcpus


def _from_sibling(
    kind: InstanceType, charge: Charge, table: PriceTable, types: Mapping[str, InstanceType]
) -> Price | None:
    """A quoted size of the same family, scaled by the vCPUs; only where memory scales likewise."""
    quoted = [
        (types[item], price)
        for (item, region, how), price in table.items()
        if region == MAINLAND and how == charge and price.amount is not None and item in types
        if types[item].family == kind.family
        and types[item].memory_gib * kind.vcpus == kind.memory_gib * types[item].vcpus
    ]
    if not quoted:
        return None
    nearest, price = min(quoted, key=lambda pair: (abs(pair[0].vcpus - kind.vcpus), pair[0].vcpus))
    assert price.amount is not None  # noqa: S101 - filtered above; tells the type checker
    return replace(
        price,
        amount=_rounded(price.amount * kind.vcpus / nearest.vcpus, price.unit),
        reliability=Reliability.DERIVED,
        source=f"{price.amount} for {nearest.name} x {kind.vcpus}/{nearest.vcpus} vCPUs; {price.source}",
    )


def _from_rates(kind: InstanceType, table: PriceTable) -> Price | None:
    vcpu = table[("rate/vcpu", MAINLAND, "payg")]
    gib = table[("rate/gib", MAINLAND, "payg")]
    if vcpu.amount is None or gib.amount is None:
        return None
    count = billable_vcpus(kind)
    amount = count * vcpu.amount + Decimal(str(kind.memory_gib)) * gib.amount
    return Price(
        amount=_rounded(amount, "hour"),
        currency=vcpu.currency,
        unit="hour",
        reliability=Reliability.DERIVED,
        source=f"{count} vCPU x {vcpu.amount} + {kind.memory_gib:g} GiB x {gib.amount}: {vcpu.source}",
        as_of=vcpu.as_of,
    )


def _times(price: Price, ratio: Price, meaning: str) -> Price:
    if price.amount is None or ratio.amount is None:
        return replace(price, amount=None, reliability=Reliability.UNKNOWN, trade_amount=None)
    return replace(
        price,
        amount=_rounded(price.amount * ratio.amount, price.unit),
        reliability=Reliability.DERIVED,
        source=f"{ratio.amount} {meaning} ({ratio.source}); base: {price.amount} ({price.source})",
        trade_amount=None,
    )


def _scaled(price: Price | None, ratio: Price) -> Price | None:
    return _times(price, ratio, "times mainland China") if price is not None else None


def _in_cny(price: Price, table: PriceTable) -> Price:
    if price.currency != "USD" or price.amount is None:
        return price
    rate = table[("fx/USD-CNY", MAINLAND, "payg")]
    if rate.amount is None:
        return replace(price, amount=None, reliability=Reliability.UNKNOWN)
    return replace(
        price,
        amount=_rounded(price.amount * rate.amount, price.unit),
        currency="CNY",
        reliability=Reliability.DERIVED,
        source=f"{price.amount} USD x {rate.amount} CNY/USD ({rate.source}, {rate.as_of}); {price.source}",
        trade_amount=None if price.trade_amount is None else price.trade_amount * rate.amount,
    )


def _unknown(item: str, region: str, charge: Charge) -> Price:
    return Price(
        amount=None,
        currency="CNY",
        unit="",
        reliability=Reliability.UNKNOWN,
        source=f"no price of {item} ({charge}) in {region}; refresh the catalog for this region",
        as_of="",
    )
