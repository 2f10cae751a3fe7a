"""Resolver of a VPC at 100.100.2.136: the cloud's own names, and the outside only for hosts that reach it.

| name | answer |
|---|---|
| host name (one label) of a host of the VPC, and the reverse name of its address | the host |
| `mirrors.cloud.aliyuncs.com`, `mirrors.aliyun.com` | package mirror |
| domain of a NAS mount target of the VPC | NAS |
| `ecs.<region>.aliyuncs.com`, `ecs-<region>...`, `ecs-vpc.<region>...`, `ecs.aliyuncs.com`; `vpc`, ... likewise | API |
| other names below `aliyuncs.com` | does not exist |
| anything else | this machine's resolver for hosts with NAT or an elastic IP address, else refused |
"""

# dnslib has no types.
# mypy: disallow-untyped-calls=False, warn-return-any=False

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dnslib import PTR, QTYPE, RCODE, RR, A, DNSRecord
from dnslib.server import BaseResolver, DNSLogger, DNSServer

from localcloud.hosts import addresses, namespaces

_log = logging.getLogger("localcloud.hosts.dns")

_MIRRORS = frozenset({"mirrors.cloud.aliyuncs.com", "mirrors.aliyun.com"})
_API = re.compile(
    r"(ecs|vpc|nas|ram|sts|ess|slb|cms|tag|resourcemanager|business|location(-readonly)?)(-vpc)?([.-][a-z0-9-]+)?\.aliyuncs\.com"
)
_TTL_S = 5
_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Zone:
    """Names of a VPC.

    Attributes:
        hosts: address of each host name, lower case.
        nas_domains: domains of the mount targets.
        outside: addresses of the hosts that may ask for other names.
    """

    hosts: Mapping[str, str]
    nas_domains: frozenset[str]
    outside: frozenset[str]


def address_of(name: str, zone: Zone) -> str | None:
    """Address of one of the cloud's own names, or None."""
    if name in zone.hosts:
        return zone.hosts[name]
    if name in _MIRRORS:
        return addresses.MIRROR
    if name in zone.nas_domains:
        return addresses.NAS
    return addresses.API if _API.fullmatch(name) else None


def host_at(reverse_name: str, zone: Zone) -> str | None:
    """Host name for a name below in-addr.arpa, or None."""
    labels = reverse_name.removesuffix(".in-addr.arpa").split(".")
    address = ".".join(reversed(labels))
    return next((name for name, value in zone.hosts.items() if value == address), None)


class DnsService:
    """The resolver of one VPC, over UDP and TCP.

    Args:
        namespace: network namespace of the VPC.
        zone: returns the names as they are now.
        name_servers: returns this machine's resolvers.
    """

    def __init__(self, namespace: str, zone: Callable[[], Zone], name_servers: Callable[[], tuple[str, ...]]) -> None:
        resolver = _Resolver(zone, name_servers)
        logger = DNSLogger(logf=_log.debug)

        def listen() -> list[Any]:
            return [
                DNSServer(resolver, address=addresses.RESOLVER, port=53, tcp=tcp, logger=logger)
                for tcp in (False, True)
            ]

        self._servers = namespaces.inside(namespace, listen)
        for server in self._servers:
            server.server.daemon_threads = True
            server.start_thread()

    def close(self) -> None:
        """Stop answering."""
        for server in self._servers:
            server.stop()
            server.server.server_close()


class _Resolver(BaseResolver):
    def __init__(self, zone: Callable[[], Zone], name_servers: Callable[[], tuple[str, ...]]) -> None:
        self._zone = zone
        self._name_servers = name_servers

    def resolve(self, request: DNSRecord, handler: Any) -> DNSRecord:
        """Answer one question (called by dnslib)."""
        zone = self._zone()
        name = str(request.q.qname).rstrip(".").lower()
        reply = request.reply()
        if name.endswith(".in-addr.arpa") and (host := host_at(name, zone)):
            reply.add_answer(RR(request.q.qname, QTYPE.PTR, ttl=_TTL_S, rdata=PTR(host)))
            return reply
        address = address_of(name, zone)
        if address is not None:
            if request.q.qtype in (QTYPE.A, QTYPE.ANY):
                reply.add_answer(RR(request.q.qname, QTYPE.A, ttl=_TTL_S, rdata=A(address)))
            return reply
        if "." not in name or name.endswith((".aliyuncs.com", ".in-addr.arpa")):
            reply.header.rcode = RCODE.NXDOMAIN
            return reply
        if handler.client_address[0] in zone.outside:
            answer = self._ask_machine(request.pack())
            if answer is not None:
                return DNSRecord.parse(answer)
            reply.header.rcode = RCODE.SERVFAIL
            return reply
        # NXDOMAIN and not REFUSED: programs give up at once instead of trying the same resolver again.
        reply.header.rcode = RCODE.NXDOMAIN
        return reply

    def _ask_machine(self, question: bytes) -> bytes | None:
        for server in self._name_servers():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
                out.settimeout(_TIMEOUT_S)
                try:
                    out.sendto(question, (server, 53))
                    return out.recv(65535)
                except OSError:
                    continue
        return None
