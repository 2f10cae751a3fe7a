"""Which node an instance is of: settled when the instance is first seen, whatever its name becomes later.

A tag cannot tell: one call launches up to a hundred instances, all with the same tags. Their names are counted up, so
the name tells at first; people may change it in the console, though, and a busy node must not lose its instance then.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hpc.elastic.instances import Instance
from hpc.elastic.memory import Miss
from hpc.elastic.settings import Settings
from hpc.elastic.state import State
from hpc.elastic.tags import parse_node_name

#: For how long an instance has to be absent before its node is forgotten; longer than any look fails to show one.
_FORGOTTEN = timedelta(hours=1)


class Bindings:
    """Nodes by the ids of their instances. `released` may be called from any thread.

    Args:
        state: where they outlive the process.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._nodes = state.bindings()
        self._absent: dict[str, Miss] = {}
        self._lock = threading.Lock()
        self._released: set[str] = set()

    def named(self, instances: Iterable[Instance], now: datetime) -> tuple[Instance, ...]:
        """The instances of a look with the names of their nodes."""
        found: list[Instance] = []
        fresh: dict[str, str] = {}
        there: set[str] = set()
        for instance in instances:
            there.add(instance.id)
            node = self._nodes.get(instance.id)
            if node is None and parse_node_name(instance.name):
                fresh[instance.id] = instance.name
            found.append(instance if node is None or node == instance.name else replace(instance, name=node))
        self._nodes |= fresh
        before, self._absent = self._absent, {}
        for instance_id in self._nodes.keys() - there:
            miss = before.get(instance_id, Miss(0, now))
            self._absent[instance_id] = Miss(miss.count + 1, miss.since)
        gone = self._gone(there, now)
        for instance_id in gone:
            del self._nodes[instance_id]
            self._absent.pop(instance_id, None)
        if fresh or gone:
            self._state.bind(fresh, gone)
        return tuple(found)

    def unaccounted(self, settings: Settings, now: datetime) -> frozenset[str]:
        """Nodes with an instance that is not shown, was not released, and has not been missed for long enough."""
        return frozenset(
            self._nodes[instance_id]
            for instance_id, miss in self._absent.items()
            if not miss.gone(settings.missing_limit, settings.missing_age, now)
        )

    def released(self, ids: Iterable[str]) -> None:
        """The cloud has accepted that these are deleted: once they are not shown, they are gone."""
        with self._lock:
            self._released.update(ids)

    def _gone(self, there: set[str], now: datetime) -> list[str]:
        with self._lock:
            released = self._released - there
            self._released &= there
        return [
            instance_id
            for instance_id, miss in self._absent.items()
            if instance_id in released or now - miss.since > _FORGOTTEN
        ]
