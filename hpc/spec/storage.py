"""Shared storage: NAS file systems that every node mounts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from hpc.spec.base import Form, SpecModel, Whole, ZoneId


class StorageKind(StrEnum):
    """General NAS for homes and software, extreme NAS for I/O-heavy scratch space."""

    GENERAL = "general"
    EXTREME = "extreme"


class StorageType(StrEnum):
    """Storage classes of NAS: the first three are general, the last two extreme."""

    CAPACITY = "capacity"
    PERFORMANCE = "performance"
    PREMIUM = "premium"
    STANDARD = "standard"
    ADVANCE = "advance"


#: Classes that each kind of NAS offers, the default first.
STORAGE_TYPES = {
    StorageKind.GENERAL: (StorageType.PERFORMANCE, StorageType.CAPACITY, StorageType.PREMIUM),
    StorageKind.EXTREME: (StorageType.STANDARD, StorageType.ADVANCE),
}


class StorageSpec(SpecModel):
    """One NAS file system and where it is mounted."""

    mount: Annotated[str, Form(r"^/[A-Za-z0-9._/-]{0,200}$", "an absolute path such as /home")]
    """Folder on every node, for instance `/home`."""

    kind: StorageKind = StorageKind.GENERAL
    """`general` or `extreme`."""

    storage_type: StorageType | None = None
    """Storage class; `performance` for general and `standard` for extreme NAS unless given."""

    capacity_gib: Annotated[Whole, Field(ge=1)] | None = None
    """Capacity in GiB; extreme NAS needs it, general NAS grows by itself."""

    zone: ZoneId | None = None
    """Zone of an extreme NAS; the first zone of the cluster unless given."""

    file_system_id: (
        Annotated[
            str,
            Form(r"^(extreme-)?[a-z0-9]{6,40}$", "the id of a NAS file system such as 31a8e4abcd"),
        ]
        | None
    ) = None
    """Use this file system instead of making one; it is never changed or deleted."""

    encrypted: bool = True
    """Encrypt at rest with a key managed by NAS."""

    retain: bool = True
    """Keep the file system when the cluster is destroyed."""

    expected_gib: Annotated[Whole, Field(ge=0)] | None = None
    """How much general NAS is expected to hold, GiB, for the price estimate; `capacity_gib` for extreme NAS."""

    @property
    def resolved_type(self) -> StorageType:
        """The storage class, default filled in."""
        return self.storage_type or STORAGE_TYPES[self.kind][0]
