"""What the daemon shares with the rest of the program only by agreement: names, tags, pools.json, and reasons."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hpc.catalog import load_catalog
from hpc.elastic import tags
from hpc.elastic.launch import BATCH_LIMIT, Candidate, batches, candidates
from hpc.elastic.nodefiles import forget, reported
from hpc.elastic.nodes import parse_nodes
from hpc.elastic.pace import Pace
from hpc.elastic.reasons import printable
from hpc.elastic.settings import load, parse
from hpc.elastic.state import Purchase, State
from hpc.elastic.tables import SettingsError
from hpc.slurm.pools import elastic_settings
from hpc.spec import names
from tests.hpc.elastic.settings_for_tests import all_types, all_zones, pool, settings
from tests.hpc.slurm.conftest import load_stack
from tests.hpc.slurm.test_bundle import facts_of

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_tags_are_those_of_the_spec() -> None:
    assert (tags.TAG_CLUSTER, tags.TAG_ROLE, tags.TAG_POOL) == (names.TAG_CLUSTER, names.TAG_ROLE, names.TAG_POOL)


@given(st.text("abcz-0129\n", max_size=30))
@example("a-1\n")
def test_node_names_are_those_of_the_spec(name: str) -> None:
    assert tags.parse_node_name(name) == names.parse_node_name(name)


@given(st.from_regex(r"[a-z](?:[a-z0-9-]{0,22}[a-z0-9])?", fullmatch=True), st.integers(1, 99999))
def test_names_parse_back(name: str, number: int) -> None:
    assert tags.parse_node_name(names.node_name(name, number)) == (name, number)


@given(st.sets(st.integers(1, 1500), max_size=400))
def test_batches_hold_every_node_once_in_rows(numbers: set[int]) -> None:
    rows = batches("c-1", [f"c-1-{n}" for n in numbers])
    assert sorted(node for row in rows for node in row.nodes) == sorted(f"c-1-{n}" for n in numbers)
    for row in rows:
        found = [int(node.rpartition("-")[2]) for node in row.nodes]
        assert len(found) <= BATCH_LIMIT and len({len(str(n)) for n in found}) == 1
        assert found == list(range(found[0], found[0] + len(found)))


def test_name_patterns() -> None:
    assert [row.name_pattern for row in batches("mpi", [f"mpi-{n}" for n in (9, 10, 11, 100)])] == [
        "mpi-9", "mpi-[10,2]", "mpi-100",
    ]  # fmt: skip


def test_tokens_differ_by_attempt_and_way_and_are_short_enough() -> None:
    mine = settings(pool(charge="spot-then-payg", types=all_types(), zones=all_zones())).pools["mpi"]
    (row,) = batches("mpi", ["mpi-1"])
    made = [row.token(attempt, way) for attempt in (1, 2) for way in candidates(mine, {}, NOW)]
    assert len(set(made)) == 16 and all(len(token) <= 64 and token.isascii() for token in made)


def test_cool_downs_are_for_so_many_or_more() -> None:
    mine = settings(pool()).pools["mpi"]
    cold = {Candidate(mine.types[0], mine.zones[0], "payg").key: [(100, NOW + timedelta(seconds=1))]}
    assert [bool(candidates(mine, cold, NOW, need)) for need in (1, 99, 100, 1000)] == [True, True, False, False]
    assert candidates(mine, cold, NOW + timedelta(seconds=1), 1000)


LINES = """\
NodeName=mpi-1 CoresPerSocket=1 NodeAddr=mpi-1 RealMemory=1 State=IDLE+CLOUD+POWERED_DOWN ThreadsPerCore=1 BootTime=None
NodeName=mpi-2 State=ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP ThreadsPerCore=1
NodeName=mpi-3 Arch=x86_64 OS=Linux 5.10 #1 SMP State=IDLE*+CLOUD ThreadsPerCore=1 Reason=Not responding [slurm@2026-12-01T11:00:00]
NodeName=mpi-4 State=DOWN+CLOUD+POWERED_DOWN X=1 Reason=hpc: no stock: a=b in [zone] [root@2026-12-01T11:25:40] Comment=State=IDLE
NodeName=mpi-5 State=IDLE+CLOUD+DRAIN Reason=x [see ticket]
slurm_load_node error: nothing
"""  # noqa: E501


def test_nodes_as_scontrol_writes_them() -> None:
    one, two, three, four, five = parse_nodes(LINES)
    assert one.powered_down and not one.asked and not one.up
    assert two.asked and two.powering_up and two.busy and not two.up
    assert three.up and three.reason == "Not responding" and "IDLE" in three.states
    assert four.down and four.powered_down and four.reason == "hpc: no stock: a=b in [zone]"
    assert five.drained and five.reason == "x [see ticket]"
    assert parse_nodes("No nodes in the system\n") == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"charge": "free"}, "pool mpi: charge must be one of spot, payg, spot-then-payg, not 'free'"),
        ({"types": []}, "pool mpi: types must be a list with at least one entry"),
        ({"zones": {}}, "pool mpi: zones must be a list"),
        ({"zones": ["x"]}, "pool mpi: zone 1 must be an object, not 'x'"),
        ({"types": [{"name": "t", "vcpus": 0}]}, "pool mpi: type 1: vcpus must be a whole number of at least 1, not 0"),
        ({"types": [{"name": "t", "vcpus": 1, "payg_price": "-1"}]}, "payg_price must be an amount of money"),
        ({"types": [{"name": "t", "vcpus": 1, "spot_price": "NaN"}]}, "spot_price must be an amount of money"),
        ({"min": "x"}, "pool mpi: min must be a whole number of at least 0, not 'x'"),
        ({"min": None}, "pool mpi: min must be a whole number"),
        ({"min": True}, "pool mpi: min must be a whole number"),
        ({"min": 7, "max": 6}, "pool mpi: min must be at most max, which is 6, not 7"),
        ({"spot_price_limit": "cheap"}, "pool mpi: spot_price_limit must be an amount of money, not 'cheap'"),
        ({"traffic_mode": "fast"}, "traffic_mode must be one of HighPerformance, Standard"),
        ({"launch_template_id": ""}, "launch_template_id must be a text"),
        ({"tags": {"a": 1}}, "tags must be an object of texts"),
        ({"name": 7}, "pool 1: name must be a text"),
    ],
)
def test_wrong_settings_are_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        settings(pool(**change))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"tuning": {"poll": 0}}, "tuning: poll must be a number of at least 0.1, not 0"),
        ({"tuning": {"cooldown": 1.5}}, "tuning: cooldown must be a whole number"),
        ({"budget": {"max_nodes": -1}}, "budget: max_nodes must be a whole number of at least 0"),
        ({"budget": {"max_hourly": []}}, "budget: max_hourly must be an amount of money"),
    ],
)
def test_wrong_settings_beside_the_pools_are_told(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        settings(**parts)


def test_two_pools_of_one_name_are_told() -> None:
    with pytest.raises(SettingsError, match="two pools of the name mpi"):
        settings(pool(), pool())


def test_settings_that_are_missing_are_told(tmp_path: Path) -> None:
    entry = pool()
    del entry["zones"]
    with pytest.raises(SettingsError, match="pool mpi has no zones"):
        settings(entry)
    for text in ("", "[]", "{}", '{"pools": 7}', "7", "null", '{"pools": [null]}', "[" * 10**5):
        with pytest.raises(SettingsError):
            parse(text)
    with pytest.raises(SettingsError, match="cannot be read"):
        load(tmp_path / "nothing")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="cannot be read"):
        load(tmp_path / "binary")


def test_money_keeps_its_value() -> None:
    assert settings(pool(spot_price_limit="0.1")).pools["mpi"].spot_price_limit == Decimal("0.1")


def test_reasons_are_one_printable_line() -> None:
    assert printable("\n  HPC904: `x` \x1b[1m\x00'quoted'\nsecond") == "HPC904: x [1mquoted"
    assert len(printable("x" * 10_000)) == 200
    assert printable("\n\n") == ""


def test_reports_of_strangers_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "mpi-1.failed").write_bytes(b"\xff\xfe")
    (tmp_path / "mpi-2.failed").write_text("")
    (tmp_path / "-rf.failed").write_text("x")
    (tmp_path / "mpi-3.failed").mkdir()
    assert set(reported(tmp_path)) <= {"mpi-1", "mpi-2"}
    assert reported(None) == {} and reported(tmp_path / "nothing") == {}
    forget(tmp_path, ["mpi-1", "mpi-9"])
    assert not (tmp_path / "mpi-1.failed").exists()


def test_pace_keeps_to_the_rate_in_every_window() -> None:
    pace, at = Pace(500, window=60), []
    for _ in range(40):
        at.append(pace.reserve(100, 0.0))
    assert at[:5] == [0.0] * 5 and at[5:10] == [60.0] * 5 and at[-1] == 420.0
    assert pace.reserve(100, 1000.0) == 0.0


def test_pace_uses_what_is_left() -> None:
    pace = Pace(500, window=60)
    assert pace.reserve(450, 0.0) == 0 and pace.reserve(50, 10.0) == 0
    assert pace.reserve(50, 20.0) == 40.0 and pace.reserve(400, 20.0) == 40.0 and pace.reserve(50, 20.0) == 50.0


def test_state_outlives_its_process(tmp_path: Path) -> None:
    state = State(tmp_path / "s")
    key = ("t", "z", "spot")
    state.begin(Purchase("token", "mpi", ("mpi-1", "mpi-2"), key, 2, NOW))
    state.mark(["mpi-3"], "why", NOW)
    state.cool(key, 10, NOW + timedelta(seconds=9))
    state.wait_for(["mpi-4"], NOW + timedelta(seconds=9))
    state.stop("mpi", "because")
    assert [state.fail("mpi", 2), state.fail("mpi")] == [2, 3]
    state.close()
    state = State(tmp_path / "s")
    assert state.unfinished() == (Purchase("token", "mpi", ("mpi-1", "mpi-2"), key, 2, NOW),)
    memory = state.memory()
    assert memory.marks["mpi-3"].until == NOW and memory.stopped == {"mpi": "because"} and memory.failures == {"mpi": 3}
    assert state.awaited(NOW) == {"mpi-4"} and state.awaited(NOW + timedelta(seconds=9)) == frozenset()
    assert state.cooldowns(NOW) == {key: [(10, NOW + timedelta(seconds=9))]}
    assert state.cooldowns(NOW + timedelta(seconds=9)) == {}
    state.recover("mpi")
    state.end("token")
    assert state.memory().stopped == {} and state.memory().failures == {} and state.unfinished() == ()
    state.close()


def test_a_message_during_a_look_is_not_lost(tmp_path: Path) -> None:
    state = State(tmp_path / "s")
    state.add_jobs({"mpi-1": 1})
    before = state.memory()
    state.add_jobs({"mpi-2": 2})
    state.keep(replace(before, jobs={}), before)
    assert state.memory().jobs == {"mpi-2": 2}
    state.close()


@pytest.mark.parametrize("stack", ["dev", "staging", "prod", "local"])
def test_pools_json_of_the_program_is_read(stack: str) -> None:
    spec = load_stack(stack)
    read = parse(elastic_settings(spec, load_catalog(), facts_of(spec)))
    assert set(read.pools) == {asked.name for asked in spec.pools}
    assert read.cluster == spec.name and read.max_hourly == spec.budget.max_hourly
    for asked in spec.pools:
        mine = read.pools[asked.name]
        assert (mine.min, mine.max, mine.idle) == (asked.min, asked.max, asked.idle.total_seconds())
        assert [kind.name for kind in mine.types] == list(asked.instance_types)
        assert mine.charges and mine.tags[tags.TAG_CLUSTER] == spec.name and mine.tags[tags.TAG_ROLE] == "compute"
