"""`hpc validate`, `hpc schema`: is the stack file right, and what may stand in it."""

from __future__ import annotations

from typing import Annotated

import typer

from hpc.cli.output import err, print_findings, print_json
from hpc.cli.stacks import JsonOption, checked


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("validate")(validate)
    app.command("schema")(schema)


def validate(
    stacks: Annotated[list[str], typer.Argument(metavar="STACK...", help="Names of stacks or paths of stack files.")],
    as_json: JsonOption = False,
) -> None:
    """Check stack files: every finding at once, with code, path and fix. No cloud, no engine.

    Exit code 0: no errors; 1: at least one stack is refused; 2: the check could not run.
    """
    from hpc.findings import has_errors

    refused = False
    documents = []
    for stack in stacks:
        _, findings = checked(stack)
        failed = has_errors(findings)
        refused |= failed
        if as_json:
            documents.append({"stack": stack, "valid": not failed, "findings": [f.as_dict() for f in findings]})
        else:
            print_findings(findings)
            verdict = "[bold red]refused[/]" if failed else "[green]valid[/]"
            err().print(f"{stack}: {verdict}")
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
    raise typer.Exit(1 if refused else 0)


def schema() -> None:
    """Print the JSON schema of `hpc:cluster`, for editors."""
    from hpc.spec.schema import cluster_schema

    print_json(cluster_schema())
