"""Nodes as Slurm shows them, with predicates that read like its manual (scontrol(1), section "node states")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIELD = re.compile(r"(?:^|\s)(\w+)=")


@dataclass(frozen=True, slots=True)
class Node:
    """One CLOUD node.

    Attributes:
        name: e.g. `mpi-7`.
        states: base state and flags, e.g. {"IDLE", "CLOUD", "POWERED_DOWN"}.
        reason: why it is down or drained, "" for none.
    """

    name: str
    states: frozenset[str]
    reason: str = ""

    @property
    def busy(self) -> bool:
        """A job is on it, or still cleaning up."""
        return bool(self.states & {"ALLOCATED", "MIXED", "COMPLETING"})

    @property
    def powering_up(self) -> bool:
        """Slurm has asked for it and waits for its registration."""
        return "POWERING_UP" in self.states

    @property
    def powering_down(self) -> bool:
        """Slurm wants it gone."""
        return bool(self.states & {"POWERING_DOWN", "POWER_DOWN"})

    @property
    def powered_down(self) -> bool:
        """Slurm believes that there is no instance."""
        return "POWERED_DOWN" in self.states

    @property
    def down(self) -> bool:
        """Not usable; jobs on it are gone."""
        return "DOWN" in self.states

    @property
    def drained(self) -> bool:
        """Taken out of use by somebody."""
        return bool(self.states & {"DRAIN", "DRAINED", "DRAINING"})

    @property
    def reserved(self) -> bool:
        """In a user's reservation or maintenance, which is never touched."""
        return bool(self.states & {"MAINTENANCE", "MAINT", "RESERVED"})

    @property
    def not_responding(self) -> bool:
        """slurmctld has lost it."""
        return "NOT_RESPONDING" in self.states

    @property
    def up(self) -> bool:
        """It has registered and can work."""
        return not (
            self.powering_up or self.powering_down or self.powered_down or self.down or "UNKNOWN" in self.states
        )


def parse_nodes(text: str) -> tuple[Node, ...]:
    """Read `scontrol show node -o`; lines that are no nodes are passed over."""
    return tuple(node for line in text.splitlines() if (node := _parse(line)) is not None)


def _parse(line: str) -> Node | None:
    if not line.startswith("NodeName="):
        return None
    marks = list(_FIELD.finditer(line))
    fields = {}
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        fields[mark[1]] = line[mark.end() : following.start() if following else None].strip()
    # `IDLE*+CLOUD`: the star is the short form of NOT_RESPONDING.
    written = fields.get("State", "UNKNOWN")
    states = {part.rstrip("*~#!%$@^-") for part in written.split("+")}
    if "*" in written:
        states.add("NOT_RESPONDING")
    reason = re.sub(r"\s*\[[^\]]*\]$", "", fields.get("Reason", ""))
    return Node(fields["NodeName"], frozenset(states), reason)
