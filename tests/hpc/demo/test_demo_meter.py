"""Price times the time that instances were there."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hpc.demo.meter import Meter


def instance(name: str, price: float, status: str = "Running", **tags: str) -> dict[str, Any]:
    return {
        "id": name,
        "status": status,
        "price_hour": price,
        "tags": {"hpc:" + key: value for key, value in tags.items()},
    }


def test_time_is_counted_from_the_first_look_to_the_last() -> None:
    meter = Meter()
    meter.look([instance("i-1", 2, pool="mpi"), instance("i-2", 1)], 1000)
    meter.look([instance("i-1", 2, pool="mpi"), instance("i-2", 1)], 2800)
    meter.look([instance("i-2", 1)], 4600)
    assert meter.spent(elastic=True) == Decimal(1)
    assert meter.spent(elastic=False) == Decimal(1)


def test_running_nodes_are_those_of_the_last_look() -> None:
    meter = Meter()
    meter.look([instance("i-1", 2, "Pending", pool="mpi"), instance("i-2", 2, pool="mpi"), instance("i-3", 1)], 0)
    assert meter.running_nodes == 1
    meter.look([instance("i-3", 1)], 1)
    assert meter.running_nodes == 0
