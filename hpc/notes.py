"""Lines of progress that have to stay in sight."""

from __future__ import annotations


class Note(str):
    """A line for whoever takes lines of progress, which a live display keeps after it has gone on to the next one."""

    __slots__ = ()
