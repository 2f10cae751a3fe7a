"""Estimates as Markdown, for merge requests and job summaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpc.cost.diff import EstimateDiff
from hpc.cost.model import Amounts, Estimate, Item, ScopeKind
from hpc.cost.render.text import ITEM_TITLES, money, percent, scope_title, signed

_HEADINGS = ("at zero", "minimum", "worst", "month")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int) -> list[str]:
    rule = ["---" if index < text_columns else "---:" for index in range(len(headings))]
    return [_row(headings), _row(rule), *(_row(row) for row in rows), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cells(amounts: Amounts) -> tuple[str, ...]:
    return (money(amounts.zero), money(amounts.minimum), money(amounts.worst), money(amounts.month))


def as_markdown(estimate: Estimate) -> str:
    """The estimate as a Markdown section."""
    kinds = dict.fromkeys((line.kind, line.scope) for kind in ScopeKind for line in estimate.lines if line.kind is kind)
    parts = [(scope_title(scope, kind), *_cells(estimate.by_scope(scope, kind))) for kind, scope in kinds]
    items = [(ITEM_TITLES[item], *_cells(estimate.by_item(item))) for item in Item]
    total = ("**Total**", *(f"**{cell}**" for cell in _cells(estimate.totals)))
    unit = f"{estimate.currency} per hour, last column {estimate.currency} per expected month."
    out = [f"## Price of {estimate.cluster} in {estimate.region}", "", unit, ""]
    out += _table(("Part", *_HEADINGS), [*parts, total], 1)
    out += _table(("Item", *_HEADINGS), items, 1)
    out += ["Ways of paying for the pools, for the same use:", ""]
    out += _table(
        ("Pool", "Charge", "month", "worst hour"),
        [
            (row.pool, f"**{row.charge}**" if row.chosen else row.charge, money(row.month), money(row.worst))
            for row in estimate.alternatives
        ],
        2,
    )
    out += ["A subscription pays from this use on:", ""]
    out += _table(
        ("Part", "Type", "Against", "pays from", "expected use"),
        [
            (row.scope, row.instance_type, row.charge, percent(row.utilisation), percent(row.expected))
            for row in estimate.break_even
        ],
        3,
    )
    out += [f"- {remark}" for remark in remarks(estimate)]
    return "\n".join(out) + "\n"


def remarks(estimate: Estimate) -> list[str]:
    """Saving, reliability and assumptions, one sentence each."""
    out = []
    if estimate.saving.share is not None:
        always = money(estimate.saving.always_on_month)
        out.append(f"Saves {percent(estimate.saving.share)} against always-on pay-as-you-go ({always} a month).")
    out.append(
        f"Derived prices: {percent(estimate.weak_worst_share())} of the worst hour, "
        f"{percent(estimate.weak_month_share())} of the month."
    )
    out += [f"No price known: {line.scope} {line.name}." for line in estimate.unknown]
    return [*out, *estimate.notes]


def diff_as_markdown(change: EstimateDiff) -> str:
    """A difference as a Markdown section."""
    title = f"## Change of price: {change.before.cluster} to {change.after.cluster}"
    unit = f"{change.after.currency} per hour, last column per expected month."
    if not change.changes:
        return f"{title}\n\nNo change.\n"
    rows = [(scope_title(row.scope, row.kind), ITEM_TITLES[row.item], *_signed(row.delta)) for row in change.changes]
    totals = ("**Total**", "", *(f"**{cell}**" for cell in _signed(change.delta)))
    return "\n".join([title, "", unit, "", *_table(("Part", "Item", *_HEADINGS), [*rows, totals], 2)]) + "\n"


def _signed(amounts: Amounts) -> tuple[str, ...]:
    return (signed(amounts.zero), signed(amounts.minimum), signed(amounts.worst), signed(amounts.month))
