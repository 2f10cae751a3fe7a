"""What the instances of a cloud have cost so far, from looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hpc.spec.names import TAG_POOL

_SECONDS_PER_HOUR = 3600


@dataclass(slots=True)
class _Seen:
    price: Decimal
    elastic: bool
    running: bool
    first: float
    last: float


class Meter:
    """Adds up price per hour times the time that each instance was there.

    An instance counts from the first look that shows it to the last one, so the figure is as fine as the looks are
    close. Only instances count: no disks, file systems or traffic.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def look(self, instances: Iterable[Mapping[str, Any]], now: float) -> None:
        """Take in what is there.

        Args:
            instances: as the local cloud lists them: `id`, `status`, `price_hour` (CNY), `tags`.
            now: seconds since 1970.
        """
        for seen in self._seen.values():
            seen.running = False
        for item in instances:
            seen = self._seen.setdefault(
                item["id"], _Seen(Decimal(str(item["price_hour"])), TAG_POOL in item["tags"], False, now, now)
            )
            seen.running = item["status"] == "Running"
            seen.last = now

    @property
    def running_nodes(self) -> int:
        """Elastic nodes that ran at the last look."""
        return sum(seen.elastic and seen.running for seen in self._seen.values())

    def spent(self, *, elastic: bool) -> Decimal:
        """CNY so far: of the elastic nodes, or of the instances that are always there."""
        return sum(
            (
                seen.price * Decimal(str(seen.last - seen.first)) / _SECONDS_PER_HOUR
                for seen in self._seen.values()
                if seen.elastic is elastic
            ),
            Decimal(0),
        )
