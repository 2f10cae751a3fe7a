"""Versions of the engine and its plugins that the project is tested with."""

from __future__ import annotations

import re

#: The CLI that is built or downloaded where none is installed.
VERSION = "3.274.1"

#: The oldest CLI that works: `policy analyze --file` and fixes of `deleted_with` came with it.
MINIMUM = "3.249.0"

ALICLOUD_VERSION = "4.0.0"
COMMAND_VERSION = "1.2.1"


def parse(text: str) -> tuple[int, int, int] | None:
    """Numbers of a version such as `v3.274.1` or `3.275.0-alpha.1`, or None where it is not one."""
    match = re.match(r"\s*v?(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def new_enough(text: str, minimum: str = MINIMUM) -> bool:
    """Whether a version is at least `minimum`; what is no version is not."""
    found, least = parse(text), parse(minimum)
    return found is not None and least is not None and found >= least
