"""Estimates as JSON-ready values with stable keys (price.schema.json); money as strings, so that nothing is rounded."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from hpc.catalog import Price
from hpc.cost.diff import EstimateDiff
from hpc.cost.model import Amounts, Estimate, Item, ScopeKind

#: Version of the layout; goes up when a key changes its meaning or goes away.
LAYOUT = 1


def as_json(estimate: Estimate) -> dict[str, Any]:
    """An estimate as JSON-ready values."""
    return {
        "layout": LAYOUT,
        "cluster": estimate.cluster,
        "region": estimate.region,
        "currency": estimate.currency,
        "complete": estimate.complete,
        "hourly": {
            "zero": _money(estimate.totals.zero),
            "minimum": _money(estimate.totals.minimum),
            "worst": _money(estimate.totals.worst),
        },
        "monthly": _money(estimate.totals.month),
        "saving": {
            "always_on_monthly": _money(estimate.saving.always_on_month),
            "share": _money(estimate.saving.share),
        },
        "pools": {pool: amounts_as_json(estimate.by_scope(pool, ScopeKind.POOL)) for pool in estimate.pools},
        "items": {str(item): amounts_as_json(estimate.by_item(item)) for item in Item},
        "reliability": {
            "weak_share_hourly": _money(estimate.weak_worst_share()),
            "weak_share_monthly": _money(estimate.weak_month_share()),
            "by_kind": {
                str(kind): {"worst": _money(share.worst), "monthly": _money(share.month), "lines": share.lines}
                for kind, share in estimate.by_reliability().items()
            },
            "unknown": [f"{line.scope}: {line.name}" for line in estimate.unknown],
        },
        "lines": [
            {
                "item": str(line.item),
                "kind": str(line.kind),
                "scope": line.scope,
                "name": line.name,
                "count": line.count,
                **amounts_as_json(line.amounts),
                "price": _price(line.price),
                "reliability": str(line.reliability),
                "reliability_monthly": str(line.month_reliability),
                "note": line.note,
            }
            for line in estimate.lines
        ],
        "break_even": [
            {**_plain(asdict(row)), "subscription_pays": row.subscription_pays} for row in estimate.break_even
        ],
        "alternatives": [_plain(asdict(row)) for row in estimate.alternatives],
        "usd_rate": _price(estimate.usd_rate),
        "notes": list(estimate.notes),
    }


def diff_as_json(change: EstimateDiff) -> dict[str, Any]:
    """A difference as JSON-ready values."""
    return {
        "layout": LAYOUT,
        "before": change.before.cluster,
        "after": change.after.cluster,
        "currency": change.after.currency,
        "delta": amounts_as_json(change.delta),
        "changes": [
            {
                "kind": str(row.kind),
                "scope": row.scope,
                "item": str(row.item),
                "before": amounts_as_json(row.before) if row.before else None,
                "after": amounts_as_json(row.after) if row.after else None,
                "delta": amounts_as_json(row.delta),
            }
            for row in change.changes
        ],
    }


def amounts_as_json(amounts: Amounts) -> dict[str, str | None]:
    """Amounts by situation: three by the hour, one by the month."""
    return {
        "zero": _money(amounts.zero),
        "minimum": _money(amounts.minimum),
        "worst": _money(amounts.worst),
        "monthly": _money(amounts.month),
    }


def _money(value: Decimal | None) -> str | None:
    return None if value is None else f"{value:f}"


def _price(price: Price) -> dict[str, Any]:
    return _plain({**asdict(price), "reliability": str(price.reliability)})


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: _money(value) if isinstance(value, Decimal) else value for key, value in row.items()}
