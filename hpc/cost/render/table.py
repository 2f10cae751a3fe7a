"""Estimates as tables for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from hpc.cost.diff import EstimateDiff
from hpc.cost.model import Amounts, Estimate, ScopeKind
from hpc.cost.render.text import ITEM_TITLES, money, percent, scope_title, signed

_HEADINGS = ("at zero", "minimum", "worst", "month")


def price_tables(estimate: Estimate) -> tuple[RenderableType, ...]:
    """The estimate: lines with totals, ways of paying, break-even, what it rests on."""
    tables: list[RenderableType] = [_lines(estimate), _alternatives(estimate), _break_even(estimate)]
    return (*tables, _remarks(estimate))


def _money_table(title: str, first: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in first:
        table.add_column(heading, overflow="fold")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _cells(amounts: Amounts) -> tuple[str, str, str, str]:
    return (money(amounts.zero), money(amounts.minimum), money(amounts.worst), money(amounts.month))


def _lines(estimate: Estimate) -> Table:
    title = f"Price of {estimate.cluster} in {estimate.region} ({estimate.currency} per hour; per month expected)"
    table = _money_table(title, ("Part", "Item", "What"))
    table.add_column("Rests on")
    for line in sorted(estimate.lines, key=lambda line: line.kind is ScopeKind.FIXED):
        count = f"{line.count} x " if line.count > 1 else ""
        table.add_row(
            scope_title(line.scope, line.kind),
            ITEM_TITLES[line.item],
            escape(count + line.name),
            *_cells(line.amounts),
            str(line.reliability)
            if line.reliability is line.month_reliability
            else f"{line.reliability}, month {line.month_reliability}",
        )
    table.add_section()
    complete = "" if estimate.complete else "known prices only"
    table.add_row("Total", "", complete, *_cells(estimate.totals), "", style="bold")
    return table


def _alternatives(estimate: Estimate) -> Table:
    table = Table(title="Ways of paying for the pools, same use, disks included", title_justify="left")
    table.add_column("Pool")
    table.add_column("Charge")
    table.add_column("month", justify="right")
    table.add_column("worst hour", justify="right")
    for row in estimate.alternatives:
        mark = " (chosen)" if row.chosen else ""
        note = " (all nodes, always on)" if row.charge == "prepaid" else ""
        table.add_row(
            row.pool, row.charge + mark + note, money(row.month), money(row.worst), style="bold" if row.chosen else ""
        )
    return table


def _break_even(estimate: Estimate) -> Table:
    table = Table(title="Subscription against the hour, instance alone", title_justify="left")
    for heading in ("Part", "Type", "Against"):
        table.add_column(heading)
    for heading in ("hour", "subscription month", "pays from", "expected use"):
        table.add_column(heading, justify="right")
    table.add_column("Cheaper")
    for row in estimate.break_even:
        pays = row.subscription_pays
        table.add_row(
            row.scope,
            row.instance_type,
            row.charge,
            money(row.hourly),
            money(row.prepaid_month),
            percent(row.utilisation),
            percent(row.expected),
            "unknown" if pays is None else "subscription" if pays else row.charge,
        )
    return table


def _remarks(estimate: Estimate) -> RenderableType:
    rows = []
    if estimate.saving.share is not None:
        always = money(estimate.saving.always_on_month)
        rows.append(f"Saving against always-on ({always} a month): {percent(estimate.saving.share)}")
    weak = (
        f"{percent(estimate.weak_worst_share())} of the worst hour, {percent(estimate.weak_month_share())} of the month"
    )
    rows.append(f"Rests on derived prices: {weak}. hpc catalog refresh reads the real ones.")
    rows += [f"No price known: {line.scope} {line.name}" for line in estimate.unknown]
    rows += estimate.notes
    return Group(*(Text(row) for row in rows))


def diff_tables(change: EstimateDiff) -> tuple[RenderableType, ...]:
    """What changes, by part and item, with the totals before and after."""
    table = _money_table(
        f"Change of price from {change.before.cluster} to {change.after.cluster} ({change.after.currency})",
        ("Part", "Item"),
    )
    for row in change.changes:
        delta = row.delta
        table.add_row(scope_title(row.scope, row.kind), ITEM_TITLES[row.item], *_signed(delta))
    table.add_section()
    table.add_row("Before", "", *_cells(change.before.totals))
    table.add_row("After", "", *_cells(change.after.totals))
    table.add_row("Change", "", *_signed(change.delta), style="bold")
    return (table,)


def _signed(amounts: Amounts) -> tuple[str, str, str, str]:
    return (signed(amounts.zero), signed(amounts.minimum), signed(amounts.worst), signed(amounts.month))
