"""Instances of the cluster as the cloud shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance with the cluster's tag and the role of a compute node.

    Attributes:
        id: `i-...`.
        name: its instance name, which is the name of the node that it was launched for.
        pool: of its tag.
        status: `Pending`, `Starting`, `Running`, `Stopping` or `Stopped`.
        created: when it was launched.
        release: when the cloud releases it by itself, or None.
        address: private address, or None.
        type, zone: what was bought where.
        charge: `spot` or `payg`.
        reclaimed: the cloud has announced that it takes this spot instance back.
    """

    id: str
    name: str
    pool: str
    status: str
    created: datetime
    release: datetime | None
    address: str | None
    type: str
    zone: str
    charge: str
    reclaimed: bool = False
