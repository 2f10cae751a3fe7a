"""The log of API calls: the last thousand, and a stream for whoever listens."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

_SECRET = ("userdata", "password", "publickeybody", "securitytoken", "oidctoken", "accesskey", "signature")
_KEEP = 1000


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call.

    Attributes:
        number: counts from 1.
        at: real time, seconds since 1970.
        product, action: what was called (as far as it could be read).
        status: HTTP status.
        code: error code, or nothing.
        milliseconds: how long the server worked on it (asked-for latency left out).
        request_id: as in the answer.
        caller: resource name of the caller, or nothing.
        parameters: what was asked, secrets and user data left out, long values cut.
    """

    number: int
    at: float
    product: str
    action: str
    status: int
    code: str
    milliseconds: float
    request_id: str
    caller: str
    parameters: dict[str, str]

    def view(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def shortened(text: str) -> str:
    """At most 120 characters."""
    return text if len(text) <= 120 else text[:117] + "..."


def presentable(flat: dict[str, str]) -> dict[str, str]:
    """Parameters without secrets, long values cut, at most 60 of them."""
    result: dict[str, str] = {}
    for name, value in flat.items():
        if any(secret in name.lower() for secret in _SECRET):
            continue
        result[shortened(name)] = shortened(value)
        if len(result) == 60:
            break
    return result


class CallLog:
    """Ring of the last calls."""

    def __init__(self) -> None:
        self._ring: deque[CallRecord] = deque(maxlen=_KEEP)
        self._listeners: set[asyncio.Queue[CallRecord]] = set()
        self.count = 0

    def add(self, record: CallRecord) -> None:
        """Keep a call and tell the listeners; a listener that is too slow misses some."""
        self._ring.append(record)
        for listener in self._listeners:
            if not listener.full():
                listener.put_nowait(record)

    def next_number(self) -> int:
        """Number of the next call."""
        self.count += 1
        return self.count

    def last(self, *, action: str = "", since: int = 0, limit: int = _KEEP) -> list[CallRecord]:
        """Calls, oldest first."""
        found = [item for item in self._ring if item.number > since and action.lower() in ("", item.action.lower())]
        return found[-limit:]

    def listen(self) -> asyncio.Queue[CallRecord]:
        """A queue of what comes."""
        listener: asyncio.Queue[CallRecord] = asyncio.Queue(maxsize=500)
        self._listeners.add(listener)
        return listener

    def forget(self, listener: asyncio.Queue[CallRecord]) -> None:
        """Stop telling."""
        self._listeners.discard(listener)
