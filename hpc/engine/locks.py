"""Engines that outlive the `hpc` that started them, found by the locks that they hold in a state folder."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

#: How long an engine may take to finish what it is doing once it is asked to stop, s.
PATIENCE_S = 90


def end_holders(backend: Path, stack: str, told: Callable[[str], None]) -> None:
    """Have engines on this machine that hold a lock of a stack stop, so that nobody writes its state any more.

    Args:
        backend: folder of a state backend.
        stack: name of the stack.
        told: gets lines for the user.
    """
    for file in backend.glob(f".pulumi/locks/**/{stack}/*.json"):
        try:
            holder = json.loads(file.read_text(encoding="utf-8"))
            process, host = int(holder["pid"]), holder.get("hostname")
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if host != os.uname().nodename or not _is_engine(process):
            continue
        told(f"Waiting for the engine of the killed run (process {process}) to stop")
        _end(process)


def _is_engine(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8").strip() == "pulumi"
    except OSError:
        return False


def _end(process: int) -> None:
    for number, patience in ((signal.SIGINT, PATIENCE_S), (signal.SIGKILL, 10)):
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + patience
        while _is_engine(process) and time.monotonic() < deadline:
            time.sleep(0.1)
