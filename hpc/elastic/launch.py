"""How nodes become calls of RunInstances: names in rows, at most 100 a call, types, zones and charges in order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hpc.elastic.settings import InstanceTypeSettings, PoolSettings, ZoneSettings
from hpc.elastic.tags import parse_node_name

#: Most instances of one RunInstances call.
BATCH_LIMIT = 100

#: Longest client token (ASCII characters).
TOKEN_LENGTH = 64

Key = tuple[str, str, str]

#: (type, zone, charge) -> how many were not to be had, and until when so many are not asked for again.
Cooldowns = Mapping[Key, Sequence[tuple[int, datetime]]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to buy a node: a type in a zone, paid as `spot` or `payg`."""

    type: InstanceTypeSettings
    zone: ZoneSettings
    charge: str

    @property
    def key(self) -> Key:
        """What a cool-down is kept for."""
        return (self.type.name, self.zone.zone, self.charge)

    def __str__(self) -> str:
        return f"{self.type.name} {self.charge} in {self.zone.zone}"


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes of one call; their numbers follow each other and have the same count of digits.

    Attributes:
        pool: name of the pool.
        nodes: names in the order in which the instances get them.
    """

    pool: str
    nodes: tuple[str, ...]

    @property
    def name_pattern(self) -> str:
        """Names of the instances as RunInstances counts them up: `mpi-[7,1]`, or the plain name of a single node."""
        first = self.nodes[0]
        if len(self.nodes) == 1:
            return first
        stem, _, number = first.rpartition("-")
        return f"{stem}-[{number},{len(number)}]"

    def token(self, attempt: int, candidate: Candidate) -> str:
        """Client token of a call: the same call of the same attempt always has the same one."""
        text = "|".join((*self.nodes, str(attempt), *candidate.key))
        return f"hpc-{hashlib.sha256(text.encode()).hexdigest()[: TOKEN_LENGTH - 4]}"


def batches(pool: str, nodes: Iterable[str]) -> tuple[Batch, ...]:
    """Nodes of a pool as batches: rows of numbers, at most `BATCH_LIMIT`, cut where the count of digits changes."""
    numbers = sorted(parsed[1] for node in nodes if (parsed := parse_node_name(node)))
    rows: list[list[int]] = []
    for number in numbers:
        row = rows[-1] if rows else None
        fits = row and row[-1] + 1 == number and len(row) < BATCH_LIMIT and len(str(row[0])) == len(str(number))
        if row is not None and fits:
            row.append(number)
        else:
            rows.append([number])
    return tuple(Batch(pool, tuple(f"{pool}-{number}" for number in row)) for row in rows)


def candidates(pool: PoolSettings, cooldowns: Cooldowns, now: datetime, need: int = 1) -> tuple[Candidate, ...]:
    """Ways to buy, in order: the pool's charges, then its types, then its zones; sold-out ones wait.

    Args:
        need: how many nodes are of use only together. Where a thousand were not to be had, two still may be.
    """
    ways = (Candidate(kind, zone, charge) for charge in pool.charges for kind in pool.types for zone in pool.zones)
    return tuple(
        way for way in ways if not any(need >= amount and until > now for amount, until in cooldowns.get(way.key, ()))
    )
