"""`hpc preview`: what `hpc up` would do, whether the rules let it, and what it would cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpc.cli.output import out
from hpc.cli.progress import display
from hpc.cli.stacks import JsonOption, StackArgument, names_stack_file, stack_file
from hpc.preview.render import Format


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("preview")(preview)


def preview(
    stack: StackArgument,
    base: Annotated[
        str,
        typer.Option("--base", metavar="BASE", help="Compare the price with this stack, file or git revision."),
    ] = "deployed",
    drift: Annotated[bool, typer.Option("--drift", help="Also say what differs from the cloud.")] = False,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="Judge what is deployed instead of what would be.")
    ] = False,
    form: Annotated[Format, typer.Option("--format", "-f", help="How to write it.")] = Format.TERMINAL,
    as_json: JsonOption = False,
    reports: Annotated[
        Path | None, typer.Option("--reports", help="Also write JSON, SARIF, JUnit and Markdown into this folder.")
    ] = None,
) -> None:
    """Preview a stack with the policy pack: changes, price before and after, and what the rules refuse.

    Exit code 0: passed; 1: refused; 2: could not run.
    """
    from hpc.preview import render, write_reports
    from hpc.preview.render.terminal import as_renderables
    from hpc.preview.run import DEPLOYED, preview_stack

    chosen = Format.JSON if as_json else form
    file = stack_file(stack)
    known = base == DEPLOYED or names_stack_file(base)
    with display(f"{stack}: preview", quiet=chosen is not Format.TERMINAL) as shown:
        done = preview_stack(
            file,
            base=str(stack_file(base)) if known and base != DEPLOYED else DEPLOYED,
            revision="" if known else base,
            drift=drift,
            deployed=deployed,
            progress=shown.line,
            on_event=shown.event,
        )
    if reports:
        write_reports(done, reports)
    if chosen is Format.TERMINAL:
        for part in as_renderables(done):
            out().print(part)
    else:
        typer.echo(render(done, chosen), nl=False)
    if done.verdict:
        raise typer.Exit(int(done.verdict))
