"""Control groups of hosts: memory and CPU limits, and the list of every process of a host.

Both layouts are served: one hierarchy per controller (v1, hybrid) and the single hierarchy (v2).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_REMOVE_S = 5.0
_MIB = 1 << 20


def unified() -> bool:
    """Whether this machine has only the single hierarchy (v2)."""
    return (_ROOT / "cgroup.controllers").exists()


def hierarchies() -> tuple[Path, ...]:
    """Roots of the hierarchies of this machine; `cpu` linked to `cpu,cpuacct` counts once."""
    if unified():
        return (_ROOT,)
    if not _ROOT.is_dir():
        return ()
    found = {entry.resolve() for entry in _ROOT.iterdir() if (entry / "cgroup.procs").exists()}
    return tuple(sorted(found))


class HostGroups:
    """The control groups of one host, one in each hierarchy.

    Args:
        parent: name of the group of this local cloud.
        instance_id: the host.
    """

    def __init__(self, parent: str, instance_id: str) -> None:
        self._folders = tuple(root / parent / instance_id for root in hierarchies())

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folder of the host in each hierarchy."""
        return self._folders

    def create(self, *, memory_mib: int, vcpus: int) -> None:
        """Make the groups. Limits bound what the host may take; nothing is reserved for it.

        Args:
            memory_mib: most memory of all its processes together, in MiB.
            vcpus: most CPU time, in CPUs.
        """
        for folder in self._folders:
            _make(folder)
        limits = {
            "memory.limit_in_bytes": str(memory_mib * _MIB),
            "cpu.cfs_period_us": str(_PERIOD_US),
            "cpu.cfs_quota_us": str(_PERIOD_US * vcpus),
        }
        if unified():
            limits = {"memory.max": str(memory_mib * _MIB), "cpu.max": f"{_PERIOD_US * vcpus} {_PERIOD_US}"}
        for folder in self._folders:
            for name, value in limits.items():
                if (folder / name).exists():
                    (folder / name).write_text(value)

    def processes(self) -> tuple[int, ...]:
        """Ids of all processes of the host."""
        pids: set[int] = set()
        for folder in self._folders:
            for file in folder.rglob("cgroup.procs"):
                try:
                    pids.update(int(word) for word in file.read_text().split())
                except OSError:
                    continue  # removed meanwhile
        return tuple(sorted(pids - {os.getpid(), 0}))

    def remove(self) -> None:
        """Remove the groups; the host's processes have been killed before (they may take a moment to go)."""
        deadline = time.monotonic() + _REMOVE_S
        for folder in self._folders:
            while not _remove_tree(folder) and time.monotonic() < deadline:
                time.sleep(0.02)


def remove_parent(parent: str) -> None:
    """Remove the group of a local cloud where it is empty."""
    for root in hierarchies():
        _remove_tree(root / parent)


def children(parent: str) -> tuple[str, ...]:
    """Names of the hosts that have a group."""
    return tuple(sorted({e.name for root in hierarchies() for e in (root / parent).glob("*") if e.is_dir()}))


def _make(folder: Path) -> None:
    for level in (folder.parent, folder):
        level.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # v1: empty at first, and no process may enter an empty cpuset
            file = level / name
            if not unified() and file.exists() and not file.read_text().strip():
                file.write_text((level.parent / name).read_text())
    if unified():
        for level in (folder.parent.parent, folder.parent):
            available = set((level / "cgroup.controllers").read_text().split()) & {"cpu", "memory", "pids"}
            (level / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(available)))


def _remove_tree(folder: Path) -> bool:
    if not folder.is_dir():
        return True
    try:
        for path, _, _ in os.walk(folder, topdown=False):
            Path(path).rmdir()
    except OSError:
        return False
    return True
