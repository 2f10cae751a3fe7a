"""Why a node does not come, from its console, which tells it where shared storage and Slurm are out of reach."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from datetime import datetime

from hpc.elastic.ecs import CloudError
from hpc.elastic.instances import Instance
from hpc.elastic.memory import Memory
from hpc.elastic.ports import Provider
from hpc.elastic.reasons import printable
from hpc.elastic.settings import Settings

log = logging.getLogger(__name__)

#: Shares of its start time after which the console of a node that has not registered is read.
_MOMENTS = (0.5, 0.7, 0.9)

#: Most consoles of one look, so that a look stays short: nodes that start together fail for the same reason.
_MOST = 5

#: The line with which the scripts of a first boot end when they fail.
_REASON = re.compile(r"\b(HPC9\d\d: [^\r\n]+)")


class Consoles:
    """Reads consoles, each a few times in the life of an instance.

    Args:
        cloud: whose instances they are.
    """

    def __init__(self, cloud: Provider) -> None:
        self._cloud = cloud
        self._read: dict[str, int] = {}
        self._reasons: dict[str, str] = {}

    def look(self, instances: Iterable[Instance], memory: Memory, settings: Settings, now: datetime) -> dict[str, str]:
        """Node -> why it could not start, for nodes that Slurm waits for.

        Args:
            memory: of the look before: since when Slurm has asked for each node.
        """
        waiting = {i.id: i for i in instances if i.name in memory.requested and not memory.stale(i.name, i)}
        self._read = {key: times for key, times in self._read.items() if key in waiting}
        self._reasons = {key: reason for key, reason in self._reasons.items() if key in waiting}
        due = [i for i in waiting.values() if i.id not in self._reasons and self._due(i, memory, settings, now)]
        for instance in due[:_MOST]:
            self._read[instance.id] = self._read.get(instance.id, 0) + 1
            try:
                lines = _REASON.findall(self._cloud.console(instance.id))
            except CloudError as error:
                log.info("console of %s: %s", instance.name, error)
                continue
            if lines:
                self._reasons[instance.id] = printable(lines[-1])
        return {waiting[key].name: reason for key, reason in self._reasons.items()}

    def _due(self, instance: Instance, memory: Memory, settings: Settings, now: datetime) -> bool:
        pool, read = settings.pools.get(instance.pool), self._read.get(instance.id, 0)
        if pool is None or read >= len(_MOMENTS):
            return False
        waited = (now - memory.requested[instance.name]).total_seconds()
        return waited > _MOMENTS[read] * pool.resume_timeout
