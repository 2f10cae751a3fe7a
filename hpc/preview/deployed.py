"""The rules on what is deployed: the state of a stack through `pulumi policy analyze`, no program, no provider."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc.engine.results import Diagnostic, PolicyViolation, RunResult, clean
from hpc.preview.gate import could_not_run
from hpc.preview.model import Report
from hpc.preview.surroundings import PACK_PROGRAM, finished_report, rules_of

if TYPE_CHECKING:
    from hpc.deploy.session import Session

_TIMEOUT_S = 600


def analyze_session(session: Session, *, drift: bool = False) -> Report:
    """Judge the deployed state of an open stack.

    Args:
        session: the stack.
        drift: also look at what differs from the cloud.

    Raises:
        RefusedError: the rules' settings or the waivers cannot be used.
    """
    environment, waivers = rules_of(session.stack)
    workspace = session.deployment.workspace
    deployment = session.deployment.export()
    if not deployment.get("resources"):
        return could_not_run(
            "HPC785",
            f"nothing is deployed in the stack {session.stack}",
            "deploy it first, or preview it without --deployed",
            stack=session.stack,
            stack_file=workspace.stack_file.name,
        )
    found = session.deployment.refresh(preview_only=True) if drift else None
    result = analyze_state(deployment, workspace.cli, environment.file, {**os.environ, **workspace.variables()})
    return finished_report(
        session.stack,
        workspace.stack_file,
        environment,
        result,
        session.checked,
        waivers=waivers,
        drift=found,
    )


def analyze_state(deployment: Mapping[str, Any], cli: Path, config: Path, environment: Mapping[str, str]) -> RunResult:
    """Run the pack on a state.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
        cli: the Pulumi CLI.
        config: settings of the rules.
        environment: variables of the engine.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hpc-analyze-") as folder:
        file = Path(folder) / "state.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps({"version": 3, "deployment": dict(deployment)}), encoding="utf-8")
        command = [str(cli), "policy", "analyze", "--json", "--file", str(file)]
        command += ["--policy-pack", str(PACK_PROGRAM), "--policy-pack-config", str(config)]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=dict(environment),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            lines, told, code = done.stdout.splitlines(), done.stderr, done.returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            lines, told, code = [], str(error), 2
    return _folded(lines, told, code, time.monotonic() - started)


def _folded(lines: Iterable[str], told: str, code: int, seconds: float) -> RunResult:
    policies: list[PolicyViolation] = []
    packs: tuple[str, ...] = ()
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if policy := event.get("policyEvent"):
            message = clean(policy["message"])
            policies.append(
                PolicyViolation(
                    policy=policy["policyName"],
                    pack=policy["policyPackName"],
                    level=policy["enforcementLevel"],
                    urn=policy.get("resourceUrn", ""),
                    message=message,
                    could_not_run="can't run policy" in message,
                )
            )
        elif summary := event.get("summaryEvent"):
            packs = tuple(summary.get("PolicyPacks") or ())
    failed = code != 0 and not policies
    diagnostics = (Diagnostic("error", "", clean(told) or f"the engine ended with {code}"),) if failed else ()
    return RunResult("analysis", not failed, (), tuple(policies), diagnostics, seconds=seconds, packs=packs)
