"""Running programs of the machine, with their last words in the error."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from hpc.errors import CannotRunError

_TIMEOUT_S = 60


def run(
    args: Sequence[str], *, stdin: str | None = None, check: bool = True, env: Mapping[str, str] | None = None
) -> str:
    """Run a program to its end and return what it printed.

    Args:
        args: program and arguments.
        stdin: text for its standard input.
        check: False accepts any exit code.
        env: the whole environment, or None for this process's own.

    Raises:
        CannotRunError: HPC851, the program is missing, failed or took more than a minute.
    """
    try:
        done = subprocess.run(
            args, input=stdin, text=True, capture_output=True, timeout=_TIMEOUT_S, check=False, env=env
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failure(args, str(error)) from error
    if check and done.returncode:
        raise _failure(args, done.stderr.strip() or f"exit code {done.returncode}")
    return done.stdout


def run_json(args: Sequence[str]) -> Any:
    """Run a program that prints JSON and return the value ([] if it printed nothing)."""
    return json.loads(run(args) or "[]")


def _failure(args: Sequence[str], why: str) -> CannotRunError:
    return CannotRunError(
        f"`{' '.join(args)}` failed: {why}",
        code="HPC851",
        fix="run `python -m localcloud.hosts.reset` on the state folder and start again",
    )
