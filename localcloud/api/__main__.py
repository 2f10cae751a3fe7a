"""Run the local Alibaba Cloud: `python -m localcloud.api --state DIR --port N`."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import gc
import logging
import os
import signal
import socket
import ssl
import sys
from pathlib import Path

import uvicorn

from localcloud.api.acceptor import Acceptor
from localcloud.api.api_only import ApiOnlyBackend
from localcloud.api.app import make_app
from localcloud.api.certificate import TRUST, tls_context
from localcloud.api.connection import Connection
from localcloud.api.record import FILE, Record, process_start
from localcloud.api.server import Server
from localcloud.contracts import HostBackend

_log = logging.getLogger("localcloud.api")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="localcloud.api", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="folder of the database and of cloud.json")
    parser.add_argument(
        "--port", type=int, default=0, help="TCP port; 0 (default) keeps the one of last time or takes a free one"
    )
    parser.add_argument("--bind", default="127.0.0.1", help="address to listen on (default: loopback only)")
    parser.add_argument("--region", default="cn-hangzhou", help="region of requests that name none")
    parser.add_argument(
        "--hosts", action=argparse.BooleanOptionalAction, default=False, help="boot instances as real hosts"
    )
    return parser.parse_args()


def _backend(hosts: bool, state: Path, port: int) -> HostBackend:
    if not hosts:
        return ApiOnlyBackend()
    from localcloud.hosts.backend import NspawnBackend

    backend: HostBackend = NspawnBackend(state, api_port=port)
    return backend


def _listen(bind: str, port: int, state: Path) -> socket.socket:
    """A listening socket; without a wish the port of last time, so that clients keep their endpoint over a restart."""
    earlier = Record.read(state)
    wishes = [port] if port else [int(earlier.endpoint.rpartition(":")[2]), 0] if earlier else [0]
    for wish in wishes:
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        # With the protocol named, the event loop turns Nagle's algorithm off; without it every answer waits 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((bind, wish))
        except OSError:
            listener.close()
            if wish == wishes[-1]:
                raise
            continue
        listener.listen(512)
        return listener
    raise AssertionError("unreachable")


class _Uvicorn(uvicorn.Server):
    """Takes connections from our own acceptor and writes cloud.json once it serves."""

    record: Record
    state: Path
    listener: socket.socket
    context: ssl.SSLContext

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start without uvicorn's listeners, then accept."""
        await super().startup([])
        acceptor = Acceptor(self.listener, self._protocol, self.context, lambda: len(self.server_state.connections))
        self._accepting = asyncio.create_task(acceptor.run())
        gc.collect()
        gc.freeze()  # modules and catalog stay for ever: keep them out of every later collection
        self.record.write(self.state)
        _log.info("serving at %s", self.record.url)

    def _protocol(self) -> asyncio.Protocol:
        return Connection(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, then end what is open."""
        self._accepting.cancel()
        self.listener.close()
        await super().shutdown([])


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    args = _arguments()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    os.umask(0o077)
    state: Path = args.state.absolute()
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = (state / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(f"another server runs on {state}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        listener = _listen(args.bind, args.port, state)
    except OSError as error:
        print(f"cannot listen on {args.bind} port {args.port}: {error}", file=sys.stderr)  # noqa: T201
        return 2
    (state / FILE).unlink(missing_ok=True)
    port = listener.getsockname()[1]
    shown = args.bind if args.bind not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    endpoint = f"[{shown}]:{port}" if ":" in shown else f"{shown}:{port}"
    server = Server(state, _backend(args.hosts, state, port), region=args.region, endpoint=endpoint)
    server.begin()
    config = uvicorn.Config(
        make_app(server), log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=3,
        timeout_keep_alive=75, h11_max_incomplete_event_size=64 * 1024,
    )  # fmt: skip
    web = _Uvicorn(config)
    web.state = state
    web.listener = listener
    web.context = tls_context(state, shown)
    web.record = Record(
        url=f"http://{endpoint}",
        endpoint=endpoint,
        pid=os.getpid(),
        started=process_start(os.getpid()) or 0,
        access_key_id=server.access_key_id,
        access_key_secret=server.access_key_secret,
        admin_token=server.admin_token,
        account_id=server.account_id,
        region=args.region,
        hosts=server.cloud.driver.real,
        trust_file=str(state / TRUST),
    )
    # At its end uvicorn raises the signal once more; that must not end the process before the state is closed.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        web.run()
    except KeyboardInterrupt:
        pass
    finally:
        (state / FILE).unlink(missing_ok=True)
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
