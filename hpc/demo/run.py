"""The steps of the demonstration, in order, each with what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpc.cli.output import err, out, print_findings
from hpc.cli.progress import Display, display
from hpc.cli.reports import print_report
from hpc.errors import CannotRunError, RefusedError
from hpc.paths import PROJECT_ROOT

if TYPE_CHECKING:
    from hpc.demo.job import Outcome
    from hpc.deploy.session import Session
    from hpc.engine.results import RunResult
    from localcloud.api.client import LocalCloud

#: Nodes that the job asks for.
NODES = 2

STACK_FILE = PROJECT_ROOT / "Pulumi.local.yaml"


def run(*, hosts: bool | None) -> None:
    """Local cloud, deployment, outputs and price; with real hosts a parallel job on elastic nodes, too.

    Args:
        hosts: real hosts or API only; None takes hosts where the machine can have them.

    Raises:
        HpcError: a step failed; what was made stays, and running it again goes on from there.
    """
    from hpc.deploy.session import open_session

    with (
        display("demo: getting ready") as shown,
        open_session(STACK_FILE, progress=shown.line, on_event=shown.event, hosts=hosts) as session,
    ):
        print_findings(session.checked.findings)
        shown.line("Previewing with the rules")
        done = _deployed(session, shown)
        out().print(f"\n[bold]The cluster is up[/] after {done.seconds:.1f} s: {len(done.changed)} resources changed")
        for name in ("ssh", "management", "mounts"):
            out().print(f"  {name:12} {done.outputs.get(name)}")
        cloud = session.cloud
        outcome = _job(session, cloud, shown) if cloud is not None and cloud.record.hosts else None
    _price(session)
    if outcome is not None:
        _tell(outcome)
    elif cloud is not None:
        err().print("[yellow]instances exist in the API only[/]: see `hpc doctor` for what real hosts need")
    if cloud is not None:
        out().print("Look around:")
        out().print(f"  console page     {cloud.console_url}", soft_wrap=True)
        out().print("  log in           .venv/bin/hpc ssh local")
        out().print("  what exists      .venv/bin/hpc local status")
        out().print("  API calls        .venv/bin/hpc local logs --calls")
        out().print("  change it        edit Pulumi.local.yaml, then .venv/bin/hpc up local")
        out().print("  remove it        make demo-clean")


def _deployed(session: Session, shown: Display) -> RunResult:
    """Preview and deployment, through the same gate as `hpc up`."""
    from hpc.preview.model import Verdict
    from hpc.preview.run import up_session

    applied = up_session(session, agree=lambda report, planned: shown.line("pulumi up"))
    if applied.report.verdict is Verdict.REFUSED:
        print_report(applied.report)
        raise RefusedError(
            "the rules refuse the local stack",
            code="HPC814",
            fix="mend what is said above; `hpc preview local` says it too",
        )
    if applied.done is None or applied.report.verdict:
        why = applied.done.first_error if applied.done else ""
        raise CannotRunError(
            f"`pulumi up` of the local stack failed: {why or '; '.join(i.message for i in applied.report.issues)}",
            code="HPC810",
            fix="see `hpc local logs`; `make demo` again goes on from here, `make demo-clean` starts over",
        )
    return applied.done


def _job(session: Session, cloud: LocalCloud, shown: Display) -> Outcome:
    """Run the job of the demonstration on two elastic nodes."""
    from hpc.demo.job import Host, run_job
    from hpc.deploy.access import ssh_command

    # One key file and one login for all commands; the outputs do not change meanwhile.
    base = ssh_command(session, command=[])
    return run_job(Host(lambda text: [*base, text]), NODES, cloud, shown.line)


def _tell(outcome: Outcome) -> None:
    out().print("\n[bold]A parallel job on nodes that were not there[/]")
    for milestone in outcome.timeline:
        out().print(f"  {milestone.seconds:7.1f} s  {milestone.what}")
    out().print(f"  ran on    {outcome.nodes}")
    out().print(f"  serial    {outcome.serial}")
    out().print(f"  parallel  {outcome.parallel}  [green]the same answer[/]")
    out().print(
        f"  cost      {outcome.spent_nodes:.3f} CNY for the nodes that came and went, {outcome.spent_always:.3f} CNY "
        "for the others meanwhile, at the prices of the real cloud"
    )


def _price(session: Session) -> None:
    price = session.checked.estimate
    if price is not None:
        totals = price.totals
        out().print(
            f"On the real cloud this would cost {totals.zero:.2f} CNY an hour with no compute node and "
            f"{totals.worst:.2f} CNY at most (.venv/bin/hpc estimate local shows all of it)."
        )


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
