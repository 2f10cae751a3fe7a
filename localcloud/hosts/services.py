"""What answers inside a VPC's namespace: metadata, resolver, package mirror, NAS, API. Threads of the API server.

They stop with the API server and are bound again when it starts; hosts keep running meanwhile, and their requests are
refused for that time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from localcloud.contracts import MetadataSource, Network
from localcloud.hosts import addresses, filters, routes
from localcloud.hosts.dns import DnsService, Zone
from localcloud.hosts.httpd import HttpService
from localcloud.hosts.metadata import MetadataService, Tokens
from localcloud.hosts.mirror import MirrorService
from localcloud.hosts.nas import FileSystems, NasService
from localcloud.hosts.proxy import ApiProxy


class _Closable(Protocol):
    def close(self) -> None: ...


class Services:
    """Services of all VPCs.

    Args:
        source: answers about instances.
        file_systems: directories of the NAS file systems.
        mirror: the package mirror.
        token_key: key of the metadata tokens.
        process_of: process 1 of an instance's host, or None.
        api_port: port of the API server on 127.0.0.1, or None for no way to it.
    """

    def __init__(
        self,
        source: MetadataSource,
        file_systems: FileSystems,
        mirror: MirrorService,
        token_key: bytes,
        process_of: Callable[[str], int | None],
        api_port: int | None,
    ) -> None:
        self._source = source
        self._file_systems = file_systems
        self._mirror = mirror
        self._tokens = Tokens(token_key)
        self._process_of = process_of
        self._api_port = api_port
        self._network = Network((), (), (), (), (), ())
        self._zones: Mapping[str, Zone] = {}
        self._running: dict[str, list[_Closable]] = {}

    def apply(self, network: Network, namespaces: Mapping[str, str]) -> None:
        """Answer with `network` from now on, in the namespaces given for each VPC id and in no other."""
        self._network = network
        self._zones = {vpc_id: _zone(network, vpc_id) for vpc_id in namespaces}
        for vpc_id in self._running.keys() - namespaces.keys():
            self._stop(vpc_id)
        for vpc_id, namespace in namespaces.items():
            if vpc_id not in self._running:
                self._running[vpc_id] = self._start(vpc_id, namespace)

    def close(self) -> None:
        """Stop all of them."""
        for vpc_id in list(self._running):
            self._stop(vpc_id)

    def _start(self, vpc_id: str, namespace: str) -> list[_Closable]:
        def host_process(address: str) -> int | None:
            found = (h.instance_id for h in self._network.hosts if (h.vpc_id, h.private_ip) == (vpc_id, address))
            instance_id = next(found, None)
            return None if instance_id is None else self._process_of(instance_id)

        metadata = MetadataService(vpc_id, self._source, self._tokens, self._eip_of)
        nas = NasService(vpc_id, lambda: self._network.mount_targets, host_process, self._file_systems)
        services: list[_Closable] = [
            HttpService(namespace, addresses.METADATA, 80, metadata.answer),
            HttpService(namespace, addresses.MIRROR, 80, self._mirror.answer),
            HttpService(namespace, addresses.NAS, 80, nas.answer),
            DnsService(namespace, lambda: self._zones[vpc_id], routes.name_servers),
        ]
        if self._api_port is not None:
            services.append(ApiProxy(namespace, self._api_port))
        return services

    def _stop(self, vpc_id: str) -> None:
        for service in self._running.pop(vpc_id):
            service.close()

    def _eip_of(self, instance_id: str) -> str | None:
        return next((eip.address for eip in self._network.eips if eip.instance_id == instance_id), None)


def token_key(file: Path) -> bytes:
    """Key that signs metadata tokens; made at first and kept, so that tokens outlive the API server."""
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(32))
    return bytes.fromhex(file.read_text())


def _zone(network: Network, vpc_id: str) -> Zone:
    hosts = [host for host in network.hosts if host.vpc_id == vpc_id]
    outside = filters.hosts_outside(network)
    return Zone(
        hosts={host.hostname.lower(): host.private_ip for host in hosts},
        nas_domains=frozenset(target.domain for target in network.mount_targets if target.vpc_id == vpc_id),
        outside=frozenset(host.private_ip for host in hosts if host.instance_id in outside),
    )
