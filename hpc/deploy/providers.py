"""Which provider plugins a run uses: the real ones, or the stand-ins of the local cloud where those are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hpc.engine.plugins import ensure_plugins
from hpc.errors import CannotRunError
from hpc.paths import PROJECT_ROOT

#: `real` refuses to stand in, `stand-in` never looks for the real plugins; anything else takes the real ones if it can.
CHOICE_VARIABLE = "HPC_PROVIDERS"


@contextmanager
def providers(
    cli: Path, environment: Mapping[str, str], *, local: bool, progress: Callable[[str], None]
) -> Iterator[Mapping[str, int]]:
    """Ports of the stand-in providers that the engine is to attach to, by name; empty where the real plugins are there.

    Args:
        cli: the Pulumi CLI.
        environment: variables that commands of the program get, beside this process's own.
        local: the stack is for the local cloud; only then may a stand-in take over.
        progress: gets lines for the user.

    Raises:
        CannotRunError: HPC720, a plugin is missing and nothing may stand in for it.
    """
    choice = os.environ.get(CHOICE_VARIABLE, "")
    if local and choice == "stand-in":
        missing = ["alicloud", "command"]
    else:
        plugins = ensure_plugins(cli, progress)
        lost = [plugin for plugin in plugins if plugin.path is None]
        missing = [plugin.name for plugin in lost]
        if lost and (not local or choice == "real"):
            raise CannotRunError(
                f"the provider plugins {', '.join(f'{p.name} {p.version}' for p in lost)} are not installed",
                code="HPC720",
                fix=" && ".join(plugin.remedy for plugin in lost),
            )
    if not missing:
        yield {}
        return
    progress(f"Stand-in providers for {' and '.join(missing)} (the real plugins are not installed)")
    with _stand_ins(missing, environment) as ports:
        yield ports


@contextmanager
def _stand_ins(names: list[str], environment: Mapping[str, str]) -> Iterator[Mapping[str, int]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "localcloud.providers", *names],
        cwd=PROJECT_ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a terminal's Ctrl-C must not end them before the engine is done with them
    )
    try:
        assert process.stdout is not None  # noqa: S101  it was asked for
        line = process.stdout.readline()
        if not line:
            raise CannotRunError(
                "the stand-in providers do not start",
                code="HPC721",
                fix="run `python -m localcloud.providers` to see why",
            )
        yield {name: int(port) for name, port in json.loads(line).items()}
    finally:
        if process.stdin:
            process.stdin.close()  # they serve until then
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
