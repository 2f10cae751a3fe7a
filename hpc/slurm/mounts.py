"""How a NAS file system is mounted: version, export and options that each type really serves."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpc.errors import RefusedError
from hpc.slurm.facts import MountFact
from hpc.spec.cluster import ClusterSpec
from hpc.spec.storage import StorageKind

#: `hard`: a server that is away stops writers instead of giving them errors. `noresvport`: a new port after a break, so
#: that the connection comes back (https://help.aliyun.com/zh/nas/user-guide/mount-an-nfs-file-system-on-a-linux-ecs-instance).
_COMMON = "hard,noatime,rsize=1048576,wsize=1048576,timeo=600,retrans=2,noresvport,_netdev"

#: General NAS serves NFSv3 and NFSv4.0; version 4 has locks that hold across nodes. Extreme NAS serves NFSv3 only and
#: no lock manager, so locks on it are local to a node.
_OPTIONS = {
    StorageKind.GENERAL: f"vers=4,minorversion=0,{_COMMON}",
    StorageKind.EXTREME: f"vers=3,nolock,noacl,proto=tcp,{_COMMON}",
}
_EXPORT = {StorageKind.GENERAL: "/", StorageKind.EXTREME: "/share"}


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of fstab.

    Attributes:
        path: mount point.
        source: `server:/export`.
        options: comma separated mount options.
    """

    path: str
    source: str
    options: str

    def shell_line(self) -> str:
        """The mount as three quoted shell words."""
        return " ".join(shlex.quote(part) for part in (self.path, self.source, self.options))


def mounts_of(spec: ClusterSpec, targets: Sequence[MountFact] | Mapping[str, str]) -> tuple[Mount, ...]:
    """The mounts of every node, in the order of the stack file.

    Args:
        spec: the cluster.
        targets: mount targets, or the domain of the mount target by mount point.

    Raises:
        RefusedError: HPC802, a file system has no mount target.
    """
    servers = targets if isinstance(targets, Mapping) else {target.path: target.server for target in targets}
    mounts = []
    for storage in spec.storage:
        server = servers.get(storage.mount)
        if not server:
            raise RefusedError(
                f"file system {storage.mount} has no mount target",
                code="HPC802",
                fix="run `pulumi up` again so that the mount target is made",
            )
        mounts.append(Mount(storage.mount, f"{server}:{_EXPORT[storage.kind]}", _OPTIONS[storage.kind]))
    return tuple(mounts)
