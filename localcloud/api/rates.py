"""Rate limits by minute of the cloud's clock; what is throttled clears when the next minute begins."""

from __future__ import annotations

from localcloud.api.errors import ApiError


class Rates:
    """Counters of the present minute (they may start at zero again after a restart)."""

    def __init__(self) -> None:
        self._minute = 0
        self._calls: dict[str, int] = {}
        self._launched = 0

    def _roll(self, now: float) -> None:
        minute = int(now // 60)
        if minute != self._minute:
            self._minute, self._launched = minute, 0
            self._calls.clear()

    def call(self, now: float, action: str, limits: dict[str, int]) -> None:
        """Count a call of an action.

        Raises:
            ApiError: 429 `Throttling.User` for a limit of the action, `Throttling` for the limit of all (`*`).
        """
        if not limits:
            return
        self._roll(now)
        for name, code, message in (
            (action, "Throttling.User", "Request was denied due to user flow control."),
            ("*", "Throttling", "Request was denied due to request throttling."),
        ):
            if name not in limits:
                continue
            count = self._calls[name] = self._calls.get(name, 0) + 1
            if count > limits[name]:
                raise ApiError(429, code, message)

    @staticmethod
    def left(now: float) -> int:
        """How long the present minute still lasts, milliseconds."""
        return int((60 - now % 60) * 1000)

    def launch(self, now: float, amount: int, limit: int) -> None:
        """Count instances that a request asks for.

        Raises:
            ApiError: 429 `Throttling.User` above the account's launches a minute.
        """
        self._roll(now)
        if self._launched + amount > limit:
            raise ApiError(429, "Throttling.User", "Request was denied due to user flow control: too many instances.")
        self._launched += amount
