"""Buys one batch: goes through the ways to pay, types and zones, with each call's token written down before it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

from hpc.elastic import budget
from hpc.elastic.ecs import CloudError
from hpc.elastic.failures import Failure
from hpc.elastic.guard import Guard
from hpc.elastic.hostlists import folded
from hpc.elastic.launch import BATCH_LIMIT, Batch, Candidate, batches, candidates
from hpc.elastic.pace import Pace
from hpc.elastic.ports import Provider
from hpc.elastic.reasons import printable, until_recovered
from hpc.elastic.settings import PoolSettings, Settings
from hpc.elastic.state import Purchase, State

log = logging.getLogger(__name__)

#: Calls of RunInstances at once. A rate limit is kept elsewhere; this bounds threads and connections.
PARALLEL_LAUNCHES = 32

#: For how many seconds nodes stay out of use after an error that passes by itself.
_PASSING_HOLD = 30

#: The same after an error that a person may have mended meanwhile.
_DENIED_HOLD = 120

#: Age in s up to which a call that was under way at a crash is repeated; the cloud does not keep tokens for ever.
_TOKEN_AGE = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of buying a batch.

    Attributes:
        ids: of the new instances.
        missing: nodes without one.
        reason: why they are missing.
        hold: for how many seconds they are not worth another try.
    """

    ids: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str = ""
    hold: int = 0


class Buyer:
    """Buys instances. Safe to be used from several threads.

    Args:
        settings: of the cluster.
        cloud: where to buy.
        state: where calls are written down.
        guard: keeps to the caps of the budget.
        clock: the time in UTC.
        sleep: waits; tests pass their own.
    """

    def __init__(
        self,
        settings: Settings,
        cloud: Provider,
        state: State,
        guard: Guard,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings, self._cloud, self._state, self._clock, self._sleep = settings, cloud, state, clock, sleep
        self._guard = guard
        self._pace = Pace(settings.launch_rate)

    def buy(self, pool: PoolSettings, row: Batch, together: int = 0, company: tuple[str, ...] = ()) -> Outcome:
        """Try the ways to buy a batch one after the other.

        Args:
            together: how many nodes, these among them, are of use only together; a call that gets less than it asks for
                is of no use then. 0: each node is of use by itself.
            company: those nodes, where this batch goes ahead of them: the budget has to have room for all.
        """
        left = row.nodes
        ids: list[str] = []
        reason, hold = "every instance type of the pool was sold out a short time ago", self._settings.cooldown
        for candidate in candidates(pool, self._state.cooldowns(self._clock()), self._clock(), max(together, 1)):
            for part in batches(pool.name, left):
                each = budget.load(pool, candidate.type, candidate.charge)
                count, over = self._guard.reserve(company or part.nodes, each, whole=together > 0)
                if not count:
                    reason = f"{Failure.BUDGET.value}: {candidate}: {over}"
                    break
                if short := self._short_of_quota(candidate, len(company)):
                    return Outcome(tuple(ids), left, f"{Failure.QUOTA.value}: {short}", hold)
                asked = part if together else Batch(part.pool, part.nodes[:count])
                got, failure = self._call(pool, asked, candidate, len(asked.nodes) if together else 1)
                if not together:
                    self._guard.release(asked.nodes[len(got) :])
                ids += got
                bought = set(part.nodes[: len(got)])
                left = tuple(node for node in left if node not in bought)
                kind = failure.failure if failure else Failure.STOCK
                if failure is None and len(got) == len(part.nodes):
                    continue
                if failure is None and len(got) == len(asked.nodes):
                    reason = f"{Failure.BUDGET.value}: {candidate}: {over}"
                    break
                reason = f"{kind.value}: {candidate}" + (f": {failure.code}" if failure else "")
                if kind is Failure.STOCK:
                    until = self._clock() + timedelta(seconds=self._settings.cooldown)
                    self._state.cool(candidate.key, max(together, 1), until)
                elif kind is Failure.QUOTA:
                    return Outcome(tuple(ids), left, f"{reason}: ask for a higher quota in Quota Center", hold)
                elif kind is Failure.DENIED:
                    return Outcome(tuple(ids), left, printable(f"{kind.value}: {failure}"), _DENIED_HOLD)
                elif kind is Failure.REFUSED:
                    self._state.stop(pool.name, until_recovered(pool.name, str(failure)))
                    return Outcome(tuple(ids), left, printable(f"{kind.value}: {failure}"), hold)
                elif kind in (Failure.THROTTLED, Failure.PASSING):
                    return Outcome(tuple(ids), left, reason, _PASSING_HOLD)
                break
            if not left:
                return Outcome(tuple(ids), ())
        return Outcome(tuple(ids), left, reason, hold)

    def _short_of_quota(self, candidate: Candidate, count: int) -> str:
        """Why so many nodes are not to be had together, "" where nothing is against it.

        One call tells of a batch by itself; for more it is asked, so that no batches are bought for nothing.
        """
        if count <= BATCH_LIMIT:
            return ""
        try:
            left = self._cloud.quota_left(candidate.charge)
        except CloudError as error:
            log.info("the quota of vCPUs is not known: %s", error)
            return ""
        needed = count * candidate.type.vcpus
        if left is None or needed <= left:
            return ""
        return (
            f"{count} nodes of {candidate} need {needed} vCPUs and the account has {left} left: "
            "ask for a higher quota in Quota Center"
        )

    def _call(
        self, pool: PoolSettings, row: Batch, candidate: Candidate, minimum: int
    ) -> tuple[tuple[str, ...], CloudError | None]:
        """One call, its token written down before it is made."""
        if wait := self._pace.reserve(len(row.nodes), time.monotonic()):
            self._sleep(wait)
        now = self._clock()
        token = row.token(self._state.count("attempt"), candidate)
        self._state.begin(Purchase(token, pool.name, row.nodes, candidate.key, minimum, now))
        try:
            ids = self._cloud.launch(pool, row, candidate, token, minimum, now)
        except CloudError as error:
            # Where there was no answer, instances may have come of it: they are found by their names.
            self._state.end(token)
            log.warning("%s of %s: %s", folded(row.nodes), candidate, error)
            return (), error
        self._launched(row.nodes[: len(ids)])
        self._state.end(token)
        self._state.count("launched", len(ids))
        log.info("launched %d of %s as %s", len(ids), folded(row.nodes), candidate)
        return ids, None

    def _launched(self, nodes: tuple[str, ...]) -> None:
        """The cloud may not show these at once: do not launch them again meanwhile."""
        self._state.wait_for(nodes, self._clock() + timedelta(seconds=self._settings.missing_age))

    def give_up(self, nodes: tuple[str, ...]) -> None:
        """Nodes that belong together are not all to be had: nothing is set aside for them any more."""
        self._guard.release(nodes)

    def repeat_unfinished(self) -> None:
        """Repeat the calls that were under way when the daemon died: the same tokens do not buy twice.

        All at once: nothing is watched before they are known, and each may take as long as a bad minute of the API.
        """
        if unfinished := self._state.unfinished():
            with ThreadPoolExecutor(min(len(unfinished), PARALLEL_LAUNCHES), thread_name_prefix="repeat") as threads:
                for done in [threads.submit(self._repeat, purchase) for purchase in unfinished]:
                    done.result()

    def _repeat(self, purchase: Purchase) -> None:
        pool = self._settings.pools.get(purchase.pool)
        ways = candidates(pool, {}, purchase.at) if pool else ()
        way = next((way for way in ways if way.key == purchase.key), None)
        if pool is not None and way is not None and (self._clock() - purchase.at).total_seconds() < _TOKEN_AGE:
            row = Batch(purchase.pool, purchase.nodes)
            bought = row.nodes
            try:
                # The time of then, since a token is good only for the very same request.
                ids = self._cloud.launch(pool, row, way, purchase.token, purchase.minimum, purchase.at)
                bought = row.nodes[: len(ids)]
                log.info("launch of %s is known again after a restart: %d", folded(row.nodes), len(ids))
            except CloudError as error:
                log.warning("launch of %s before the restart: %s", folded(row.nodes), error)
            self._launched(bought)
        self._state.end(purchase.token)
