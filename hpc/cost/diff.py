"""The difference between two estimates, by pool or fixed part and item."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from hpc.cost.model import Amounts, Estimate, Item, ScopeKind, total


@dataclass(frozen=True, slots=True)
class Change:
    """What changes in one item of one pool or fixed part; `None` where it is not there.

    Attributes:
        kind: whether it belongs to a pool.
        scope: pool or fixed part.
        item: what it is.
        before: amounts before.
        after: amounts after.
    """

    kind: ScopeKind
    scope: str
    item: Item
    before: Amounts | None
    after: Amounts | None

    @property
    def delta(self) -> Amounts:
        """After minus before; what is not there costs nothing, what is not known stays unknown."""
        return difference(self.before or _NOTHING, self.after or _NOTHING)


@dataclass(frozen=True, slots=True)
class EstimateDiff:
    """The difference between two estimates; `changes` holds only what differs."""

    before: Estimate
    after: Estimate
    changes: tuple[Change, ...]

    @property
    def delta(self) -> Amounts:
        """Difference of the totals."""
        return difference(self.before.totals, self.after.totals)


_NOTHING = Amounts(Decimal(0), Decimal(0), Decimal(0), Decimal(0))


def difference(before: Amounts, after: Amounts) -> Amounts:
    """After minus before, by situation."""
    return Amounts(
        zero=_minus(after.zero, before.zero),
        minimum=_minus(after.minimum, before.minimum),
        worst=_minus(after.worst, before.worst),
        month=_minus(after.month, before.month),
    )


def _minus(after: Decimal | None, before: Decimal | None) -> Decimal | None:
    return None if after is None or before is None else after - before


def diff(before: Estimate, after: Estimate) -> EstimateDiff:
    """What changes in price from one estimate to another."""
    old, new = _grouped(before), _grouped(after)
    changes = [
        Change(kind, scope, item, old.get((kind, scope, item)), new.get((kind, scope, item)))
        for kind, scope, item in dict.fromkeys((*old, *new))
    ]
    return EstimateDiff(before, after, tuple(change for change in changes if change.before != change.after))


def _grouped(estimate: Estimate) -> dict[tuple[ScopeKind, str, Item], Amounts]:
    keys = dict.fromkeys((line.kind, line.scope, line.item) for line in estimate.lines)
    out = {}
    for key in keys:
        found = [line for line in estimate.lines if (line.kind, line.scope, line.item) == key]
        known = total(found)
        out[key] = Amounts(
            zero=None if any(line.amounts.zero is None for line in found) else known.zero,
            minimum=None if any(line.amounts.minimum is None for line in found) else known.minimum,
            worst=None if any(line.amounts.worst is None for line in found) else known.worst,
            month=None if any(line.amounts.month is None for line in found) else known.month,
        )
    return out
