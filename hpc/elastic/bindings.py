"""Which node an instance is of: settled when the instance is first seen, whatever its name becomes later.

A tag cannot tell: one call launches up to a hundred instances, all with the same tags. Their names are counted up, so
the name tells at first; people may change it in the console, though, and a busy node must not lose its instance then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hpc.elastic.instances import Instance
from hpc.elastic.state import State
from hpc.elastic.tags import parse_node_name

#: For how long an instance has to be absent before its node is forgotten; longer than any look fails to show one.
_ABSENCE = timedelta(hours=1)


class Bindings:
    """Nodes by the ids of their instances.

    Args:
        state: where they outlive the process.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._nodes = state.bindings()
        self._absent: dict[str, datetime] = {}

    def named(self, instances: Iterable[Instance], now: datetime) -> tuple[Instance, ...]:
        """The instances with the names of their nodes."""
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
        self._absent = {i: self._absent.get(i, now) for i in self._nodes if i not in there}
        gone = [i for i, since in self._absent.items() if now - since > _ABSENCE]
        for instance_id in gone:
            del self._nodes[instance_id]
        if fresh or gone:
            self._state.bind(fresh, gone)
        return tuple(found)
