"""One port for HTTP and HTTPS: the first byte of a connection tells which it is."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

_TLS_HANDSHAKE = 0x16
#: How long a connection may say nothing at all, seconds.
_SILENCE = 30.0
#: Connections at once; more wait in the queue of the listening socket.
MAX_CONNECTIONS = 800


class Acceptor:
    """Accepts connections and gives each its protocol, behind TLS where the client starts with a TLS handshake.

    Args:
        listener: listening socket.
        protocol: makes the protocol of a connection.
        context: for TLS.
        connected: how many connections have a protocol already.
    """

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        context: ssl.SSLContext,
        connected: Callable[[], int],
    ) -> None:
        self._listener = listener
        self._protocol = protocol
        self._context = context
        self._connected = connected
        self._greetings: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        while True:
            while len(self._greetings) + self._connected() >= MAX_CONNECTIONS:
                await asyncio.sleep(0.05)
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:  # out of descriptors, or the client went away: others may have more luck
                await asyncio.sleep(0.05)
                continue
            task = asyncio.create_task(self._greet(connection))
            self._greetings.add(task)
            task.add_done_callback(self._greetings.discard)

    async def _greet(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        connection.setblocking(False)
        try:
            first = await asyncio.wait_for(self._peek(connection), _SILENCE)
            if not first:
                connection.close()
                return
            context = self._context if first[0] == _TLS_HANDSHAKE else None
            await loop.connect_accepted_socket(
                self._protocol,
                connection,
                ssl=context,
                ssl_handshake_timeout=15 if context else None,
            )
        except (OSError, TimeoutError):
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    @staticmethod
    async def _peek(connection: socket.socket) -> bytes:
        loop = asyncio.get_running_loop()
        while True:
            try:
                return connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                ready: asyncio.Future[None] = loop.create_future()
                loop.add_reader(connection, _wake, ready)
                try:
                    await ready
                finally:
                    loop.remove_reader(connection)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
