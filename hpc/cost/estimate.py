"""Puts the price of a cluster together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc.catalog import Catalog
from hpc.cost.compare import alternatives, break_even, saving
from hpc.cost.lines import lines_of, node_hours
from hpc.cost.model import HOURS_PER_MONTH, Estimate, Item, Line, total
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import PoolCharge


def estimate(spec: ClusterSpec, catalog: Catalog) -> Estimate:
    """What a cluster costs: an hour at zero, at minimum and at worst, and a month of the expected use, in CNY.

    List prices without discounts. Where a price is unknown the totals leave it out and `Estimate.unknown` names it.
    """
    lines = lines_of(spec, catalog)
    totals = total(lines)
    return Estimate(
        cluster=spec.name,
        region=spec.region,
        currency="CNY",
        usd_rate=catalog.price("fx/USD-CNY", "cn-hangzhou", "payg"),
        lines=lines,
        totals=totals,
        saving=saving(spec, catalog, lines, totals.month),
        break_even=break_even(spec, catalog),
        alternatives=alternatives(spec, catalog),
        notes=tuple(_notes(spec, lines)),
    )


def _notes(spec: ClusterSpec, lines: Sequence[Line]) -> Iterator[str]:
    yield "List prices in CNY without discounts; a month has 730 hours."
    for pool in spec.pools:
        if pool.name not in spec.usage:
            yield (
                f"Pool {pool.name} has no usage profile: the expected month counts "
                + (f"its {pool.min} nodes that are always kept." if pool.min else "no node hours for it.")
            )
        elif (hours := node_hours(spec, pool)) > pool.max * HOURS_PER_MONTH:
            yield f"Pool {pool.name}: {hours:g} node hours a month are more than its {pool.max} nodes can run."
        if (
            pool.charge is PoolCharge.SPOT
            and (usage := spec.usage.get(pool.name))
            and usage.spot_share not in (None, 1)
        ):
            yield f"Pool {pool.name} buys nothing but spot: spot_share of its usage profile is not used."
    if any(pool.uses_spot for pool in spec.pools):
        yield "Spot at worst costs pay-as-you-go, which the market price never exceeds, or the pool's own limit."
    if any(line.item is Item.TRAFFIC for line in lines):
        yield "Traffic is in the worst hour at full bandwidth of the login nodes; none is expected in the month."
    if spec.network.nat:
        yield "Capacity units and outbound traffic of the NAT gateway go by use and are not counted."
    for line in lines:
        if line.item is Item.NAS and line.note:
            yield f"NAS {line.name}: {line.note}."
