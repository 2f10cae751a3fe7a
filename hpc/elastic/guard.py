"""Keeps launches within the caps of the budget, those under way in several threads too."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from decimal import Decimal

from hpc.elastic import budget
from hpc.elastic.budget import Load
from hpc.elastic.instances import Instance
from hpc.elastic.settings import Settings


class Guard:
    """What runs, and what has been set aside for nodes that are being bought. Safe to be used from several threads.

    Args:
        settings: of the cluster, with its caps.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._shown: dict[str, Load] = {}
        self._reserved: dict[str, Load] = {}
        self._set_aside = self._running = Load()
        self._spent = Decimal(0)

    def look(
        self, instances: Sequence[Instance], pending: Iterable[str], missing: Iterable[str], spent: Decimal
    ) -> None:
        """Take what a look has shown.

        Args:
            pending: nodes that may have been bought and are not shown yet, read before the instances were.
            missing: nodes whose instance was there and is not shown; one missed look does not say that it is gone.
            spent: CNY for nodes in this month.
        """
        shown = budget.loads(instances, self._settings)
        running = budget.total(shown.values())
        with self._lock:
            for node in missing:
                if node not in shown and node not in self._reserved and (load := self._shown.get(node)):
                    self._reserved[node] = load
                    self._set_aside += load
            self._running, self._shown, self._spent = running, shown, spent
            waiting = {*pending, *missing} - shown.keys()
            self._release([node for node in self._reserved if node not in waiting])

    def reserve(self, nodes: Sequence[str], each: Load, *, whole: bool) -> tuple[int, str]:
        """Set aside what nodes take, before they are bought; what was set aside for them before is replaced.

        Args:
            each: one of them.
            whole: all of them or none.

        Returns:
            For how many of them, from the first one on, there is room; and why not for more.
        """
        with self._lock:
            self._release(nodes)
            room = budget.room(self._settings, self._running + self._set_aside, self._spent, each)
            count = len(nodes) if room.count is None else min(room.count, len(nodes))
            reason = room.reason if count < len(nodes) else ""
            if whole and reason:
                return 0, f"{len(nodes)} nodes are wanted together, there is room for {count}: {reason}"
            for node in nodes[:count]:
                self._reserved[node] = each
                self._set_aside += each
            return count, reason

    def release(self, nodes: Iterable[str]) -> None:
        """These are not bought."""
        with self._lock:
            self._release(nodes)

    def _release(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            if (load := self._reserved.pop(node, None)) is not None:
                self._set_aside -= load
