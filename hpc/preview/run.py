"""Previewing a stack with the policy pack, from its file to a report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.checks import check_stack_file
from hpc.errors import HpcError
from hpc.findings import has_errors
from hpc.preview.environment import environment_of
from hpc.preview.gate import could_not_run
from hpc.preview.model import Base, Report, Verdict, base_of, base_of_run, base_of_state
from hpc.preview.surroundings import PACK_PROGRAM, finished_report, pages_address, rules_of, shown

if TYPE_CHECKING:
    from hpc.deploy.session import Session
    from hpc.engine.project import OnEvent
    from hpc.engine.results import RunResult

#: Gets a preview that passed, and what the engine said.
Agree = Callable[["Report", "RunResult"], None]

#: What `base` says for the stack as it is deployed.
DEPLOYED = "deployed"


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a deployment behind the gate.

    Attributes:
        report: of the preview where that was refused, else of the deployment itself, which is policed, too.
        done: the deployment, or None where the preview kept it from beginning.
    """

    report: Report
    done: RunResult | None


def preview_session(
    session: Session, *, base: Base | None = None, drift: bool = False, notes: tuple[str, ...] = ()
) -> Report:
    """Preview a stack that is open: what `hpc preview` reports and what `hpc up` has to pass.

    Args:
        session: the stack.
        base: what the price is compared with; the deployed stack's own figures unless given.
        drift: also look at what differs from the cloud.
        notes: what else the report is to say.

    Raises:
        RefusedError: the rules' settings or the waivers cannot be used.
    """
    return _previewed(session, base=base, drift=drift, notes=notes)[0]


def up_session(
    session: Session, *, agree: Callable[[Report, RunResult], None] = lambda report, result: None
) -> Applied:
    """Preview an open stack and deploy it if that passes. There is no way past the preview.

    The rules run again during the deployment, on values that the preview did not know, and stop it where one of them
    is violated.

    Args:
        session: the stack.
        agree: gets the preview that passed; raises where somebody does not want it.

    Raises:
        RefusedError: the rules' settings or the waivers cannot be used.
    """
    planned, result = _previewed(session)
    if planned.verdict:
        return Applied(planned, None)
    agree(planned, result)
    environment, waivers = rules_of(session.stack)
    done = session.deployment.up(policy_packs=[PACK_PROGRAM], policy_configs=[environment.file])
    made = finished_report(
        session.stack,
        session.deployment.workspace.stack_file,
        environment,
        done,
        session.checked,
        base=base_of_run(done),
        waivers=waivers,
    )
    return Applied(made, done)


def up_stack(
    file: Path,
    *,
    agree: Agree = lambda report, result: None,
    progress: Callable[[str], None] = lambda line: None,
    on_event: OnEvent = lambda event: None,
    hosts: bool | None = None,
) -> Applied:
    """Preview a stack from its file and deploy it if that passes.

    Args:
        file: the stack file.
        agree: gets the preview that passed; raises where somebody does not want it.
        progress: gets lines for the user.
        on_event: gets the engine's events.
        hosts: for the local cloud: real hosts or API only; None takes hosts where the machine can have them.

    Raises:
        HpcError: something that is needed cannot be had, or somebody did not want it.
    """
    from hpc.deploy.session import open_session, stack_name

    checked = check_stack_file(file)
    if has_errors(checked.findings):
        stack = stack_name(file)
        return Applied(finished_report(stack, file, rules_of(stack)[0], None, checked), None)
    with open_session(file, progress=progress, on_event=on_event, hosts=hosts) as session:
        return up_session(session, agree=agree)


def _previewed(
    session: Session, *, base: Base | None = None, drift: bool = False, notes: tuple[str, ...] = ()
) -> tuple[Report, RunResult]:
    environment, waivers = rules_of(session.stack)
    found = session.deployment.refresh(preview_only=True) if drift else None
    result = session.deployment.preview(policy_packs=[PACK_PROGRAM], policy_configs=[environment.file])
    if base is None:
        # A preview that went to its end has told what was deployed. Asking for the state takes as long as a quarter
        # of a preview.
        base = base_of_run(result) if result.succeeded else base_of_state(session.deployment.export())
    made = finished_report(
        session.stack,
        session.deployment.workspace.stack_file,
        environment,
        result,
        session.checked,
        base=base,
        waivers=waivers,
        drift=found,
        notes=notes,
    )
    return made, result


def preview_stack(
    file: Path,
    *,
    base: str = DEPLOYED,
    revision: str = "",
    drift: bool = False,
    deployed: bool = False,
    progress: Callable[[str], None] = lambda line: None,
    on_event: OnEvent = lambda event: None,
    hosts: bool | None = None,
) -> Report:
    """Preview a stack from its file. What goes wrong on the way is in the report, too.

    Args:
        file: the stack file.
        base: `deployed`, or the path of a stack file, such as another branch's.
        revision: git revision to compare with instead of `base`; the report also says what has become of the rules.
        drift: also look at what differs from the cloud.
        deployed: judge the deployed state instead of what the stack file would make of it.
        progress: gets lines for the user.
        on_event: gets the engine's events.
        hosts: for the local cloud: real hosts or API only; None takes hosts where the machine can have them.
    """
    from hpc.deploy.session import open_session, stack_name

    stack = stack_name(file)
    try:
        if revision:
            before, notes = _base_of_revision(revision, file, stack)
        else:
            before, notes = (None if base == DEPLOYED else _base_of_file(Path(base))), ()
        checked = check_stack_file(file)
        if has_errors(checked.findings) and not deployed:
            # The program would refuse it too, but only after the engine and the plugins have been got.
            return finished_report(stack, file, rules_of(stack)[0], None, checked, base=before, notes=notes)
        with open_session(file, progress=progress, on_event=on_event, hosts=hosts, check=not deployed) as session:
            if deployed:
                from hpc.preview.deployed import analyze_session

                return analyze_session(session, drift=drift)
            return preview_session(session, base=before, drift=drift, notes=notes)
    except HpcError as error:
        return replace(
            could_not_run(
                error.code,
                error.message,
                error.fix,
                stack=stack,
                stack_file=shown(file),
                verdict=Verdict(error.exit_code),
            ),
            pages=pages_address(os.environ),
        )


def _base_of_revision(name: str, file: Path, stack: str) -> tuple[Base | None, tuple[str, ...]]:
    from hpc.preview.revision import base_at, revision, rule_changes

    found = revision(name, file)
    base, notes = base_at(found, file)
    return base, (*notes, *rule_changes(found, environment_of(stack).file))


def _base_of_file(file: Path) -> Base | None:
    checked = check_stack_file(file)
    return base_of(checked.estimate, file.name) if checked.estimate else None
