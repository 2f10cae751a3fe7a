"""A small HTTP server for the services inside a VPC's namespace: a function from request to response."""

from __future__ import annotations

import http.server
import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcloud.hosts import namespaces

_log = logging.getLogger("localcloud.hosts.httpd")
_MAX_BODY = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked: `path` without query, header names in lower case."""

    client: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """The answer: `body` bytes, or a file's content."""

    status: int
    body: bytes | Path = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Callable[[Request], Response]


class HttpService:
    """Server at one address in one namespace, a thread per connection. Begins to answer at once.

    Args:
        namespace: network namespace.
        address: address to listen at.
        port: port.
        answer: called for each request, from any thread.
    """

    def __init__(self, namespace: str, address: str, port: int, answer: Answer) -> None:
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
        self._server = namespaces.inside(namespace, lambda: _Server((address, port), handler))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name=f"http-{address}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("connection of %s broke off", client_address, exc_info=True)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    answer: Answer

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _MAX_BODY:
            self.close_connection = True
            self._send(Response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
            return
        request = Request(
            client=str(self.client_address[0]),
            method=self.command,
            path=urlsplit(self.path).path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
        )
        try:
            response = type(self).answer(request)
        except Exception:
            _log.exception("%s %s of %s failed", request.method, request.path, request.client)
            response = Response(HTTPStatus.INTERNAL_SERVER_ERROR, b"internal error\n")
        self._send(response)

    do_GET = do_HEAD = do_PUT = do_POST = _handle  # noqa: N815  (names of the base class)

    def _send(self, response: Response) -> None:
        if isinstance(response.body, Path):
            with response.body.open("rb") as file:
                self._head(response, response.body.stat().st_size)
                if self.command != "HEAD":
                    shutil.copyfileobj(file, self.wfile, 1 << 18)
            return
        self._head(response, len(response.body))
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def _head(self, response: Response, length: int) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(length))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def version_string(self) -> str:
        return "localcloud"

    def log_message(self, format: str, *args: Any) -> None:
        """Paths may hold role names and more: nothing is logged per request."""
