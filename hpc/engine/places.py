"""Files that are made under the user's cache folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpc.errors import CannotRunError


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Make a folder and let the block write to it; what the file system refuses becomes an error for the user.

    Raises:
        CannotRunError: HPC715, it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise CannotRunError(
            f"{error.filename or folder} cannot be written to: {error.strerror or error}",
            code="HPC715",
            fix="make room or mend the rights there, or set HPC_CACHE_DIR to another folder",
        ) from error


def part_of(target: Path) -> Path:
    """Where a file is written before it takes its name; parts of writers that died are removed."""
    for part in target.parent.glob(f".{target.name}-*"):
        writer = part.name.rsplit("-", 1)[-1]
        if writer.isdigit() and not Path(f"/proc/{writer}").exists():
            part.unlink(missing_ok=True)
    return target.with_name(f".{target.name}-{os.getpid()}")
