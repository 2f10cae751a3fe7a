"""`hpc doctor`: what is installed, what is missing, how to get it."""

from __future__ import annotations

import typer

from hpc.cli.output import out, print_json
from hpc.cli.stacks import JsonOption


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("doctor")(doctor)


def doctor(as_json: JsonOption = False) -> None:
    """Say what is installed, what is missing, and how to get it.

    Exit code 0: everything that a cluster on the real cloud needs is there; 2: something is missing.
    """
    from rich.table import Table

    from hpc.doctor import Need, diagnose

    checks = diagnose()
    missing = any(check.need is Need.REQUIRED and not check.present for check in checks)
    if as_json:
        print_json({"ok": not missing, "checks": [check.as_dict() for check in checks]})
        raise typer.Exit(2 if missing else 0)
    table = Table(show_lines=False)
    for heading in ("", "What", "Found", "For", "How to get it"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        mark = (
            "[green]ok[/]" if check.present else ("[bold red]no[/]" if check.need is Need.REQUIRED else "[yellow]-[/]")
        )
        table.add_row(mark, check.name, check.found, check.purpose, "" if check.present else check.remedy)
    out().print(table)
    raise typer.Exit(2 if missing else 0)
