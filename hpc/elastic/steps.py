"""What can be done, as frozen data: `decide` says what, the daemon does it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Launch:
    """Make instances for these nodes of one pool. `job`: they belong together, all or none; None for single ones."""

    pool: str
    nodes: tuple[str, ...]
    job: int | None = None


@dataclass(frozen=True, slots=True)
class Terminate:
    """Delete these instances."""

    instances: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Extend:
    """Push the release time of these instances forward by the pool's `auto_release` from now."""

    pool: str
    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Down:
    """Set these nodes DOWN with a reason: their jobs go back into the queue. They stay so for `hold` seconds."""

    nodes: tuple[str, ...]
    reason: str
    hold: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep these nodes, which are powered down, out of use with a reason until their mark's time is over."""

    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Drain:
    """Let running jobs finish, take no new ones."""

    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class PowerDown:
    """Have Slurm power these nodes down: it forgets the instance and lets them be resumed again."""

    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class PowerUp:
    """Have Slurm power these nodes up: a pool keeps its minimum."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resume:
    """Give these nodes back to the scheduler."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """These nodes of a pool could not start. `alone`: no other node of the pool has come up lately."""

    pool: str
    nodes: tuple[str, ...]
    reason: str
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Started:
    """These nodes of a pool have registered: its failures are forgotten."""

    pool: str
    nodes: tuple[str, ...]


Step = Launch | Terminate | Extend | Down | Hold | Drain | PowerDown | PowerUp | Resume | Failed | Started
