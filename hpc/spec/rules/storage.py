"""Rules on shared file systems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.rules.context import Context, listed
from hpc.spec.storage import STORAGE_TYPES, StorageKind, StorageSpec

#: Extreme NAS: smallest and largest capacity, GiB (help pages of NAS: limits).
EXTREME_GIB = (100, 256 * 1024)

#: Hosts that one file system serves at once (https://help.aliyun.com/en/nas/product-overview/limits).
MOST_CLIENTS = 1000

_CLOSED = """
/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /proc /root /run /sbin /sys /tmp /usr /var /opt/hpc
/lost+found
"""

#: Folders in which nothing may be mounted, themselves included.
CLOSED = frozenset(_CLOSED.split())

#: Folders that may not be hidden, though mounts below them are fine.
KEPT = frozenset(("/", "/opt"))


def _entries(context: Context) -> list[tuple[str, StorageSpec]]:
    return [(f"storage[{index}]", entry) for index, entry in enumerate(context.spec.storage)]


def storage_there(context: Context) -> Iterator[Finding]:
    """HPC401, HPC402, HPC501: there is a place for homes, software and the controllers' state."""
    spec = context.spec
    if not spec.storage:
        yield finding("HPC401", "storage", None, "the cluster has no shared storage")
    elif not any(entry.kind is StorageKind.GENERAL for entry in spec.storage):
        yield finding("HPC402", "storage", None, "none of the file systems is a general NAS")
    else:
        return
    if spec.management.backup:
        yield finding(
            "HPC501", "management.backup", True, "the controllers have no general NAS to share their state on"
        )


def _normal(mount: str) -> str:
    """The path without doubled slashes, dots and a slash at the end; `..` is followed."""
    parts: list[str] = []
    for part in PurePosixPath(mount).parts[1:]:
        if part == "..":
            del parts[-1:]
        else:
            parts.append(part)
    return "/" + "/".join(parts)


def mount_form(context: Context) -> Iterator[Finding]:
    """HPC406: mount points are in their normal form."""
    for path, entry in _entries(context):
        if entry.mount != _normal(entry.mount):
            text = f"{entry.mount} is another way to write {_normal(entry.mount)}"
            yield finding("HPC406", f"{path}.mount", entry.mount, text, f"write {_normal(entry.mount)}")


def mounts_apart(context: Context) -> Iterator[Finding]:
    """HPC403, HPC404: mount points are different folders, none inside another."""
    entries = _entries(context)
    for index, (path, entry) in enumerate(entries):
        mine = PurePosixPath(_normal(entry.mount))
        for _, other in entries[:index]:
            theirs = PurePosixPath(_normal(other.mount))
            if mine == theirs:
                yield finding("HPC403", f"{path}.mount", entry.mount, f"{mine} is a mount point already")
            elif mine.is_relative_to(theirs) or theirs.is_relative_to(mine):
                outer, inner = sorted((mine, theirs), key=lambda mount: len(mount.parts))
                text = f"{inner} is inside {outer}"
                yield finding("HPC404", f"{path}.mount", entry.mount, text)


def system_folders(context: Context) -> Iterator[Finding]:
    """HPC405: mount points hide nothing that nodes need."""
    for path, entry in _entries(context):
        mount = PurePosixPath(_normal(entry.mount))
        closed = next((folder for folder in CLOSED if mount.is_relative_to(folder)), None)
        if closed or str(mount) in KEPT:
            yield finding("HPC405", f"{path}.mount", entry.mount, f"{mount} belongs to the system ({closed or mount})")


def storage_class(context: Context) -> Iterator[Finding]:
    """HPC407: the storage class is one of the kind."""
    for path, entry in _entries(context):
        if entry.storage_type is not None and entry.storage_type not in STORAGE_TYPES[entry.kind]:
            offered = listed(list(STORAGE_TYPES[entry.kind]))
            text = f"{entry.kind} NAS has no class {entry.storage_type}"
            yield finding("HPC407", f"{path}.storage_type", str(entry.storage_type), text, f"use one of: {offered}")


def capacity(context: Context) -> Iterator[Finding]:
    """HPC408, HPC409, HPC410, HPC418: extreme NAS has a capacity, general NAS has none."""
    for path, entry in _entries(context):
        where = f"{path}.capacity_gib"
        if entry.kind is StorageKind.GENERAL or entry.file_system_id:
            if entry.capacity_gib is not None:
                yield finding("HPC410", where, entry.capacity_gib, f"the capacity of {entry.mount} is not chosen here")
        elif entry.capacity_gib is None:
            yield finding("HPC408", where, None, f"the extreme NAS of {entry.mount} has no capacity")
        elif not EXTREME_GIB[0] <= entry.capacity_gib <= EXTREME_GIB[1]:
            text = f"{entry.capacity_gib} GiB is not between {EXTREME_GIB[0]} and {EXTREME_GIB[1]} GiB"
            yield finding("HPC409", where, entry.capacity_gib, text)
        if entry.kind is StorageKind.EXTREME and entry.expected_gib is not None:
            text = f"{entry.mount} is extreme NAS, whose price follows from its capacity"
            yield finding("HPC418", f"{path}.expected_gib", entry.expected_gib, text)


def storage_zone(context: Context) -> Iterator[Finding]:
    """HPC411, HPC416: the zone of a file system has a vSwitch and is known."""
    for path, entry in _entries(context):
        if entry.zone is not None and entry.zone not in context.spec.zones:
            text = f"{entry.zone} is not among the cluster's zones"
            yield finding("HPC411", f"{path}.zone", entry.zone, text)
        elif entry.zone is None and entry.file_system_id and entry.kind is StorageKind.EXTREME:
            text = f"the zone of {entry.file_system_id} could not be verified; {context.spec.zones[0]} is taken"
            yield finding("HPC416", f"{path}.file_system_id", entry.file_system_id, text)


def existing_file_systems(context: Context) -> Iterator[Finding]:
    """HPC413, HPC415: existing file systems are mounted once and are of the kind that is said."""
    seen: set[str] = set()
    for path, entry in _entries(context):
        name = entry.file_system_id
        if name is None:
            continue
        where = f"{path}.file_system_id"
        if name in seen:
            yield finding("HPC413", where, name, f"{name} has another mount point already")
        seen.add(name)
        if name.startswith("extreme-") != (entry.kind is StorageKind.EXTREME):
            yield finding("HPC415", where, name, f"{name} is not the id of a {entry.kind} NAS")


def clients(context: Context) -> Iterator[Finding]:
    """HPC414: NAS serves as many hosts as there may be."""
    spec = context.spec
    long_lived = sum(count for _, _, count in context.long_lived)
    nodes = sum(pool.max for pool in spec.pools)
    if spec.storage and nodes + long_lived > MOST_CLIENTS:
        text = (
            f"{nodes + long_lived} hosts may mount each file system ({nodes} compute, {long_lived} others), "
            f"which serves {MOST_CLIENTS}"
        )
        yield finding("HPC414", "storage", None, text)


RULES = (
    storage_there,
    mount_form,
    mounts_apart,
    system_folders,
    storage_class,
    capacity,
    storage_zone,
    existing_file_systems,
    clients,
)
