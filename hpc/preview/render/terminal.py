"""Reports as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from hpc.cost.render.text import money, signed
from hpc.preview.model import ChangeRow, Issue, Price, Report, Verdict

_STYLE = {Verdict.PASSED: "bold green", Verdict.REFUSED: "bold red", Verdict.COULD_NOT_RUN: "bold yellow"}
_OPERATION = {"delete": "bold red", "replace": "bold red", "update": "yellow", "create": "green"}


def as_renderables(report: Report) -> tuple[RenderableType, ...]:
    """A report as what rich can print: changes, price, issues, and the verdict last."""
    parts: list[RenderableType] = []
    if report.changes:
        parts.append(_changes("Changes", report.changes))
    if report.drift is not None:
        parts.append(_changes("Drift", report.drift) if report.drift else Text("No drift"))
    if report.price:
        parts.append(_price(report.price))
    for issue in report.issues:
        parts.append(_issue(issue, "red" if issue.refuses else "yellow", "refuses" if issue.refuses else "notice"))
    for issue in report.waived:
        parts.append(_issue(issue, "cyan", "waived"))
    parts += [Text(note) for note in report.notes]
    parts.append(Text(f"{report.stack}: {report.verdict.word}", style=_STYLE[report.verdict]))
    return tuple(parts)


def as_plain_text(report: Report) -> str:
    """The same without colours, 140 columns wide."""
    console = Console(file=StringIO(), width=140, color_system=None, highlight=False)
    for part in as_renderables(report):
        console.print(part)
    file = console.file
    return file.getvalue() if isinstance(file, StringIO) else ""


def _changes(title: str, changes: Sequence[ChangeRow]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("What", "Type", "Name", "Because of"):
        table.add_column(heading, overflow="fold")
    for change in changes:
        table.add_row(
            Text(change.operation, style=_OPERATION.get(change.operation, "")),
            escape(change.type),
            escape(change.name),
            escape(", ".join(change.because)),
        )
    return table


def _price(price: Price) -> Table:
    before = f", before: {escape(price.base)}" if price.base else ""
    table = Table(title=f"Price in CNY{before}", title_justify="left", box=SIMPLE)  # 80 columns are enough
    table.add_column("Part", no_wrap=True)
    headings = (
        ("before", "worst hour", "change", "before", "month", "change") if price.base else ("worst hour", "month")
    )
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in price.rows:
        earlier = (money(row.before.worst), money(row.before.month)) if row.before else ("", "")
        after = (money(row.after.worst), money(row.after.month)) if row.after else ("", "")
        delta = (signed(row.delta.worst), signed(row.delta.month)) if row.delta else ("", "")
        cells = (earlier[0], after[0], delta[0], earlier[1], after[1], delta[1]) if price.base else after
        table.add_row(escape(row.title), *cells, style="bold" if row.title == "total" else "")
    if not price.complete:
        table.caption = "A price is not known: the sums are of what is known."
    return table


def _issue(issue: Issue, style: str, word: str) -> Text:
    where = issue.resource or issue.path or "cluster"
    text = Text()
    text.append(word, style=f"bold {style}")
    text.append(f" {issue.code} {issue.title} ")
    text.append(where, style="bold")
    text.append(f"\n    {issue.message}\n    ")
    text.append("fix: ", style="dim")
    text.append(issue.fix)
    return text
