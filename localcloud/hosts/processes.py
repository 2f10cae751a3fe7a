"""Processes of this machine told by id and start time, so that a reused id is never taken for the old process."""

from __future__ import annotations

import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """A process.

    Attributes:
        pid: its id.
        started: start time in clock ticks since boot (field 22 of proc(5) stat).
    """

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this id now, or None."""
        started = _start_time(pid)
        return None if started is None else cls(pid, started)

    @property
    def alive(self) -> bool:
        """Whether it still runs (a zombie does not)."""
        return _start_time(self.pid) == self.started

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; a process that is gone is not an error."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for its end; False if it still runs after `timeout_s` seconds (None waits for ever)."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.alive:
                return True
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(None if timeout_s is None else max(timeout_s, 0) * 1000))
        finally:
            os.close(descriptor)


def children(pid: int) -> tuple[int, ...]:
    """Ids of the children of a process."""
    try:
        return tuple(int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:
        return ()


def _start_time(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
