"""Reports as a comment on a pull or merge request; by its first line it is found and edited in place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from hpc.cost import Amounts
from hpc.cost.render.text import money, signed
from hpc.preview.model import ChangeRow, Issue, Price, Report, Verdict

_SIGN = {Verdict.PASSED: "✅", Verdict.REFUSED: "❌", Verdict.COULD_NOT_RUN: "⚠️"}
_TITLE = {Verdict.PASSED: "passed", Verdict.REFUSED: "refused", Verdict.COULD_NOT_RUN: "could not run"}

#: Most rows of a list; comments end at 65,536 characters on GitHub.
_ROWS = 60
_LONGEST = 60_000
_SPECIAL = re.compile(r"([\\`*_\[\]#|~])")


def marker(stack: str) -> str:
    """First line of the comment for a stack."""
    return f"<!-- hpc-preview:{re.sub(r'[^A-Za-z0-9._]+', '-', stack)} -->"


def as_markdown(report: Report) -> str:
    """A report as a comment."""
    out = [marker(report.stack), f"## {_SIGN[report.verdict]} {_plain(report.stack)}: {_headline(report)}", ""]
    fix = _issues((issue for issue in report.issues if _blocks(report, issue)), report.pages)
    look = _issues((issue for issue in report.issues if not _blocks(report, issue)), report.pages)
    look += [f"- {_plain(note)}" for note in report.notes]
    out += [*_section("Fix this", fix), *_section("Worth a look", look)]
    out += _section("Waived", (f"- **{issue.code}** {_plain(issue.message)}" for issue in report.waived))
    if report.price:
        out += _price(report.price)
    out += _changes(report)
    if report.drift is not None:
        out += _drift(report.drift)
    if report.environment:
        out += [
            "",
            f"<sub>Rules and caps: `{report.environment}`. `hpc preview {_plain(report.stack)}` says the same.</sub>",
        ]
    text = "\n".join(out).rstrip() + "\n"
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rsplit("\n", 1)[0] + "\n\n(cut; `hpc preview` shows all of it)\n"
    return text


def _headline(report: Report) -> str:
    if report.verdict is Verdict.PASSED:
        return "passed"
    rules = len({issue.code for issue in report.issues if _blocks(report, issue)})
    return f"{_TITLE[report.verdict]}, {rules} thing{'s' if rules != 1 else ''} to fix"


def _blocks(report: Report, issue: Issue) -> bool:
    return issue.refuses or (report.verdict is Verdict.COULD_NOT_RUN and issue.severity == "error")


def _section(title: str, rows: Iterable[str]) -> list[str]:
    lines = list(rows)
    if not lines:
        return []
    left = [f"- and {len(lines) - _ROWS} more"] if len(lines) > _ROWS else []
    return [f"### {title}", "", *lines[:_ROWS], *left, ""]


def _issues(issues: Iterable[Issue], pages: str) -> list[str]:
    """One entry for all that is said of one place by one rule with one fix."""
    entries: dict[tuple[str, ...], list[str]] = {}
    for issue in issues:
        key = (issue.code, issue.title, issue.resource or issue.path, issue.fix, issue.page)
        entries.setdefault(key, []).append(issue.message)
    return [_issue(*key, messages=messages, pages=pages) for key, messages in entries.items()]


def _issue(code: str, title: str, place: str, fix: str, page: str, *, messages: Sequence[str], pages: str) -> str:
    where = f" `{_code(place)}`" if place else ""
    about = ""
    if page:
        about = f" ([about this rule]({pages.rstrip('/')}/{page}))" if pages else f" (`{page}`)"
    said = "<br>".join(_plain(message) for message in messages)
    return f"- **{code} {_plain(title)}**{where}<br>{said}<br>**Fix:** {_plain(fix)}{about}"


def _price(price: Price) -> list[str]:
    unit = "CNY per hour at the worst, and per expected month."
    if not price.base:
        headings: Sequence[str] = ("Part", "worst hour", "month")
        rows = [[row.title, _worst(row.after), _month(row.after)] for row in price.rows]
    else:
        unit += f" Before: {_plain(price.base)}."
        headings = ("Part", "hour before", "after", "change", "month before", "after", "change")
        rows = [
            [
                row.title,
                _worst(row.before),
                _worst(row.after),
                signed(row.delta.worst) if row.delta else "",
                _month(row.before),
                _month(row.after),
                signed(row.delta.month) if row.delta else "",
            ]
            for row in price.rows
        ]
    rows[-1] = [f"**{cell}**" if cell else "" for cell in rows[-1]]
    missing = [] if price.complete else ["", "A price is not known: the sums are of what is known."]
    table = [_row(headings), _row(["---", *["---:"] * (len(headings) - 1)]), *(_row(_plain_first(row)) for row in rows)]
    return ["### Price", "", unit, "", *table, *missing, ""]


def _plain_first(row: Sequence[str]) -> list[str]:
    first = row[0]
    return [first if first.startswith("**") else _plain(first), *row[1:]]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _worst(amounts: Amounts | None) -> str:
    return money(amounts.worst) if amounts else ""


def _month(amounts: Amounts | None) -> str:
    return money(amounts.month) if amounts else ""


def _changes(report: Report) -> list[str]:
    if not report.changes:
        return ["### Changes", "", "None.", ""] if report.verdict is Verdict.PASSED else []
    counts = ", ".join(
        f"{report.count(operation)} to {operation}"
        for operation in ("create", "update", "replace", "delete")
        if report.count(operation)
    )
    loud = [change for change in report.changes if change.operation in ("replace", "delete")]
    quiet = [change for change in report.changes if change not in loud]
    out = ["### Changes", "", f"{counts or 'None of resources'}.", ""]
    out += _change_rows(loud)
    if quiet:
        out += ["<details><summary>Created and updated</summary>", "", *_change_rows(quiet), "</details>", ""]
    return out


def _change_rows(changes: Sequence[ChangeRow]) -> list[str]:
    rows = [f"- {_change(change)}" for change in changes[:_ROWS]]
    if len(changes) > _ROWS:
        rows.append(f"- and {len(changes) - _ROWS} more")
    return [*rows, ""] if rows else []


def _change(change: ChangeRow) -> str:
    loud = change.operation in ("replace", "delete")
    word = f"**{change.operation}**" if loud else change.operation
    why = f" because of {', '.join(f'`{_code(key)}`' for key in change.because)}" if change.because else ""
    return f"{word} `{_code(change.name)}` ({_plain(change.type)}){why}"


def _drift(drift: Sequence[ChangeRow]) -> Iterator[str]:
    yield from ("### Drift", "")
    yield from _change_rows(drift) or ["The cloud is what the state says.", ""]


def _plain(text: str) -> str:
    """Text that means nothing to Markdown, HTML or mentions; values of the stack file come through here."""
    flat = " ".join(text.split())
    # An @ that is followed by a letter would notify somebody.
    safe = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", safe).replace("@", "&commat;")


def _code(text: str) -> str:
    return text.replace("`", "'").replace("\n", " ").replace("|", "¦")
