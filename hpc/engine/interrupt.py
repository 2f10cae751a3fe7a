"""Ctrl-C while the engine runs: the first one asks it to stop cleanly, the second one ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from hpc.engine.places import part_of, writing


def engine_processes() -> list[int]:
    """Process ids of the engines that this process has started."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            children = (task / "children").read_text(encoding="ascii").split()
        except OSError:
            continue
        for child in children:
            try:
                name = Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip()
            except OSError:
                continue
            if name == "pulumi":
                found.append(int(child))
    return found


@contextmanager
def forwarded(told: Callable[[str], None]) -> Iterator[list[int]]:
    """Pass SIGINT and SIGTERM on to the engine while the block runs.

    The engine runs in a session of its own (see `launcher`), so that a terminal's Ctrl-C reaches it through here only:
    one signal lets it finish what it is doing and write its state, a second one ends it at once.

    Args:
        told: gets a line for the user.

    Yields:
        A list that holds the signals that came.
    """
    came: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        came.append(number)
        told("cancelling: waiting for the operations under way (again: stop at once)" if len(came) == 1 else "stopping")
        for process in engine_processes():
            os.kill(process, signal.SIGINT)

    try:
        before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: nobody's Ctrl-C comes here
        yield came
        return
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def launcher(folder: Path, cli: Path) -> Path:
    """A `bin/pulumi` in `folder` that starts the engine in a session of its own; the folder is returned."""
    script = folder / "bin" / "pulumi"
    text = f'#!/bin/sh\nexec setsid "{cli}" "$@"\n'
    with writing(script.parent):
        if not script.exists() or script.read_text(encoding="utf-8") != text:
            part = part_of(script)
            part.write_text(text, encoding="utf-8")
            part.chmod(0o755)
            part.rename(script)
    return folder
