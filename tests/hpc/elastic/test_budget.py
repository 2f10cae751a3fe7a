"""The caps of the budget: arithmetic, reservations of launches under way, and what users read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc.elastic import budget
from hpc.elastic.budget import Load, Room
from hpc.elastic.guard import Guard
from hpc.elastic.instances import Instance
from hpc.elastic.settings import Settings
from tests.hpc.elastic.settings_for_tests import TYPES, ZONES, all_types, pool, settings
from tests.hpc.elastic.simulation import Cluster

NOW = datetime(2026, 12, 10, 12, tzinfo=UTC)
PAYG = Load(1, 16, Decimal(4))


def capped(**caps: Any) -> Settings:
    return settings(pool(charge="spot-then-payg"), budget=caps)


def instance(number: int = 1, hours: float = 1, **changes: Any) -> Instance:
    made = Instance(
        id=f"i-{number}", name=f"mpi-{number}", pool="mpi", status="Running", created=NOW - timedelta(hours=hours),
        release=None, address=None, type=TYPES[0], zone=ZONES[0], charge="payg",
    )  # fmt: skip
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("limit", "charge", "prices", "hourly"),
    [
        (None, "payg", ("4", "1"), 4),
        (None, "spot", ("4", "1"), 4),  # the market price rises up to pay-as-you-go
        ("2.5", "spot", ("4", "1"), Decimal("2.5")),
        ("9", "spot", ("4", "1"), 4),
        ("2.5", "payg", ("4", "1"), 4),
        (None, "spot", (None, "1"), 1),
        ("3", "spot", (None, None), 3),
        (None, "payg", (None, None), 0),
    ],
)
def test_the_most_a_node_can_cost(limit: Any, charge: str, prices: Any, hourly: Any) -> None:
    kind = {"name": "t", "vcpus": 16, "threads_per_core": None, "payg_price": prices[0], "spot_price": prices[1]}
    mine = settings(pool(spot_price_limit=limit, types=[kind])).pools["mpi"]
    assert budget.load(mine, mine.types[0], charge) == Load(1, 16, Decimal(hourly))


def test_what_runs() -> None:
    there = [instance(1), instance(2, charge="spot"), instance(3, type="gone"), instance(4, pool="old")]
    assert budget.total(budget.loads(there, capped()).values()) == Load(4, 32, Decimal(8))


@pytest.mark.parametrize(
    ("caps", "spent", "count", "told"),
    [
        ({}, 0, None, ""),
        ({"max_nodes": 5}, 0, 3, "budget.max_nodes 5"),
        ({"max_nodes": 1}, 0, 0, "budget.max_nodes 1"),
        ({"max_vcpus": 64}, 0, 2, "budget.max_vcpus 64"),
        ({"max_vcpus": 63}, 0, 1, "budget.max_vcpus 63"),
        ({"max_hourly": "12"}, 0, 1, "budget.max_hourly 12"),
        ({"max_hourly": "11.99"}, 0, 0, "budget.max_hourly"),
        ({"max_hourly": "14", "fixed_hourly": "2.5"}, 0, 0, "budget.max_hourly"),
        ({"expected_monthly": "100"}, "80", 3, "88.00 of budget.expected_monthly 100"),
        ({"expected_monthly": "100"}, "99", 0, "budget.expected_monthly"),
        ({"expected_monthly": "1000", "fixed_hourly": "1"}, "250", 3, "988.00 of budget.expected_monthly"),
        ({"max_nodes": 9, "max_hourly": "16"}, 0, 2, "budget.max_hourly"),
        ({"max_hourly": "1", "currency": "USD"}, 0, None, ""),
    ],
)
def test_room(caps: dict[str, Any], spent: Any, count: int | None, told: str) -> None:
    found = budget.room(capped(**caps), Load(2, 32, Decimal(8)), Decimal(spent), PAYG)
    assert found.count == count and told in found.reason


def test_caps_that_cannot_be_watched_are_named() -> None:
    assert capped(max_hourly="1", currency="USD").unwatched == ("max_hourly",)
    assert capped(max_hourly="1").unwatched == ()


def test_an_unknown_price_leaves_the_caps_on_numbers() -> None:
    free = Load(1, 16)
    assert budget.room(capped(max_hourly="0"), Load(), Decimal(0), free) == Room(None)
    assert budget.room(capped(max_hourly="0", max_nodes=3), Load(), Decimal(0), free).count == 3


def test_spending_is_of_this_month_and_since_the_last_look() -> None:
    mine = capped()
    assert budget.spent([instance(hours=2)], mine, None, NOW) == 8
    assert budget.spent([instance(hours=2)], mine, NOW - timedelta(minutes=15), NOW) == 1
    assert budget.spent([instance(hours=2, charge="spot")], mine, None, NOW) == 2, "the price that is expected"
    assert budget.spent([instance(hours=2, type="gone")], mine, None, NOW) == 0
    first = datetime(2026, 11, 30, 17, tzinfo=UTC)  # 01:00 on the first of December where bills are made
    assert budget.month(first) == "2026-12"
    late = instance(created=first - timedelta(days=9))
    assert budget.spent([late], mine, None, first) == 4
    assert budget.spent([instance(hours=-1)], mine, None, NOW) == 0, "clocks differ"


names = st.integers(1, 30).map(lambda number: f"mpi-{number}")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "release", "look"]),
            st.lists(names, max_size=8, unique=True), st.sampled_from([1, 3, 7]), st.booleans(),
        ),
        max_size=30,
    )
)  # fmt: skip
def test_what_is_set_aside_never_breaks_a_cap(steps: list[tuple[str, list[str], int, bool]]) -> None:
    mine = capped(max_hourly="40")
    held: dict[str, int] = {}
    guard = Guard(mine)
    for what, nodes, price, whole in steps:
        if what == "reserve":
            count, reason = guard.reserve(nodes, Load(1, 16, Decimal(price)), whole=whole)
            assert count in ((0, len(nodes)) if whole else range(len(nodes) + 1))
            assert bool(reason) == (count < len(nodes))
            held = {node: cost for node, cost in held.items() if node not in nodes}
            held |= dict.fromkeys(nodes[:count], price)
        elif what == "release":
            guard.release(nodes)
            held = {node: cost for node, cost in held.items() if node not in nodes}
        else:
            guard.look([], nodes, (), Decimal(0))
            held = {node: cost for node, cost in held.items() if node in nodes}
        assert sum(held.values()) <= 40
    # All that is left can be had, and no more.
    left = 40 - sum(held.values())
    assert guard.reserve([f"x-{n}" for n in range(50)], Load(1, 16, Decimal(1)), whole=False)[0] == min(left, 50)


def test_what_is_seen_is_not_counted_twice() -> None:
    guard = Guard(capped(max_nodes=3))
    assert guard.reserve(["mpi-1", "mpi-2"], PAYG, whole=True) == (2, "")
    guard.look([instance(1)], ["mpi-1", "mpi-2"], (), Decimal(0))
    assert guard.reserve(["mpi-3", "mpi-4"], PAYG, whole=False)[0] == 1


def test_what_a_look_fails_to_show_still_counts() -> None:
    guard = Guard(capped(max_nodes=3))
    guard.look([instance(1), instance(2)], (), (), Decimal(0))
    guard.look([instance(2)], (), ["mpi-1"], Decimal(0))
    guard.look([instance(2)], (), ["mpi-1"], Decimal(0))
    assert guard.reserve(["mpi-3", "mpi-4"], PAYG, whole=False)[0] == 1
    guard.look([instance(2)], ["mpi-3"], (), Decimal(0))
    assert guard.reserve(["mpi-4", "mpi-5"], PAYG, whole=False)[0] == 1, "it is gone"


# The real daemon on a virtual clock.


class Maker:
    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, []

    def __call__(self, *, caps: dict[str, Any], **changes: Any) -> Cluster:
        made = Cluster(settings(pool(**changes), budget=caps), self.folder)
        self.made.append(made)
        return made


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Maker]:
    maker = Maker(tmp_path)
    yield maker
    for made in maker.made:
        made.close()


def test_single_nodes_are_launched_as_far_as_the_hour_allows(cluster: Maker) -> None:
    cfd = cluster(caps={"max_hourly": "20"})
    jobs = [cfd.submit(1, seconds=300) for _ in range(8)]
    cfd.run(60)
    assert len(cfd.cloud.living) == 5
    waiting = [job for job in jobs if job.running_since is None]
    assert len(waiting) == 3
    assert all("waits for nodes: budget" in job.comment and "budget.max_hourly 20" in job.comment for job in waiting)
    assert any("budget.max_hourly" in node.reason for node in cfd.slurm.nodes() if node.down)
    most = 0
    for _ in range(400):
        cfd.run(10)
        most = max(most, len(cfd.cloud.living))
    assert most == 5 and all(job.done for job in jobs), "they run when there is room again"


def test_a_job_that_breaks_a_cap_gets_nothing_and_buys_nothing(cluster: Maker) -> None:
    cfd = cluster(caps={"max_vcpus": 16 * 149})
    job, other = cfd.submit(150), cfd.submit(120)
    cfd.run(60)
    assert sum(count for _, count in cfd.cloud.requests) == 120 and "wasted" not in cfd.state.counters()
    assert not job.running_since and other.running_since
    assert "150 nodes are wanted together, there is room for" in job.comment


def test_two_large_jobs_of_which_one_fits_waste_nothing(cluster: Maker) -> None:
    cfd = cluster(caps={"max_nodes": 700})
    jobs = [cfd.submit(500), cfd.submit(500)]
    cfd.run(60)
    assert sorted(bool(job.running_since) for job in jobs) == [False, True]
    assert cfd.cloud.bought == 500 and "wasted" not in cfd.state.counters()


def test_a_cheaper_way_that_fits_is_taken(cluster: Maker) -> None:
    dear, cheap = all_types()
    cheap = cheap | {"payg_price": "1"}
    cfd = cluster(caps={"max_hourly": "3"}, types=[dear, cheap])
    job = cfd.submit(3)
    cfd.run(60)
    assert job.running_since and {i.type for i in cfd.cloud.living.values()} == {TYPES[1]}


def test_the_month_ends_buying_and_the_next_one_allows_it(cluster: Maker) -> None:
    cfd = cluster(caps={"expected_monthly": "20"}, idle=60)
    first = cfd.submit(4, seconds=3600)
    cfd.run(3900, step=20)
    assert first.done and not cfd.cloud.living
    spent, _ = cfd.state.spending("2026-12")
    assert 16 < spent < 18
    cfd.restart()
    second = cfd.submit(2)
    cfd.run(200, step=20)
    assert not second.nodes and "budget.expected_monthly 20" in second.comment and cfd.cloud.bought == 4
    cfd.clock.now = datetime(2026, 12, 31, 16, 0, tzinfo=UTC)
    cfd.run(1500, step=20)
    assert second.done


def test_a_refused_launch_leaves_its_room_to_others(cluster: Maker) -> None:
    cfd = cluster(caps={"max_nodes": 4}, charge="payg")
    cfd.cloud.stock[TYPES[0], ZONES[0], "payg"] = 2
    large = cfd.submit(4)
    cfd.run(30)
    small = cfd.submit(2)
    cfd.run(60)
    assert not large.running_since and small.running_since
