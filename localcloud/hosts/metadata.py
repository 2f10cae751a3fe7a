"""Metadata service of an instance at 100.100.100.200, in normal and in hardened mode.

Items and paths: help page "Instance metadata" of ECS (`/latest/meta-data/...`, version 2016-01-01), user data at
`/latest/user-data`, identity at `/latest/dynamic/instance-identity/document`. Hardened mode: a token from
`PUT /latest/api/token` with `X-aliyun-ecs-metadata-token-ttl-seconds` (1 to 21600 s), then sent as
`X-aliyun-ecs-metadata-token`; instances with `http_tokens=required` get 403 without one. Not offered: the signature of
the identity document (`pkcs7`), which only the real cloud can make.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from localcloud.contracts import Metadata, MetadataSource, RoleCredentials
from localcloud.hosts import addresses
from localcloud.hosts.httpd import Request, Response

VERSIONS = ("2016-01-01", "latest")
_TOKEN = "x-aliyun-ecs-metadata-token"  # noqa: S105  (name of a header)
_TTL = "x-aliyun-ecs-metadata-token-ttl-seconds"
_MAX_TTL_S = 21600
_NOT_FOUND = Response(HTTPStatus.NOT_FOUND, b"404 - Not Found\n")


class Tokens:
    """Metadata tokens: signed, for one instance, good until they expire; they outlive the server."""

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock

    def issue(self, instance_id: str, lifetime_s: int) -> str:
        """A token for the instance."""
        expires = str(int(self._clock()) + lifetime_s)
        return f"{expires}-{self._sign(instance_id, expires)}"

    def valid(self, instance_id: str, token: str) -> bool:
        """Whether the token is one for this instance that has not expired."""
        expires, _, signature = token.partition("-")
        if not hmac.compare_digest(signature.encode(), self._sign(instance_id, expires).encode()):
            return False
        return expires.isdigit() and int(expires) > self._clock()

    def _sign(self, instance_id: str, expires: str) -> str:
        return hmac.new(self._key, f"{instance_id}/{expires}".encode(), hashlib.sha256).hexdigest()


class MetadataService:
    """Answers the instances of one VPC.

    Args:
        vpc_id: the VPC.
        source: tells about instances.
        tokens: makes and checks tokens.
        eip_of: elastic IP address of an instance, or None.
    """

    def __init__(
        self, vpc_id: str, source: MetadataSource, tokens: Tokens, eip_of: Callable[[str], str | None]
    ) -> None:
        self._vpc_id = vpc_id
        self._source = source
        self._tokens = tokens
        self._eip_of = eip_of

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        metadata = self._source.metadata(self._vpc_id, request.client)
        if metadata is None:
            return _NOT_FOUND
        instance_id = metadata.host.instance_id
        parts = [part for part in request.path.split("/") if part]
        if request.method == "PUT":
            return self._issue(instance_id, request) if parts == ["latest", "api", "token"] else _NOT_FOUND
        if request.method not in ("GET", "HEAD"):
            return Response(HTTPStatus.METHOD_NOT_ALLOWED)
        token = request.headers.get(_TOKEN)
        if metadata.token_required if token is None else not self._tokens.valid(instance_id, token):
            return Response(HTTPStatus.FORBIDDEN, b"403 - Forbidden\n")
        if not parts:
            return Response(HTTPStatus.OK, "\n".join(VERSIONS).encode())
        if parts[0] not in VERSIONS:
            return _NOT_FOUND
        credentials = self._credentials(metadata) if "security-credentials" in parts else None
        return _render(look_up(tree(metadata, self._eip_of(instance_id), credentials), parts[1:]))

    def _credentials(self, metadata: Metadata) -> RoleCredentials | None:
        if metadata.ram_role is None:
            return None
        return self._source.role_credentials(metadata.host.instance_id, metadata.ram_role)

    def _issue(self, instance_id: str, request: Request) -> Response:
        lifetime = request.headers.get(_TTL, "")
        if not lifetime.isdigit() or not 1 <= int(lifetime) <= _MAX_TTL_S:
            return Response(HTTPStatus.BAD_REQUEST, b"400 - Bad Request\n")
        return Response(HTTPStatus.OK, self._tokens.issue(instance_id, int(lifetime)).encode())


def tree(metadata: Metadata, eip: str | None, credentials: RoleCredentials | None) -> dict[str, Any]:
    """Everything below a version: folders are mappings, items are text or bytes."""
    host = metadata.host
    interface = {
        "gateway": addresses.gateway(metadata.vswitch_cidr),
        "netmask": _netmask(metadata.vswitch_cidr),
        "primary-ip-address": host.private_ip,
        "private-ipv4s": json.dumps([host.private_ip]),
        "vpc-cidr-block": metadata.vpc_cidr,
        "vpc-id": host.vpc_id,
        "vswitch-cidr-block": metadata.vswitch_cidr,
        "vswitch-id": host.vswitch_id,
    }
    identity = {
        "image-id": host.image_id,
        "instance-id": host.instance_id,
        "instance-type": metadata.instance_type,
        "mac": host.mac,
        "private-ipv4": host.private_ip,
        "region-id": metadata.region_id,
        "vpc-id": host.vpc_id,
        "vswitch-id": host.vswitch_id,
        "zone-id": metadata.zone_id,
    }
    meta: dict[str, Any] = {
        "dns-conf": {"nameservers": addresses.RESOLVER},
        "hostname": host.hostname,
        "image-id": host.image_id,
        "instance": {
            "instance-name": host.hostname,
            "instance-type": metadata.instance_type,
            "spot": {"termination-time": _utc(metadata.spot_termination_time)},
        },
        "instance-id": host.instance_id,
        "mac": host.mac,
        "network": {"interfaces": {"macs": {host.mac: interface}}},
        "network-type": "vpc",
        "private-ipv4": host.private_ip,
        "region-id": metadata.region_id,
        "serial-number": host.instance_id,
        "vpc-cidr-block": metadata.vpc_cidr,
        "vpc-id": host.vpc_id,
        "vswitch-cidr-block": metadata.vswitch_cidr,
        "vswitch-id": host.vswitch_id,
        "zone-id": metadata.zone_id,
    }
    if eip:
        meta["eipv4"] = eip
    if metadata.public_keys:
        meta["public-keys"] = {str(n): {"openssh-key": key} for n, key in enumerate(metadata.public_keys)}
    if metadata.tags:
        meta["tags"] = {"instance": dict(metadata.tags)}
    if metadata.ram_role is not None:
        meta["ram"] = {"security-credentials": {metadata.ram_role: _credentials_document(credentials)}}
    items: dict[str, Any] = {
        "meta-data": meta,
        "dynamic": {"instance-identity": {"document": json.dumps(identity)}},
        "maintenance": {"active-system-events": ""},
    }
    if metadata.user_data:
        items["user-data"] = metadata.user_data
    return items


def look_up(items: Mapping[str, Any], parts: list[str]) -> Any:
    """The item or folder at a path, or None."""
    node: Any = items
    for part in parts:
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = node[part]
    return node


def _render(node: Any) -> Response:
    if node is None:
        return _NOT_FOUND
    if isinstance(node, Mapping):
        lines = [f"{name}/" if isinstance(value, Mapping) else name for name, value in sorted(node.items())]
        return Response(HTTPStatus.OK, "\n".join(lines).encode())
    return Response(HTTPStatus.OK, node if isinstance(node, bytes) else str(node).encode())


def _credentials_document(credentials: RoleCredentials | None) -> str:
    if credentials is None:
        return json.dumps({"Code": "Failed"})
    return json.dumps(
        {
            "AccessKeyId": credentials.access_key_id,
            "AccessKeySecret": credentials.access_key_secret,
            "SecurityToken": credentials.security_token,
            "Expiration": _utc(credentials.expiration),
            "LastUpdated": _utc(datetime.now(UTC)),
            "Code": "Success",
        }
    )


def _utc(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _netmask(cidr: str) -> str:
    length = addresses.prefix_length(cidr)
    mask = (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF
    return ".".join(str(mask >> shift & 0xFF) for shift in (24, 16, 8, 0))
