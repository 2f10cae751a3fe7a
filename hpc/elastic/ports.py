"""What the daemon needs of its two sides, so that either can be another one in tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from hpc.elastic.instances import Instance
from hpc.elastic.launch import Batch, Candidate
from hpc.elastic.nodes import Node
from hpc.elastic.settings import PoolSettings


class Controller(Protocol):
    """Slurm (see `hpc.elastic.slurm.Slurm`)."""

    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""

    def down(self, nodes: Sequence[str], reason: str) -> None:
        """Set nodes DOWN; their jobs are requeued."""

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Let running jobs finish and take no new ones."""

    def power_down(self, nodes: Sequence[str]) -> None:
        """Power nodes down at once."""

    def power_up(self, nodes: Sequence[str]) -> None:
        """Power nodes up without a job."""

    def resume(self, nodes: Sequence[str]) -> None:
        """Give nodes back to the scheduler."""

    def jobs(self) -> Mapping[int, tuple[str, ...]]:
        """Jobs that wait for their nodes to start -> all of their nodes."""

    def tell(self, jobs: Sequence[int], text: str, later: int = 0) -> None:
        """Tell users on their jobs why they wait, and keep the jobs back for `later` seconds."""


class Provider(Protocol):
    """The cloud (see `hpc.elastic.ecs.Cloud`)."""

    def instances(self) -> tuple[Instance, ...]:
        """All compute instances of the cluster."""

    def launch(
        self, pool: PoolSettings, batch: Batch, candidate: Candidate, token: str, minimum: int, now: datetime
    ) -> tuple[str, ...]:
        """Buy a batch one way; ids of at least `minimum` instances, or CloudError."""

    def quota_left(self, charge: str) -> int | None:
        """vCPUs that the account may still have as `spot` or `payg`; None where the cloud does not say."""

    def console(self, instance_id: str) -> str:
        """What an instance has written to its console."""

    def extend(self, ids: Sequence[str], seconds: int, now: datetime) -> None:
        """Push the release time forward."""

    def delete(self, ids: Iterable[str]) -> None:
        """Release instances."""
