"""A git revision to compare with: the stack file as it was there, and what a change does to the rules themselves."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc.checks import check_stack_file
from hpc.cost.model import Estimate
from hpc.errors import RefusedError
from hpc.preview.model import Base, base_of

_TIMEOUT_S = 30

#: Most files that a note names.
_MOST = 6


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of the repository that a stack file lies in.

    Attributes:
        name: as it was given, for people.
        commit: its hash.
        root: folder of the repository.
    """

    name: str
    commit: str
    root: Path

    def text(self, file: Path) -> str | None:
        """A file as it was there, or None where it was not."""
        return _git(self.root, "show", f"{self.commit}:{_inside(self.root, file)}")


def revision(name: str, file: Path) -> Revision:
    """Find a revision.

    Args:
        name: branch, tag or commit.
        file: a file in the repository.

    Raises:
        RefusedError: HPC786, there is no such revision, no repository or no git.
    """
    folder = file.resolve().parent
    root = _git(folder, "rev-parse", "--show-toplevel")
    commit = root and _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if not (root and commit):
        where = f"no commit of the repository of {file.name}" if root else f"{file.name} lies in no git repository"
        raise RefusedError(
            f"{name} is no stack, no stack file, and {where}",
            code="HPC786",
            fix="name a stack, a file, or a revision that is there (`git fetch` it first)",
        )
    return Revision(name, commit.strip(), Path(root.strip()))


def estimate_at(found: Revision, file: Path) -> tuple[Estimate | None, tuple[str, ...]]:
    """Price of a stack file as it was in a revision, and notes where there is none."""
    text = found.text(file)
    if text is None:
        return None, (f"there is no {file.name} in {found.name}, so everything of it is new",)
    with tempfile.TemporaryDirectory(prefix="hpc-base-") as folder:
        old = Path(folder) / file.name
        old.write_text(text, encoding="utf-8")
        estimate = check_stack_file(old).estimate
    if estimate is None:
        return None, (f"{file.name} of {found.name} could not be understood, so there is no price to compare with",)
    return estimate, ()


def base_at(found: Revision, file: Path) -> tuple[Base | None, tuple[str, ...]]:
    """The same, as what a preview compares with."""
    estimate, notes = estimate_at(found, file)
    return base_of(estimate, found.name) if estimate else None, notes


def rule_changes(found: Revision, environment: Path) -> tuple[str, ...]:
    """What a change since a revision does to the rules that judge it, as notes: nobody shall overlook a raised cap.

    Args:
        found: the revision.
        environment: file with the settings of the rules for the stack.
    """
    if not environment.resolve().is_relative_to(found.root):
        return ()
    start = _git(found.root, "merge-base", found.commit, "HEAD") or found.commit
    names = (_git(found.root, "diff", "--name-only", start.strip(), "--", ":/policies") or "").splitlines()
    settings = _inside(found.root, environment.parent)
    told: list[str] = []
    # Settings and waivers first: they are what a person should read.
    for name in sorted(names, key=lambda one: (not one.startswith(f"{settings}/"), one.endswith(".py"), one)):
        if name == f"{settings}/{environment.name}":
            before = Revision(found.name, start.strip(), found.root).text(environment)
            told.append(f"{name} ({', '.join(_differences(before, environment)) or 'only its form'})")
        elif not name.startswith(f"{settings}/"):  # settings of other environments judge nothing here
            told.append(name)
    if len(told) > _MOST:
        told[_MOST:] = [f"and {len(told) - _MOST} more"]
    return (f"this also changes the rules themselves since {found.name}: {', '.join(told)}",) if told else ()


def _differences(before: str | None, environment: Path) -> Iterator[str]:
    old, new = _settings(before or "{}"), _settings(environment.read_text(encoding="utf-8"))
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield f"{key} {_shown(old.get(key))} → {_shown(new.get(key))}"


def _settings(text: str) -> Mapping[str, Any]:
    """Settings by rule and name; none of what is malformed, which is refused elsewhere."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    found: dict[str, Any] = {}
    for rule, given in document.items() if isinstance(document, dict) else ():
        entry = given if isinstance(given, dict) else {"enforcementLevel": given}
        found |= {f"{rule} {key}": value for key, value in entry.items()}
    return found


def _shown(value: Any) -> str:
    return "(default)" if value is None else json.dumps(value)


def _inside(root: Path, file: Path) -> str:
    return file.resolve().relative_to(root).as_posix()


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, or None where it says no."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
