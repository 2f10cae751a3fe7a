"""A connection of a client, with limits on how long it may take to ask and to read."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: From the first byte of a request until its headers are complete, seconds.
HEADER_TIME = 20.0
#: A client that takes none of an answer for this long is dropped, seconds.
READ_TIME = 30.0


class Connection(H11Protocol):
    """uvicorn's protocol, which alone waits for ever for the rest of a request's head and for slow readers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._head: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first byte is there already: the acceptor has looked at it."""
        super().connection_made(transport)
        self._head = self.loop.call_later(HEADER_TIME, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Let the time run while the head of a request is incomplete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
            self._head_is_there()
        elif self._head is None:
            self._head = self.loop.call_later(HEADER_TIME, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._head_is_there()
        self._client_reads()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        if self._reader is None:
            self._reader = self.loop.call_later(READ_TIME, self._give_up)

    def resume_writing(self) -> None:
        """It reads again."""
        self._client_reads()
        super().resume_writing()

    def _give_up(self) -> None:
        self.logger.info("a client was too slow: connection dropped")
        self.transport.abort()

    def _head_is_there(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _client_reads(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None
