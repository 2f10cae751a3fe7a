"""Keeps launches within the account's rate, so that they are not throttled."""

from __future__ import annotations

import threading
from collections import deque

#: The rate is counted by the minute; a call that takes its time is counted late by as much.
WINDOW_S = 61.0


class Pace:
    """At most `limit` instances in any window of a minute. Safe to be used from several threads.

    Args:
        limit: instances in a window.
        window: its length in s.
    """

    def __init__(self, limit: int, window: float = WINDOW_S) -> None:
        self._limit, self._window = limit, window
        self._lock = threading.Lock()
        self._given: deque[tuple[float, int]] = deque()

    def reserve(self, amount: int, now: float) -> float:
        """Take `amount` instances; how many seconds to wait before they are asked for.

        Args:
            amount: at most the limit.
            now: a clock that never goes back, s.
        """
        with self._lock:
            at = max(now, self._given[-1][0] if self._given else now)
            while self._given and self._given[0][0] <= now - self._window:
                self._given.popleft()
            taken = 0
            # From the newest backwards: the first one that no longer fits has to be a window ago.
            for when, count in reversed(self._given):
                taken += count
                if taken + amount > self._limit:
                    at = max(at, when + self._window)
                    break
            self._given.append((at, amount))
            return at - now
