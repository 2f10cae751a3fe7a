"""The cloud's clock: real time plus an offset that tests move forward."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


class Clock:
    """Seconds since 1970 as the cloud sees them; `offset` in seconds never goes back."""

    def __init__(self, offset: float = 0.0) -> None:
        self.offset = offset

    def now(self) -> float:
        """Virtual time in seconds since 1970."""
        return time.time() + self.offset

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds`.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError("the clock only goes forward")
        self.offset += seconds


def moment(seconds: float) -> datetime:
    """Seconds since 1970 as an aware UTC time."""
    return datetime.fromtimestamp(seconds, UTC)


@lru_cache(maxsize=4096)  # a page of a list has the same few times over and over
def iso_seconds(seconds: float) -> str:
    """`2026-12-01T10:18:29Z`, the form of VPC, NAS, RAM and STS."""
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4096)
def iso_minutes(seconds: float) -> str:
    """`2026-12-01T10:18Z`, the form of most ECS times."""
    return moment(seconds).strftime("%Y-%m-%dT%H:%MZ")
