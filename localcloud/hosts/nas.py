"""NAS mount targets: who may mount which directory, and the control point that `mount.nfs` in a host asks.

The kernel of a developer's machine often has neither an NFS client nor a server. So the helper in the public image
posts `{source, target, options}` here, and the directory of the file system is attached inside the host. In a host such
a mount shows as a local one in /proc/mounts; sharing, access rules, read-only, umount and fstab work as with NFS. What
NFS does on its own (attribute caching, hard and soft, locks over the wire) is not there.
"""

from __future__ import annotations

import ipaddress
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path, PurePosixPath

from localcloud.contracts import MountTarget
from localcloud.hosts.attach import attach
from localcloud.hosts.httpd import Request, Response


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client gets: the file system, the path in it and whether it may only read."""

    file_system_id: str
    below: str
    read_only: bool


class MountRefusedError(Exception):
    """A mount that is not granted; the message is what mount(8) prints."""


def grant(targets: Iterable[MountTarget], vpc_id: str, client: str, source: str) -> Grant:
    """Decide on a mount.

    Args:
        targets: all mount targets.
        vpc_id: VPC that the client is in.
        client: its address.
        source: what it wants to mount, `domain:/path`.

    Raises:
        MountRefusedError: no such target here, or its access group does not name the client.
    """
    domain, _, path = source.partition(":")
    target = next((t for t in targets if t.domain == domain.lower().rstrip(".") and t.vpc_id == vpc_id), None)
    if target is None:
        raise MountRefusedError(f"Failed to resolve server {domain}: Name or service not known")
    if not _named(client, target.allowed_cidrs):
        raise MountRefusedError(f"access denied by server while mounting {source}")
    wanted, export = PurePosixPath("/", path), PurePosixPath(target.export)
    if ".." in wanted.parts or not wanted.is_relative_to(export):
        raise MountRefusedError(f"mounting {source} failed, reason given by server: No such file or directory")
    below = str(wanted.relative_to(export))
    return Grant(target.file_system_id, "" if below == "." else below, _named(client, target.read_only_cidrs))


class FileSystems:
    """Directories behind the file systems."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def directory(self, file_system_id: str) -> Path:
        """Directory of a file system, made when first asked for."""
        path = self._folder / file_system_id
        if not path.is_dir():
            path.mkdir(exist_ok=True)
            path.chmod(0o755)  # whatever this process's umask
        return path

    def remove(self, file_system_id: str) -> None:
        """Remove a file system with all that is in it."""
        shutil.rmtree(self._folder / file_system_id, ignore_errors=True)


class NasService:
    """Control point for the hosts of one VPC.

    Args:
        vpc_id: the VPC.
        targets: returns the mount targets as they are now.
        process_of: process 1 of the host with this address in this VPC, or None.
        file_systems: the directories.
    """

    def __init__(
        self,
        vpc_id: str,
        targets: Callable[[], tuple[MountTarget, ...]],
        process_of: Callable[[str], int | None],
        file_systems: FileSystems,
    ) -> None:
        self._vpc_id = vpc_id
        self._targets = targets
        self._process_of = process_of
        self._file_systems = file_systems

    def answer(self, request: Request) -> Response:
        """Answer one request of a mount helper; the body of a refusal is for the user's eyes."""
        if request.method != "POST" or request.path != "/mount":
            return Response(HTTPStatus.NOT_FOUND)
        try:
            asked = json.loads(request.body)
            source, target, options = str(asked["source"]), str(asked["target"]), frozenset(map(str, asked["options"]))
        except (ValueError, KeyError, TypeError):
            return Response(HTTPStatus.BAD_REQUEST, b"malformed request\n")
        pid = self._process_of(request.client)
        if pid is None:
            return Response(HTTPStatus.FORBIDDEN, f"access denied by server while mounting {source}\n".encode())
        try:
            granted = grant(self._targets(), self._vpc_id, request.client, source)
            read_only = granted.read_only or "ro" in options
            root = self._file_systems.directory(granted.file_system_id)
            attach(root, granted.below, pid, target, read_only=read_only, options=options)
        except MountRefusedError as error:
            return Response(HTTPStatus.FORBIDDEN, f"{error}\n".encode())
        except FileNotFoundError:
            message = f"mounting {source} failed, reason given by server: No such file or directory\n"
            return Response(HTTPStatus.NOT_FOUND, message.encode())
        except OSError as error:
            return Response(HTTPStatus.CONFLICT, f"{source}: {error.strerror}\n".encode())
        return Response(HTTPStatus.OK)


def _named(client: str, cidrs: Iterable[str]) -> bool:
    address = ipaddress.IPv4Address(client)
    return any(address in ipaddress.IPv4Network(cidr, strict=False) for cidr in cidrs)
