"""Launches beside the daemon's loop: batches in parallel, and all or none for the nodes of one job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from hpc.elastic.buy import PARALLEL_LAUNCHES, Buyer, Outcome
from hpc.elastic.ecs import CloudError
from hpc.elastic.hostlists import folded
from hpc.elastic.launch import Batch, batches
from hpc.elastic.settings import PoolSettings
from hpc.elastic.state import State

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nodes that were not launched.

    Attributes:
        job: that they were wanted for together, or None for single nodes.
        hold: for how many seconds another try is of no use.
    """

    nodes: tuple[str, ...]
    reason: str
    hold: int
    job: int | None


@dataclass(slots=True)
class _Group:
    """Batches that are worth having only together. The first goes ahead: where nothing is to be had, it shows there."""

    pool: PoolSettings
    rows: tuple[Batch, ...]
    job: int
    waiting: int
    ids: list[str] = field(default_factory=list)
    failed: Outcome | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(node for row in self.rows for node in row.nodes)


class Launcher:
    """Launches in threads. What came of it is seen in the cloud, or taken with `refusals`.

    Args:
        buyer: buys one batch.
        delete: lets go of instances that are of no use.
        state: counters, and what was launched a short time ago.
        wake: called when there is something new.
    """

    def __init__(
        self, buyer: Buyer, delete: Callable[[list[str]], None], state: State, wake: Callable[[], None]
    ) -> None:
        self._buyer, self._delete, self._state, self._wake = buyer, delete, state, wake
        self._threads = ThreadPoolExecutor(PARALLEL_LAUNCHES, thread_name_prefix="launch")
        self._lock = threading.Lock()
        self._under_way: set[str] = set()
        self._refusals: list[Refusal] = []
        self._futures: set[Future[None]] = set()

    def under_way(self) -> frozenset[str]:
        """Nodes whose launch has begun, refused ones too until `done`."""
        with self._lock:
            return frozenset(self._under_way)

    def refusals(self) -> list[Refusal]:
        """What was not launched since the last time; call `done` when Slurm knows."""
        with self._lock:
            found, self._refusals = self._refusals, []
            return found

    def done(self, nodes: tuple[str, ...]) -> None:
        """Nothing is under way for these nodes any more."""
        with self._lock:
            self._under_way.difference_update(nodes)

    def start(self, pool: PoolSettings, nodes: tuple[str, ...], job: int | None) -> None:
        """Begin to launch nodes; for a job all of them or none."""
        rows = batches(pool.name, nodes)
        with self._lock:
            self._under_way.update(nodes)
        if job is not None and len(nodes) > 1:
            # The largest goes ahead: what has no stock for it has none for the job.
            rows = tuple(sorted(rows, key=lambda row: len(row.nodes), reverse=True))
            self._submit(self._together, _Group(pool, rows, job, len(rows)), rows[0])
        else:
            # Small ones first, so that no minute's rate is left a few instances short of a full batch.
            for row in sorted(rows, key=lambda row: len(row.nodes)):
                self._submit(self._single, pool, row)

    def settle(self) -> None:
        """Wait for the launches under way."""
        while futures := set(self._futures):
            wait(futures)
            self._futures -= futures

    def close(self) -> None:
        """Wait for the launches under way and take no more."""
        self._threads.shutdown(wait=True)

    def _submit(self, work: Callable[..., None], *arguments: object) -> None:
        future = self._threads.submit(work, *arguments)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)

    def _single(self, pool: PoolSettings, row: Batch) -> None:
        self._finish(row.nodes, self._outcome(pool, row), None)

    def _outcome(self, pool: PoolSettings, row: Batch, together: int = 0, company: tuple[str, ...] = ()) -> Outcome:
        """Buy; a fault of this program is a refusal too, so that its nodes do not stay under way for ever."""
        try:
            return self._buyer.buy(pool, row, together, company)
        except Exception as error:
            log.exception("launch of %s", folded(row.nodes))
            return Outcome((), row.nodes, f"the elastic daemon failed: {type(error).__name__}", 60)

    def _together(self, group: _Group, row: Batch) -> None:
        company = group.nodes if row is group.rows[0] else ()
        outcome = None if group.failed else self._outcome(group.pool, row, len(group.nodes), company)
        with self._lock:
            group.waiting -= 1
            if outcome is not None:
                group.ids += outcome.ids
                if outcome.missing and group.failed is None:
                    group.failed = outcome
            last = group.waiting == 0 or (row is group.rows[0] and group.failed is not None)
        if row is group.rows[0] and not last:
            for other in group.rows[1:]:
                self._submit(self._together, group, other)
        if last:
            self._close_group(group)

    def _close_group(self, group: _Group) -> None:
        """A job has all of its nodes, or lets go what was bought for nothing: it is counted and reported."""
        if group.failed is None:
            self._finish(group.nodes, Outcome(tuple(group.ids), ()), None)
            return
        if group.ids:
            total = self._state.count("wasted", len(group.ids))
            log.warning("job %s: %d instances were launched for nothing (%d so far)", group.job, len(group.ids), total)
            try:
                self._delete(group.ids)
            except CloudError as error:
                log.warning("they are deleted when their nodes are powered down: %s", error)
        nodes = group.nodes
        self._buyer.give_up(nodes)
        self._state.forget_awaited(nodes)
        self._finish(nodes, Outcome((), nodes, group.failed.reason, group.failed.hold), group.job)

    def _finish(self, nodes: tuple[str, ...], outcome: Outcome, job: int | None) -> None:
        missing = set(outcome.missing)
        with self._lock:
            self._under_way.difference_update(node for node in nodes if node not in missing)
            if missing:
                self._refusals.append(Refusal(outcome.missing, outcome.reason, outcome.hold, job))
        self._wake()
