"""The cloud's API as hosts reach it: one address in the VPC, passed on to the API server's port.

Hosts resolve `ecs.<region>.aliyuncs.com` and its like to this address (see `dns`). Ports 80 and 443 lead to the same
port, which tells HTTP from TLS by itself; hosts do not trust the local cloud's certificate, so the SDKs on them are set
to plain HTTP.
"""

from __future__ import annotations

import logging
import select
import socket
import socketserver
import threading
from typing import Any

from localcloud.hosts import addresses, namespaces

_log = logging.getLogger("localcloud.hosts.proxy")
_CHUNK = 1 << 16
_IDLE_S = 300.0


class ApiProxy:
    """Passes connections of one VPC's hosts to 127.0.0.1 of this machine.

    Args:
        namespace: network namespace of the VPC.
        api_port: port of the API server on 127.0.0.1.
    """

    def __init__(self, namespace: str, api_port: int) -> None:
        handler = type("Pass", (_Pass,), {"api_port": api_port})
        self._servers = namespaces.inside(
            namespace, lambda: [_Server((addresses.API, port), handler) for port in (80, 443)]
        )
        for server in self._servers:
            threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="api-proxy", daemon=True
            ).start()

    def close(self) -> None:
        """Accept no more connections."""
        for server in self._servers:
            server.shutdown()
            server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("connection of %s broke off", client_address, exc_info=True)


class _Pass(socketserver.BaseRequestHandler):
    api_port: int

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.api_port), timeout=10) as server:
            ways = {self.request: server, server: self.request}
            while ways:
                ready, _, _ = select.select(list(ways), [], [], _IDLE_S)
                if not ready:
                    return
                for source in ready:
                    data = source.recv(_CHUNK)
                    if data:
                        ways[source].sendall(data)
                    else:
                        ways.pop(source).shutdown(socket.SHUT_WR)
