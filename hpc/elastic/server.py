"""The daemon's Unix socket: takes messages of Slurm's programs in a thread of its own."""

from __future__ import annotations

import json
import logging
import os
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpc.elastic.wire import LIMIT, SOCKET

log = logging.getLogger(__name__)

Handler = Callable[[dict[str, object]], None]


class _Listener(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128
    handle_message: Handler


class _Request(socketserver.StreamRequestHandler):
    timeout = 10
    server: Any

    def handle(self) -> None:
        """Answer one message; a wrong one gets an error and hurts nobody."""
        try:
            raw = self.rfile.read(LIMIT + 1)
            if len(raw) > LIMIT:
                raise ValueError("the message is too long")
            message = json.loads(raw)
            if not isinstance(message, dict):
                raise ValueError("the message is not an object")
            self.server.handle_message(message)
            answer: dict[str, object] = {"ok": True}
        except (ValueError, RecursionError, OSError) as error:
            answer = {"ok": False, "error": str(error)[:500]}
        except Exception as error:
            log.exception("a message could not be taken")
            answer = {"ok": False, "error": type(error).__name__}
        try:
            self.wfile.write(json.dumps(answer).encode())
        except OSError as error:
            log.info("nobody waits for the answer: %s", error)


class Server:
    """Listens while the `with` block runs.

    Args:
        handler: takes a message, raises ValueError where it makes no sense.
        path: of the socket.
    """

    def __init__(self, handler: Handler, path: str = SOCKET) -> None:
        self._path = Path(path)
        self._handler = handler

    def __enter__(self) -> Server:
        self._path.unlink(missing_ok=True)
        self._listener = _Listener(str(self._path), _Request)
        self._listener.handle_message = self._handler
        os.chmod(self._path, 0o600)  # noqa: PTH101
        self._thread = threading.Thread(target=self._listener.serve_forever, name="socket", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._path.unlink(missing_ok=True)
