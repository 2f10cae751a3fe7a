"""Which stack file a command means, and what can be said of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpc.errors import RefusedError
from hpc.paths import PROJECT_ROOT

if TYPE_CHECKING:
    from hpc.findings import Finding
    from hpc.spec.cluster import ClusterSpec

StackArgument = Annotated[
    str, typer.Argument(metavar="STACK", help="Name of a stack (Pulumi.STACK.yaml in this folder) or a path to a file.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write one JSON document to standard output.")]


def stack_file(stack: str) -> Path:
    """The file that a STACK argument names.

    Raises:
        RefusedError: HPC011, there is no such file.
    """
    candidates = _candidates(stack)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    known = sorted({path.name.split(".")[1] for folder in (Path.cwd(), PROJECT_ROOT) for path in _stack_files(folder)})
    raise RefusedError(
        f"there is no stack file {candidates[0]}",
        code="HPC011",
        fix=f"name one of: {', '.join(known) or '(none here)'}; or give the path of a file",
    )


def names_stack_file(stack: str) -> bool:
    """Whether a STACK argument is meant for a file, even one that is missing."""
    return Path(stack).suffix in (".yaml", ".yml") or any(file.is_file() for file in _candidates(stack))


def _candidates(stack: str) -> list[Path]:
    given = Path(stack)
    if given.suffix in (".yaml", ".yml") or given.parent != Path():
        return [given]
    return [folder / f"Pulumi.{stack}.yaml" for folder in (Path.cwd(), PROJECT_ROOT)]


def _stack_files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("Pulumi.*.yaml") if path.name != "Pulumi.yaml"]


def checked(stack: str) -> tuple[ClusterSpec | None, tuple[Finding, ...]]:
    """Load a stack and check all of it, price caps too.

    Returns:
        The spec (None where it could not be read) and all findings.
    """
    from hpc.checks import check_stack_file

    result = check_stack_file(stack_file(stack))
    return result.spec, result.findings


def accepted(stack: str) -> tuple[ClusterSpec, tuple[Finding, ...]]:
    """Load a stack that must be free of errors.

    Raises:
        FindingsError: the stack is refused; all its findings are in the error.
    """
    from hpc.findings import FindingsError, has_errors

    spec, findings = checked(stack)
    if spec is None or has_errors(findings):
        raise FindingsError(findings)
    return spec, findings
