"""What a cluster costs: types of an estimate. All money is CNY, as Decimal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from hpc.catalog import Price, Reliability

#: Hours of an average month (365 x 24 / 12), as the cloud's own monthly figures use.
HOURS_PER_MONTH = Decimal(730)

#: Amounts of lines are rounded to this; totals are sums of lines, so that they agree to the last digit.
STEP = Decimal("0.0001")


class Item(StrEnum):
    """What money is spent on."""

    COMPUTE = "compute"
    SYSTEM_DISK = "system-disk"
    NAS = "nas"
    EIP = "eip"
    TRAFFIC = "traffic"
    NAT = "nat"
    MONITORING = "monitoring"


class ScopeKind(StrEnum):
    """What a line belongs to: a pool by its name, or one of the parts that are always there."""

    POOL = "pool"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Amounts:
    """Money in four situations; None where it is not known.

    Attributes:
        zero: CNY per hour with every pool at 0 nodes.
        minimum: CNY per hour with every pool at its minimum.
        worst: CNY per hour with every pool at its maximum, at the highest price that can be charged.
        month: CNY in a month of the expected use.
    """

    zero: Decimal | None
    minimum: Decimal | None
    worst: Decimal | None
    month: Decimal | None


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that costs money.

    Attributes:
        item: what it is.
        kind: whether it belongs to a pool.
        scope: name of the pool, or `management`, `login`, `storage`, `network`, `cluster`.
        name: the type, disk or mount point, for people.
        count: how many of them at most.
        price: unit price that the worst case rests on.
        amounts: money.
        note: what is assumed.
        expected: reliability of the price that the expected month rests on, where it is another one than `price`.
    """

    item: Item
    kind: ScopeKind
    scope: str
    name: str
    count: int
    price: Price
    amounts: Amounts
    note: str = ""
    expected: Reliability | None = None

    @property
    def reliability(self) -> Reliability:
        """How far the worst hour of the line can be trusted."""
        return Reliability.UNKNOWN if self.amounts.worst is None else self.price.reliability

    @property
    def month_reliability(self) -> Reliability:
        """How far the expected month of the line can be trusted."""
        return Reliability.UNKNOWN if self.amounts.month is None else self.expected or self.price.reliability


def known_sum(values: Iterable[Decimal | None]) -> Decimal:
    """Sum of what is known."""
    return sum((value for value in values if value is not None), Decimal(0))


def total(lines: Iterable[Line]) -> Amounts:
    """Sum of the known amounts of lines, by situation."""
    amounts = [line.amounts for line in lines]
    return Amounts(
        zero=known_sum(one.zero for one in amounts),
        minimum=known_sum(one.minimum for one in amounts),
        worst=known_sum(one.worst for one in amounts),
        month=known_sum(one.month for one in amounts),
    )


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From which use on a subscription is cheaper.

    Attributes:
        scope: pool, `management` or `login`.
        instance_type: which type.
        charge: what the subscription is compared with: `payg` or `spot`.
        hourly: CNY per hour by that charge, or None.
        prepaid_month: CNY per month by subscription, or None.
        utilisation: share of the month from which on a subscription is cheaper (1 = always on), or None.
        expected: share of the month that a node is expected to run; for a pool, of all its nodes at maximum.
    """

    scope: str
    instance_type: str
    charge: str
    hourly: Decimal | None
    prepaid_month: Decimal | None
    utilisation: Decimal | None
    expected: Decimal | None

    @property
    def subscription_pays(self) -> bool | None:
        """Whether a subscription would be cheaper at the expected use; None where that is not known."""
        if self.utilisation is None or self.expected is None:
            return None
        return self.expected > self.utilisation


@dataclass(frozen=True, slots=True)
class Alternative:
    """A pool under another way of paying, for the same use.

    Attributes:
        pool: name of the pool.
        charge: `spot`, `spot-then-payg`, `payg`, or `prepaid` (all nodes of the pool by subscription, always on).
        month: CNY in an expected month, system disks included, or None.
        worst: CNY per hour at most, system disks included, or None.
        chosen: the stack file says so.
    """

    pool: str
    charge: str
    month: Decimal | None
    worst: Decimal | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class Saving:
    """What scaling to zero and spot save against all pools at maximum by pay-as-you-go, day and night.

    Attributes:
        always_on_month: CNY per month of that, fixed parts included, or None where a price is unknown.
        share: saved share of it, 0 to 1, or None.
    """

    always_on_month: Decimal | None
    share: Decimal | None


@dataclass(frozen=True, slots=True)
class ReliabilityShare:
    """Known money that rests on one kind of price.

    Attributes:
        worst: CNY of the worst hour.
        month: CNY of the expected month.
        lines: how many lines have their worst-case price from it.
    """

    worst: Decimal
    month: Decimal
    lines: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a cluster costs.

    Attributes:
        cluster: its name.
        region: where it runs.
        currency: of all amounts.
        usd_rate: CNY per USD, with its source.
        lines: everything that costs money.
        totals: sums of what is known.
        saving: against always-on.
        break_even: subscription against the hour, by pool and long-lived node.
        alternatives: other ways of paying for the pools.
        notes: what was assumed, one sentence each.
    """

    cluster: str
    region: str
    currency: str
    usd_rate: Price
    lines: tuple[Line, ...]
    totals: Amounts
    saving: Saving
    break_even: tuple[BreakEven, ...]
    alternatives: tuple[Alternative, ...]
    notes: tuple[str, ...]

    @property
    def scopes(self) -> tuple[str, ...]:
        """Pools first, in the order of the stack file, then the fixed parts."""
        return tuple(dict.fromkeys(line.scope for kind in ScopeKind for line in self.lines if line.kind is kind))

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of the pools."""
        return tuple(dict.fromkeys(line.scope for line in self.lines if line.kind is ScopeKind.POOL))

    def by_scope(self, scope: str, kind: ScopeKind | None = None) -> Amounts:
        """Sum of a pool or fixed part."""
        return total(line for line in self.lines if line.scope == scope and kind in (None, line.kind))

    def by_item(self, item: Item) -> Amounts:
        """Sum of an item over the cluster."""
        return total(line for line in self.lines if line.item is item)

    @property
    def unknown(self) -> tuple[Line, ...]:
        """Lines without a price in at least one situation."""
        return tuple(
            line
            for line in self.lines
            if None in (line.amounts.zero, line.amounts.minimum, line.amounts.worst, line.amounts.month)
        )

    @property
    def complete(self) -> bool:
        """Whether every line has a price."""
        return not self.unknown

    def by_reliability(self) -> dict[Reliability, ReliabilityShare]:
        """How much of the money rests on which kind of price, best first; only what occurs."""
        out = {}
        for reliability in Reliability:
            worst = [line for line in self.lines if line.reliability is reliability]
            month = [line for line in self.lines if line.month_reliability is reliability]
            if worst or month:
                out[reliability] = ReliabilityShare(
                    worst=known_sum(line.amounts.worst for line in worst),
                    month=known_sum(line.amounts.month for line in month),
                    lines=len(worst),
                )
        return out

    def weak_worst_share(self) -> Decimal | None:
        """Share of the worst hour's known money that rests on derived prices, 0 to 1, or None where it is zero.

        Money of unknown price is in no share: see `unknown`.
        """
        return _share(known_sum(s.worst for r, s in self.by_reliability().items() if r.weak), self.totals.worst)

    def weak_month_share(self) -> Decimal | None:
        """Share of the expected month's known money that rests on derived prices, 0 to 1, or None where it is zero."""
        return _share(known_sum(s.month for r, s in self.by_reliability().items() if r.weak), self.totals.month)


def _share(part: Decimal, whole: Decimal | None) -> Decimal | None:
    return (part / whole).quantize(STEP) if whole else None
