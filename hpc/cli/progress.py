"""What a run of the engine looks like while it goes on: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.markup import escape

from hpc.cli.output import err
from hpc.notes import Note

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent
    from rich.status import Status

_DONE = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
    "create-replacement": "created anew",
    "delete-replaced": "deleted old",
}


class Display:
    """Takes engine events and lines, and shows them on standard error."""

    def __init__(self, status: Status | None) -> None:
        self._status = status
        self._started = time.monotonic()
        self._running: dict[str, str] = {}
        self._done = 0
        self._last = 0.0

    def pause(self) -> None:
        """Free the terminal for a question."""
        if self._status:
            self._status.stop()

    def resume(self) -> None:
        """Go on after a question."""
        if self._status:
            self._status.start()

    def line(self, text: str) -> None:
        """Show one line of what is going on; a `Note` stays."""
        if isinstance(text, Note):
            err().print(f"[yellow]note[/] {escape(text)}")
        elif self._status:
            self._status.update(escape(text))
        else:
            err().print(escape(text))

    def event(self, event: EngineEvent) -> None:
        """Take an event of the engine."""
        if step := event.resource_pre_event:
            if not step.planning and step.metadata.op.value in _DONE:
                self._running[step.metadata.urn] = step.metadata.op.value
                self._show()
        elif outputs := event.res_outputs_event:
            operation = outputs.metadata.op.value
            if not outputs.planning and operation in _DONE:
                self._running.pop(outputs.metadata.urn, None)
                self._done += 1
                self._report(operation, outputs.metadata.urn)
        elif failed := event.res_op_failed_event:
            self._running.pop(failed.metadata.urn, None)
            err().print(f"  [red]failed[/] {escape(_short(failed.metadata.urn))}")
        elif (told := event.diagnostic_event) and told.severity == "info" and not told.ephemeral:
            self._show()

    def _report(self, operation: str, urn: str) -> None:
        elapsed = time.monotonic() - self._started
        if _is_component(urn):
            return
        err().print(f"  [dim]{elapsed:6.1f} s[/]  {_DONE[operation]} {escape(_short(urn))}")
        self._show()

    def _show(self) -> None:
        if not self._status or time.monotonic() - self._last < 0.1:
            return
        self._last = time.monotonic()
        waiting = [_short(urn) for urn in self._running if not _is_component(urn)]
        more = f" and {len(waiting) - 3} more" if len(waiting) > 3 else ""
        elapsed = time.monotonic() - self._started
        self._status.update(escape(f"{self._done} done, {elapsed:.0f} s: {', '.join(waiting[:3])}{more}"))


@contextmanager
def display(title: str, *, quiet: bool = False) -> Iterator[Display]:
    """A display for the time of the block.

    Args:
        title: what is being done.
        quiet: no live line (for `--json`); plain lines still go to standard error.
    """
    if quiet or not err().is_terminal:
        yield Display(None)
        return
    with err().status(escape(title)) as status:
        yield Display(status)


def _short(urn: str) -> str:
    kind, name = urn.split("::")[2].split("$")[-1], urn.split("::", 3)[-1]
    return f"{kind.split(':')[-1]} {name}"


def _is_component(urn: str) -> bool:
    kind = urn.split("::")[2].split("$")[-1]
    return kind.startswith(("hpc:", "pulumi:"))
