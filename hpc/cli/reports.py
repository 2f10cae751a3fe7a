"""Reports of previews beside what a command itself says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpc.cli.output import err

if TYPE_CHECKING:
    from hpc.preview.model import Report


def print_report(report: Report) -> None:
    """Write a report to standard error: as tables in a terminal, elsewhere the same 140 columns wide."""
    if err().is_terminal:
        from hpc.preview.render.terminal import as_renderables

        for part in as_renderables(report):
            err().print(part)
    else:
        from hpc.preview.render import Format, render

        err().file.write(render(report, Format.TERMINAL))
