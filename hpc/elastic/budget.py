"""What the caps of the budget leave room for: arithmetic on what runs, what is being bought and what has been spent.

Nothing here has a clock or keeps anything; `hpc.elastic.guard` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from hpc.elastic.instances import Instance
from hpc.elastic.settings import InstanceTypeSettings, PoolSettings, Settings

#: A month of the cap is a calendar month of this time zone, which is that of the cloud's console. That bills are cut at
#: the same moment is assumed: no page says so.
BILLING_ZONE = timezone(timedelta(hours=8))

#: Hours of a month by which a price per hour of what always runs becomes one per month.
MONTH_HOURS = 730

_NOTHING = Decimal(0)
_SECONDS_OF_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Load:
    """What some nodes take of the caps.

    Attributes:
        nodes: how many.
        vcpus: of all of them.
        hourly: most that they can cost, CNY per hour.
    """

    nodes: int = 0
    vcpus: int = 0
    hourly: Decimal = _NOTHING

    def __add__(self, other: Load) -> Load:
        return Load(self.nodes + other.nodes, self.vcpus + other.vcpus, self.hourly + other.hourly)

    def __sub__(self, other: Load) -> Load:
        return Load(self.nodes - other.nodes, self.vcpus - other.vcpus, self.hourly - other.hourly)


@dataclass(frozen=True, slots=True)
class Room:
    """How many more nodes fit, and which cap ends there (None: no cap does)."""

    count: int | None
    reason: str = ""


def load(pool: PoolSettings, kind: InstanceTypeSettings, charge: str) -> Load:
    """One node. The price of spot changes, at most up to the pool's limit and to that of pay-as-you-go.

    An unknown price counts as nothing: caps on nodes and vCPUs hold all the same.
    """
    dearest = kind.payg_price if kind.payg_price is not None else kind.price(charge)
    if charge == "spot" and pool.spot_price_limit is not None:
        dearest = pool.spot_price_limit if dearest is None else min(dearest, pool.spot_price_limit)
    return Load(1, kind.vcpus, dearest or _NOTHING)


def loads(instances: Iterable[Instance], settings: Settings) -> dict[str, Load]:
    """What there is, by node; of an instance that no pool of the settings has, only that it is there is known."""
    found: dict[str, Load] = {}
    known: dict[tuple[str, str, str], Load] = {}
    for instance in instances:
        key = (instance.pool, instance.type, instance.charge)
        if key not in known:
            kind = _kind(instance, settings)
            known[key] = load(*kind, instance.charge) if kind else Load(1)
        found[instance.name] = found[instance.name] + known[key] if instance.name in found else known[key]
    return found


def total(loads_of_nodes: Iterable[Load]) -> Load:
    """All of it together."""
    nodes, vcpus, hourly = 0, 0, _NOTHING
    for each in loads_of_nodes:
        nodes, vcpus, hourly = nodes + each.nodes, vcpus + each.vcpus, hourly + each.hourly
    return Load(nodes, vcpus, hourly)


def spent(instances: Iterable[Instance], settings: Settings, since: datetime | None, now: datetime) -> Decimal:
    """CNY that instances have cost between two looks of one month, at the prices that are expected.

    Args:
        since: the look before; None takes the whole life of each instance.
    """
    first = month_start(now)
    amount = _NOTHING
    for instance in instances:
        found = _kind(instance, settings)
        price = found[1].price(instance.charge) or found[1].payg_price if found else None
        if price is not None:
            seconds = (now - max(first, instance.created, since or first)).total_seconds()
            amount += price * Decimal(max(seconds, 0.0)) / _SECONDS_OF_HOUR
    return amount


def month(now: datetime) -> str:
    """The month of a bill, e.g. `2026-12`."""
    return now.astimezone(BILLING_ZONE).strftime("%Y-%m")


def month_start(now: datetime) -> datetime:
    """When the month of the bill began."""
    return now.astimezone(BILLING_ZONE).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def room(settings: Settings, there: Load, spent_this_month: Decimal, each: Load) -> Room:
    """How many more nodes the caps leave room for.

    Args:
        there: what runs and what is being bought.
        spent_this_month: CNY for nodes since the month began.
        each: one of the nodes that are wanted.
    """
    rooms: list[tuple[int, str]] = []
    if settings.max_nodes is not None:
        left = settings.max_nodes - there.nodes
        rooms.append((left, f"{there.nodes} nodes of budget.max_nodes {settings.max_nodes} are in use"))
    if settings.max_vcpus is not None and each.vcpus:
        left = (settings.max_vcpus - there.vcpus) // each.vcpus
        rooms.append((left, f"{there.vcpus} vCPUs of budget.max_vcpus {settings.max_vcpus} are in use"))
    if settings.max_hourly is not None and each.hourly:
        used = there.hourly + settings.fixed_hourly
        told = f"{used:.2f} of budget.max_hourly {settings.max_hourly} CNY are in use and a node costs {each.hourly}"
        rooms.append((int((settings.max_hourly - used) // each.hourly), told))
    if settings.max_monthly is not None and each.hourly:
        # What runs is going to run a little longer, and so are the new ones: an hour of each is set aside.
        used = spent_this_month + there.hourly + settings.fixed_hourly * MONTH_HOURS
        told = f"{used:.2f} of budget.expected_monthly {settings.max_monthly} CNY are spent or set aside"
        rooms.append((int((settings.max_monthly - used) // each.hourly), told))
    if not rooms:
        return Room(None)
    count, reason = min(rooms, key=lambda found: found[0])
    return Room(max(count, 0), reason)


def _kind(instance: Instance, settings: Settings) -> tuple[PoolSettings, InstanceTypeSettings] | None:
    pool = settings.pools.get(instance.pool)
    kind = next((kind for kind in pool.types if kind.name == instance.type), None) if pool else None
    return (pool, kind) if pool is not None and kind is not None else None
