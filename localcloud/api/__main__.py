"""Run the local Alibaba Cloud: `python -m localcloud.api --state DIR --port N`."""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import socket
import sys
from pathlib import Path

import uvicorn

from localcloud.api.api_only import ApiOnlyBackend
from localcloud.api.app import make_app
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
    """Writes cloud.json once it serves."""

    record: Record
    state: Path

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.record.write(self.state)
            _log.info("serving at %s", self.record.url)


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
    )
    try:
        web.run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        (state / FILE).unlink(missing_ok=True)
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
