"""`hpc catalog`: what is known about instance types, prices and images, and how to bring it up to date."""

from __future__ import annotations

from typing import Annotated

import typer

from hpc.cli.output import err, out, print_json
from hpc.cli.stacks import JsonOption


def register(app: typer.Typer) -> None:
    """Add the command group to the command line."""
    group = typer.Typer(help="Instance types, prices and images.", no_args_is_help=True)
    group.command("show")(show)
    group.command("refresh")(refresh)
    app.add_typer(group, name="catalog")


def show(
    family: Annotated[str | None, typer.Argument(help="Only this family, for instance ecs.c8ae.")] = None,
    erdma: Annotated[bool, typer.Option("--erdma", help="Only types that have eRDMA.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the instance types with their eRDMA capability and price."""
    from dataclasses import asdict

    from rich.table import Table

    from hpc.catalog import load_catalog

    catalog = load_catalog()
    types = [
        kind
        for kind in catalog.instance_types()
        if (family is None or kind.family == family) and (not erdma or kind.erdma == "yes")
    ]
    if as_json:
        print_json([asdict(kind) for kind in types])
        return
    table = Table()
    for heading in ("Type", "vCPU", "Cores", "GiB", "eRDMA", "Network Gbit/s", "Source"):
        table.add_column(heading, justify="right" if heading in ("vCPU", "Cores", "GiB") else "left")
    for kind in types:
        table.add_row(
            kind.name,
            str(kind.vcpus),
            str(kind.physical_cores),
            f"{kind.memory_gib:g}",
            kind.erdma,
            f"{kind.network_gbps:g}" if kind.network_gbps else "",
            kind.source,
        )
    out().print(table)


def refresh(
    region: Annotated[str, typer.Option("--region", "-r", help="Region to ask, for instance cn-hangzhou.")],
    endpoint: Annotated[str | None, typer.Option(help="HOST:PORT of another API server (plain HTTP).")] = None,
) -> None:
    """Read types, eRDMA capability, stock and prices of the account from the cloud into an override file."""
    from hpc.catalog.refresh import connect, refresh_to_file

    written = refresh_to_file(region, connect(region, endpoint=endpoint), progress=lambda line: err().print(line))
    err().print(f"wrote {written}")
