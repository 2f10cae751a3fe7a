"""Locks between processes: a file and flock(2), let go by the kernel however the holder ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpc.errors import CannotRunError


@contextmanager
def file_lock(path: Path, *, wait: bool = True, busy: str = "") -> Iterator[None]:
    """Hold an exclusive lock on `path` (made if missing) for the length of the block.

    Args:
        path: lock file; it stays.
        wait: False raises at once if another process holds it.
        busy: what to say then.

    Raises:
        CannotRunError: HPC852, another process holds the lock and `wait` is False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotRunError(
                busy or f"{path} is locked by another process",
                code="HPC852",
                fix="stop the other local cloud that uses this state folder",
            ) from error
        yield
