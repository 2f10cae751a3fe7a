"""`hpc demo`: a cluster in the local cloud from nothing to a finished MPI program, and back to nothing."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("demo")(demo)


def demo(
    clean: Annotated[bool, typer.Option("--clean", help="Remove everything that the demo made.")] = False,
    hosts: Annotated[
        bool | None,
        typer.Option("--hosts/--no-hosts", help="Real hosts, or the API only; hosts where the machine can have them."),
    ] = None,
) -> None:
    """Bring up the local stack with the real engine in a local Alibaba Cloud, and use it. No account, no costs."""
    from hpc.demo.run import clean_up, run

    if clean:
        clean_up()
    else:
        run(hosts=hosts)
