"""Start the stand-in providers, write their ports as JSON to standard output, and serve until standard input ends.

    python -m localcloud.providers [alicloud] [command]

The engine attaches to them with `PULUMI_DEBUG_PROVIDERS=alicloud:PORT,command:PORT`.
"""

from __future__ import annotations

import json
import sys
from concurrent import futures

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from localcloud.providers.alicloud import Alicloud
from localcloud.providers.command.provider import Command
from localcloud.providers.servicer import Provider, Servicer

#: Resource operations that may run at once; the engine's own default parallelism is four times the CPUs.
WORKERS = 32

#: Largest message, bytes: the engine's own limit.
_MESSAGE_LIMIT = 400 * 1024 * 1024


def serve(provider: Provider) -> tuple[grpc.Server, int]:
    """Start one provider on a free loopback port; the server and the port."""
    server = grpc.server(
        futures.ThreadPoolExecutor(WORKERS),
        options=[
            ("grpc.max_receive_message_length", _MESSAGE_LIMIT),
            ("grpc.max_send_message_length", _MESSAGE_LIMIT),
        ],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(provider), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def main() -> None:
    """Serve what the arguments name, both where there are none."""
    kinds: dict[str, type[Provider]] = {"alicloud": Alicloud, "command": Command}
    wanted = sys.argv[1:] or list(kinds)
    servers = {name: serve(kinds[name]()) for name in wanted}
    sys.stdout.write(json.dumps({name: port for name, (_, port) in servers.items()}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()  # ends when whoever started this goes away
    for server, _ in servers.values():
        server.stop(grace=2).wait()


main()
