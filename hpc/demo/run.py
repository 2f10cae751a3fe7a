"""The steps of the demonstration, in order, each with what it shows."""

from __future__ import annotations

from hpc.cli.output import err, out, print_findings
from hpc.cli.progress import display
from hpc.errors import CannotRunError
from hpc.paths import PROJECT_ROOT

STACK_FILE = PROJECT_ROOT / "Pulumi.local.yaml"


def run(*, hosts: bool | None) -> None:
    """Local cloud, deployment, outputs and price.

    Args:
        hosts: real hosts or API only; None takes hosts where the machine can have them.

    Raises:
        HpcError: a step failed; what was made stays, and running it again goes on from there.
    """
    from hpc.cost.render.table import price_tables
    from hpc.deploy.session import open_session

    with (
        display("demo: getting ready") as shown,
        open_session(STACK_FILE, progress=shown.line, on_event=shown.event, hosts=hosts) as session,
    ):
        print_findings(session.checked.findings)
        shown.line("pulumi up")
        done = session.deployment.up()
        if not done.succeeded:
            raise CannotRunError(
                f"`pulumi up` of the local stack failed: {done.first_error}",
                code="HPC810",
                fix="see `hpc local logs`; `make demo` again goes on from here, `make demo-clean` starts over",
            )
    cloud = session.cloud
    out().print(f"\n[bold]The cluster is up[/] after {done.seconds:.1f} s: {done.count('create')} created")
    for name in ("ssh", "management", "mounts"):
        out().print(f"  {name:12} {done.outputs.get(name)}")
    if session.checked.estimate:
        for table in price_tables(session.checked.estimate):
            out().print(table)
    if cloud is not None:
        if not cloud.record.hosts:
            err().print("[yellow]instances exist in the API only[/]: see `hpc doctor` for what real hosts need")
        out().print("Look around:")
        out().print(f"  console page     {cloud.console_url}", soft_wrap=True)
        out().print("  what exists      .venv/bin/hpc local status")
        out().print("  API calls        .venv/bin/hpc local logs --calls")
        out().print("  change it        edit Pulumi.local.yaml, then .venv/bin/hpc up local")
        out().print("  remove it        make demo-clean")


def clean_up() -> None:
    """Destroy the cluster, then remove the local cloud with everything in it, also after a crash."""
    from hpc.deploy.local import remove_cloud, running_cloud
    from hpc.deploy.session import open_session
    from hpc.errors import HpcError

    if running_cloud() is not None:
        try:
            with (
                display("demo: destroying") as shown,
                open_session(STACK_FILE, progress=shown.line, on_event=shown.event, check=False) as session,
            ):
                session.deployment.destroy()
        except HpcError as error:
            err().print(f"the cluster could not be destroyed in an orderly way: {error.message}", markup=False)
    with display("demo: removing the local cloud") as shown:
        remove_cloud(shown.line)
    err().print("the demo is gone")
