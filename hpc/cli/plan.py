"""`hpc plan`, `hpc estimate`: what would be made and what it would cost, without an engine or an account."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpc.cli.output import err, out, print_findings, print_json
from hpc.cli.stacks import JsonOption, StackArgument, accepted, names_stack_file, stack_file
from hpc.errors import CannotRunError

if TYPE_CHECKING:
    from hpc.cost.model import Estimate


class EstimateFormat(StrEnum):
    """Output formats of `hpc estimate`."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("plan")(plan)
    app.command("estimate")(estimate)


def plan(stack: StackArgument, as_json: JsonOption = False) -> None:
    """Show the resources, the price and the findings of a stack, offline.

    Exit code 0: plannable; 1: refused; 2: could not run.
    """
    from rich.table import Table

    from hpc.catalog import load_catalog
    from hpc.cost import estimate as price_of
    from hpc.cost.render.json import as_json as price_json
    from hpc.cost.render.table import price_tables
    from hpc.plan import plan_stack

    spec, findings = accepted(stack)
    resources = plan_stack(stack_file(stack)).resources
    price = price_of(spec, load_catalog())
    if as_json:
        print_json({"resources": resources, "price": price_json(price), "findings": [f.as_dict() for f in findings]})
        return
    table = Table(title=f"{spec.name}: {len(resources)} resources", title_justify="left")
    for heading in ("Type", "Name", "What matters"):
        table.add_column(heading, overflow="fold")
    for resource in resources:
        table.add_row(resource.type, resource.name, resource.summary)
    out().print(table)
    for price_table in price_tables(price):
        out().print(price_table)
    print_findings(findings)


def _before(base: str, stack: str) -> Estimate | None:
    """What a stack is compared with: another stack or file, else the same file in a git revision."""
    from hpc.catalog import load_catalog
    from hpc.cost import estimate as price_of
    from hpc.preview.revision import estimate_at, revision

    if names_stack_file(base):
        return price_of(accepted(base)[0], load_catalog())
    file = stack_file(stack)
    found, notes = estimate_at(revision(base, file), file)
    for note in notes:
        err().print(note, markup=False)
    return found


def estimate(
    stack: StackArgument,
    output: Annotated[EstimateFormat, typer.Option("--format", "-f", help="How to write it.")] = EstimateFormat.TABLE,
    as_json: JsonOption = False,
    file: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead.")] = None,
    diff: Annotated[
        str | None,
        typer.Option("--diff", metavar="BASE", help="Show the difference to another stack, a file or a git revision."),
    ] = None,
) -> None:
    """Show what a stack costs: an hour at zero, at minimum and at worst, and an expected month.

    Exit code 0: within the caps; 1: refused; 2: could not run.
    """
    from hpc.catalog import load_catalog
    from hpc.cost import diff as price_diff
    from hpc.cost import estimate as price_of
    from hpc.cost.render.html import as_html
    from hpc.cost.render.json import as_json as price_json
    from hpc.cost.render.json import diff_as_json
    from hpc.cost.render.markdown import as_markdown, diff_as_markdown
    from hpc.cost.render.table import diff_tables, price_tables

    chosen = EstimateFormat.JSON if as_json else output
    catalog = load_catalog()
    spec, findings = accepted(stack)
    price = price_of(spec, catalog)
    before = _before(diff, stack) if diff else None
    change = price_diff(before, price) if before else None

    if chosen is EstimateFormat.TABLE:
        if file:
            raise CannotRunError("a table goes to the terminal", code="HPC012", fix="add --format markdown or html")
        for table in diff_tables(change) if change else price_tables(price):
            out().print(table)
        print_findings(findings)
        return
    if chosen is EstimateFormat.JSON:
        document = {
            "price": price_json(price),
            "difference": diff_as_json(change) if change else None,
            "findings": [finding.as_dict() for finding in findings],
        }
        if not file:
            print_json(document)
            return
        import json

        text = json.dumps(document, indent=2)
    elif chosen is EstimateFormat.MARKDOWN:
        text = diff_as_markdown(change) if change else as_markdown(price)
    else:
        text = as_html(price)
    if file:
        file.write_text(text, encoding="utf-8")
        err().print(f"wrote {file}")
    else:
        typer.echo(text)
