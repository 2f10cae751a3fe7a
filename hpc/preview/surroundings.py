"""What a report needs beside what the engine said: the rules' settings, the waivers, names and addresses of files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hpc.checks import Checked
from hpc.paths import PROJECT_ROOT
from hpc.preview.environment import Environment, environment_of
from hpc.preview.gate import report
from hpc.preview.model import Base, Report
from policies.registry import BY_NAME
from policies.waivers import Waivers, load_waivers

if TYPE_CHECKING:
    from hpc.engine.results import RunResult

#: The pack as a program, which engines without a language host run, too.
PACK_PROGRAM = PROJECT_ROOT / "policies" / "analyzer"


def rules_of(stack: str) -> tuple[Environment, Waivers]:
    """Settings of the rules for a stack, and the waivers as they count today (UTC).

    Raises:
        RefusedError: one of them cannot be used.
    """
    return environment_of(stack), load_waivers(datetime.now(UTC).date(), BY_NAME.keys())


def finished_report(
    stack: str,
    file: Path,
    environment: Environment,
    result: RunResult | None,
    checked: Checked,
    *,
    base: Base | None = None,
    waivers: Waivers | None = None,
    drift: RunResult | None = None,
    notes: tuple[str, ...] = (),
) -> Report:
    """The report of a run, with all that is known of its surroundings."""
    made = report(
        result,
        checked,
        base,
        stack=stack,
        stack_file=shown(file),
        levels=environment.levels,
        waivers=waivers,
        drift=drift,
        environment=shown(environment.file),
        notes=(*([environment.note] if environment.note else []), *notes),
    )
    return replace(made, pages=pages_address(os.environ))


def shown(file: Path) -> str:
    """A path as it stands in the repository."""
    resolved = file.resolve()
    return resolved.relative_to(PROJECT_ROOT).as_posix() if resolved.is_relative_to(PROJECT_ROOT) else file.name


def pages_address(environment: Mapping[str, str]) -> str:
    """Address below which the code hosting site shows files of the commit, from the variables of its runners."""
    if site := environment.get("GITHUB_SERVER_URL"):
        return f"{site}/{environment.get('GITHUB_REPOSITORY', '')}/blob/{environment.get('GITHUB_SHA', 'main')}"
    if project := environment.get("CI_PROJECT_URL"):
        return f"{project}/-/blob/{environment.get('CI_COMMIT_SHA', 'main')}"
    return ""
