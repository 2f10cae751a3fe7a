"""`hpc up`, `refresh`, `destroy`, `repair`, `ssh`: the life of a cluster, through the engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from hpc.cli.output import err, out, print_json
from hpc.cli.progress import Display, display
from hpc.cli.reports import print_report
from hpc.cli.stacks import JsonOption, StackArgument, stack_file
from hpc.errors import CannotRunError, RefusedError

if TYPE_CHECKING:
    from hpc.engine.results import RunResult
    from hpc.preview.model import Report
    from hpc.preview.run import Applied

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("up")(up)
    app.command("refresh")(refresh)
    app.command("destroy")(destroy)
    app.command("repair")(repair)
    app.command("ssh")(ssh)


def up(stack: StackArgument, yes: YesOption = False, as_json: JsonOption = False) -> None:
    """Make the cloud what the stack says: preview with the rules as in `hpc preview`, question, deployment.

    What the rules refuse is not deployed; they run again during the deployment. Ctrl-C stops cleanly; run it again to
    go on.

    Exit code 0: done; 1: refused, or you said no; 2: it failed.
    """
    from hpc.preview.model import Verdict
    from hpc.preview.run import up_stack

    def agree(report: Report, planned: RunResult) -> None:
        if not as_json:
            print_report(report)
        if planned.changed and not (yes or as_json):
            _ask(f"Do this to {stack}?", shown)
        shown.line("Deploying")

    file = stack_file(stack)
    with display(f"{stack}: up", quiet=as_json) as shown:
        shown.line("Previewing with the rules")
        applied = up_stack(file, agree=agree, progress=shown.line, on_event=shown.event)
    if as_json:
        _print_up(applied)
    elif applied.done is None:
        print_report(applied.report)
        err().print(f"nothing was deployed; `hpc preview {stack}` says the same", markup=False)
    elif applied.report.verdict is Verdict.REFUSED:
        print_report(applied.report)
        err().print("the deployment was stopped; what was made before stays, and the next run takes it up")
    elif applied.report.verdict and applied.done.succeeded:
        print_report(applied.report)
    else:
        _finish(applied.done, as_json=False)
    if applied.report.verdict:
        raise typer.Exit(int(applied.report.verdict))


def _print_up(applied: Applied) -> None:
    from hpc.preview.render.json import as_json

    none = {"kind": "up", "succeeded": False, "changes": [], "outputs": {}, "seconds": 0.0}
    done = {**_document(applied.done), "packs": list(applied.done.packs)} if applied.done else none
    print_json({**done, "report": as_json(applied.report)})


def refresh(
    stack: StackArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
    preview_only: Annotated[bool, typer.Option("--preview-only", help="Only say what drifted.")] = False,
    expect_no_changes: Annotated[bool, typer.Option("--expect-no-changes", help="Exit 1 if anything did.")] = False,
) -> None:
    """Compare the state with the cloud: what drifted, and (unless --preview-only) take it over into the state.

    Exit code 0: done; 1: there was drift and --expect-no-changes was given; 2: it failed.
    """
    from hpc.deploy.session import open_session

    with (
        display(f"{stack}: refresh", quiet=as_json) as shown,
        open_session(stack_file(stack), progress=shown.line, on_event=shown.event, check=False) as session,
    ):
        found = session.deployment.refresh(preview_only=True)
        _require(found)
        if not as_json:
            _show_changes(found)
        if not preview_only and found.changed:
            if not (yes or as_json):
                _ask("Take this over into the state?", shown)
            found = session.deployment.refresh()
        _finish(found, as_json=as_json)
    if expect_no_changes and found.changed:
        raise typer.Exit(1)


def destroy(stack: StackArgument, yes: YesOption = False, as_json: JsonOption = False) -> None:
    """Remove the cluster: elastic nodes first, then everything that is not protected or retained.

    Exit code 0: done; 1: you said no; 2: it failed.
    """
    from hpc.deploy.session import open_session

    with (
        display(f"{stack}: destroy", quiet=as_json) as shown,
        open_session(stack_file(stack), progress=shown.line, on_event=shown.event, check=False) as session,
    ):
        if not (yes or as_json):
            _ask(f"Remove the cluster of {stack}?", shown)
        _finish(session.deployment.destroy(), as_json=as_json)


def repair(stack: StackArgument) -> None:
    """After a run that was killed: take away its lock, and find out what became of what it was making.

    What the cloud has is taken over, so that nothing is made twice. Then run `hpc up` again.
    """
    from hpc.deploy.adopt import adopt
    from hpc.deploy.rpc import Api
    from hpc.deploy.session import open_session

    with (
        display(f"{stack}: repair") as shown,
        open_session(stack_file(stack), progress=shown.line, on_event=shown.event, check=False) as session,
    ):
        api = Api(session.connection())
        session.deployment.repair(lambda state: adopt(state, api, shown.line))
    err().print(f"{stack} can be run again")


def ssh(
    stack: StackArgument,
    command: Annotated[list[str] | None, typer.Argument(help="Run this instead of a shell (after --).")] = None,
    host: Annotated[
        str, typer.Option(help="Host of the cluster; other than login nodes are reached through one.")
    ] = "",
) -> None:
    """Open a shell on a login node (or another host) of a cluster that is up."""
    from hpc.deploy.access import ssh_command
    from hpc.deploy.session import open_session

    with (
        display(f"{stack}: outputs") as shown,
        open_session(stack_file(stack), progress=shown.line, check=False) as session,
    ):
        arguments = ssh_command(session, host=host, command=command or [])
    os.execvp(arguments[0], arguments)  # noqa: S606  the terminal now belongs to ssh


def _ask(question: str, shown: Display) -> None:
    shown.pause()
    if not typer.confirm(question, err=True):
        raise RefusedError("you said no", code="HPC014", fix="nothing was changed; run it again when you are ready")
    shown.resume()


def _require(result: RunResult) -> None:
    if not result.succeeded:
        for diagnostic in result.diagnostics:
            if diagnostic.severity == "error":
                err().print(diagnostic.message, markup=False)
        raise CannotRunError(
            f"the {result.kind} failed: {result.first_error.splitlines()[0] if result.first_error else 'no reason'}",
            code="HPC714",
            fix="mend what the message says and run it again; what was made stays and is taken up",
        )


def _show_changes(result: RunResult) -> None:
    from collections import Counter

    counts = Counter(change.operation for change in result.changed if not change.type.startswith(("hpc:", "pulumi:")))
    said = ", ".join(f"{number} to {operation}" for operation, number in sorted(counts.items()))
    err().print(said or "no changes")
    for change in result.changed:
        if change.operation in ("replace", "delete"):
            why = f" because of {', '.join(change.replacing)}" if change.replacing else ""
            err().print(f"  [bold red]{change.operation}[/] {change.type} {change.name}{why}")


def _finish(result: RunResult, *, as_json: bool) -> None:
    if as_json:
        print_json(_document(result))
    _require(result)
    if not as_json and result.outputs:
        from rich.table import Table

        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for name, value in result.outputs.items():
            table.add_row(name, escape(_text(value)))
        out().print(table)
        err().print(f"[green]{result.kind}[/] took {result.seconds:.1f} s")


def _document(result: RunResult) -> dict[str, Any]:
    return {
        "kind": result.kind,
        "succeeded": result.succeeded,
        "changes": [
            {"type": c.type, "name": c.name, "operation": c.operation, "replacing": list(c.replacing)}
            for c in result.changed
        ],
        "outputs": dict(result.outputs),
        "seconds": round(result.seconds, 1),
    }


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
