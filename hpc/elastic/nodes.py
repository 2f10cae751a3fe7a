"""Nodes as Slurm shows them, with predicates that read like its manual (scontrol(1), section "node states")."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"NodeName=(\S+)")
_STATE = re.compile(r"\sState=(\S+)")
#: A reason is free text; who gave it and when follow it in brackets, and some releases write other texts behind it.
_REASON = re.compile(r"\sReason=(.*?)(?:\s\[[^\]\s]+@[^\]\s]+\])?(?:\s(?:Comment|Extra)=.*)?$")


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
        """A job is on it, or still cleaning up, or waits for it."""
        return bool(self.states & {"ALLOCATED", "MIXED", "COMPLETING"})

    @property
    def asked(self) -> bool:
        """Slurm wants it started, or waits for its registration.

        Seen with 22.05: ResumeProgram is called while nodes of the job still are ALLOCATED+POWERED_DOWN.
        """
        soon = self.powered_down and bool(self.states & {"ALLOCATED", "MIXED", "POWER_UP"})
        return (self.powering_up or soon) and not self.powering_down

    @property
    def powering_up(self) -> bool:
        """ResumeProgram was called for it; it has not registered."""
        return "POWERING_UP" in self.states

    @property
    def powering_down(self) -> bool:
        """SuspendProgram was called for it. POWER_DOWN alone is a wish that waits for the end of its jobs."""
        return "POWERING_DOWN" in self.states

    @property
    def power_down_wanted(self) -> bool:
        """It is going to be powered down, or is at it."""
        return bool(self.states & {"POWERING_DOWN", "POWER_DOWN", "POWERED_DOWN"})

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
    def invalid(self) -> bool:
        """It has registered with less than slurm.conf says: slurmctld 22.05 drains it and requeues its job."""
        return "INVALID_REG" in self.states

    @property
    def reserved(self) -> bool:
        """In a user's reservation or maintenance: the daemon starts no change of its own there."""
        return bool(self.states & {"MAINTENANCE", "MAINT", "RESERVED"})

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
    name, state = _NAME.match(line), _STATE.search(line)
    if name is None or state is None:
        return None
    # `IDLE*+CLOUD`: the star and its like are short forms of flags.
    states = frozenset(part.rstrip("*~#!%$@^-") for part in state[1].split("+"))
    reason = _REASON.search(line)
    return Node(name[1], states, reason[1].strip() if reason else "")
