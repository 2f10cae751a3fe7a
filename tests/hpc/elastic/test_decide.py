"""The decision, case by case and by properties: no clock but the one that is handed in, no cloud, no Slurm."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hpc.elastic.decide import FAILED_HOLD, decide
from hpc.elastic.instances import Instance
from hpc.elastic.memory import Mark, Memory, Miss, observe
from hpc.elastic.nodes import Node
from hpc.elastic.steps import (
    Down,
    Drain,
    Extend,
    Failed,
    Hold,
    Launch,
    PowerDown,
    PowerUp,
    Resume,
    Started,
    Step,
    Terminate,
)
from tests.hpc.elastic.settings_for_tests import pool, settings

NOW = datetime.fromisoformat("2026-12-01T12:00:00+00:00")
SETTINGS = settings(pool("mpi", min=1, max=20, resume_timeout=300, max_lifetime=86400), pool("c-1", max=9))
UP = "IDLE+CLOUD"
BUSY = "ALLOCATED+CLOUD"
OFF = "IDLE+CLOUD+POWERED_DOWN"
COMING = "ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP"
GOING = "IDLE+CLOUD+POWERING_DOWN"
TIMEOUT = "ResumeTimeout reached"
INVALID = "IDLE+CLOUD+DRAIN+INVALID_REG"
SHORT = "registered with less than slurm.conf says: Low RealMemory (reported:1)"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def node(state: str, reason: str = "", name: str = "mpi-2") -> Node:
    return Node(name, frozenset(state.split("+")), reason)


def instance(name: str = "mpi-2", age: float = 200, **changes: Any) -> Instance:
    made = Instance(
        id=f"i-{name}", name=name, pool=name.rpartition("-")[0], status="Running", created=ago(age),
        release=NOW + timedelta(seconds=3600), address="10.0.0.1", type="t", zone="z", charge="spot",
    )  # fmt: skip
    return replace(made, **changes)


def look(nodes: list[Node] | Node, instances: list[Instance] | Instance | None = None, **memory: Any) -> list[Step]:
    found = [nodes] if isinstance(nodes, Node) else nodes
    there = [] if instances is None else [instances] if isinstance(instances, Instance) else instances
    return list(decide(found, there, Memory(**memory), SETTINGS, NOW))


def mark(reason: str = "no stock", seconds: float | None = 60, *, held: bool = False) -> dict[str, Mark]:
    return {"mpi-2": Mark(reason, None if seconds is None else NOW + timedelta(seconds=seconds), held)}


MISSED = {"mpi-2": Miss(3, ago(60))}
KEPT: list[Step] = []

TABLE: list[tuple[str, list[Step], list[Step]]] = [
    # Slurm asks
    ("asked", look(node(COMING)), [Launch("mpi", ("mpi-2",))]),
    ("asked, not yet powering up", look(node("ALLOCATED+CLOUD+POWERED_DOWN")), [Launch("mpi", ("mpi-2",))]),
    ("asked without a job", look(node("IDLE+CLOUD+POWER_UP+POWERED_DOWN")), [Launch("mpi", ("mpi-2",))]),
    ("asked, launch under way", look(node(COMING), launching=frozenset({"mpi-2"})), []),
    ("asked for a job", look(node(COMING), jobs={"mpi-2": 7}), [Launch("mpi", ("mpi-2",), 7)]),
    ("asked for no job", look(node(COMING), jobs={"mpi-2": 0}), [Launch("mpi", ("mpi-2",))]),
    (
        "two jobs, one step each; single nodes together",
        look(
            [node(COMING, name=f"mpi-{n}") for n in range(2, 8)],
            jobs={"mpi-2": 7, "mpi-3": 7, "mpi-4": 8, "mpi-5": 8, "mpi-6": 0},
        ),
        [Launch("mpi", ("mpi-2", "mpi-3"), 7), Launch("mpi", ("mpi-4", "mpi-5"), 8), Launch("mpi", ("mpi-6", "mpi-7"))],
    ),
    ("asked in a reservation", look(node(COMING + "+RESERVED")), [Launch("mpi", ("mpi-2",))]),
    ("its instance boots", look(node(COMING), instance()), []),
    ("seen, then missed once", look(node(COMING), seen=frozenset({"mpi-2"}), misses={"mpi-2": Miss(1, NOW)}), []),
    (
        "seen, then gone",
        look(node(COMING), seen=frozenset({"mpi-2"}), misses=MISSED),
        [Launch("mpi", ("mpi-2",))],
    ),
    (
        "left from an earlier life",
        look(node(COMING), instance(age=600), requested={"mpi-2": ago(30)}),
        [Terminate(("i-mpi-2",), "it is left from an earlier start of its node")],
    ),
    ("as old as the request", look(node(COMING), instance(age=90), requested={"mpi-2": ago(30)}), []),
    (
        "pool stopped",
        look(node(COMING), stopped={"mpi": "quota"}),
        [Down(("mpi-2",), "quota", SETTINGS.cooldown)],
    ),
    (
        "not registered in time",
        look(node(COMING), instance(age=320), requested={"mpi-2": ago(301)}),
        [
            Down(("mpi-2",), "not registered within 300 s", FAILED_HOLD),
            Failed("mpi", ("mpi-2",), "not registered within 300 s"),
            Terminate(("i-mpi-2",), "its node could not start"),
        ],
    ),
    ("registers at the last moment", look(node(COMING), instance(age=300), requested={"mpi-2": ago(300)}), []),
    (
        "tells why it failed",
        look(node(COMING), instance(age=20), reported={"mpi-2": "HPC904: no NAS"}),
        [
            Down(("mpi-2",), "HPC904: no NAS", FAILED_HOLD),
            Failed("mpi", ("mpi-2",), "HPC904: no NAS"),
            Terminate(("i-mpi-2",), "its node could not start"),
        ],
    ),
    (
        "reclaimed while it boots",
        look(node(COMING), instance(reclaimed=True)),
        [Terminate(("i-mpi-2",), "the cloud takes this spot instance back")],
    ),
    (
        "stopped while it boots",
        look(node(COMING), instance(status="Stopped")),
        [Terminate(("i-mpi-2",), "it stopped before its node registered")],
    ),
    # in use
    ("idle", look(node(UP), instance()), []),
    ("busy", look(node(BUSY), instance()), []),
    ("half of its time is over", look(node(BUSY), instance(release=NOW + timedelta(seconds=1799))), [
        Extend("mpi", ("i-mpi-2",))
    ]),
    ("no release time", look(node(UP), instance(release=None)), [Extend("mpi", ("i-mpi-2",))]),
    ("busy, power-down wanted", look(node(BUSY + "+POWER_DOWN"), instance(release=NOW)), [
        Extend("mpi", ("i-mpi-2",))
    ]),
    ("missed twice", look(node(BUSY), misses={"mpi-2": Miss(2, ago(600))}), []),
    ("missed often, for a short time", look(node(BUSY), misses={"mpi-2": Miss(9, ago(59))}), []),
    ("its instance is gone", look(node(BUSY), misses=MISSED), [Down(("mpi-2",), "its instance is gone")]),
    ("gone in a reservation", look(node(BUSY + "+RESERVED"), misses=MISSED), []),
    (
        "reclaimed",
        look(node(BUSY), instance(reclaimed=True, release=NOW)),
        [Down(("mpi-2",), "the cloud takes this spot instance back")],
    ),
    ("reclaimed in maintenance", look(node(UP + "+MAINTENANCE"), instance(reclaimed=True)), []),
    (
        "a start after failures",
        look(node(UP), instance(), failures={"mpi": 3}),
        [Started("mpi", ("mpi-2",))],
    ),
    ("an old node says nothing about starts", look(node(UP), instance(age=601), failures={"mpi": 3}), []),
    (
        "too old",
        look(node(BUSY), instance(age=86401)),
        [Drain(("mpi-2",), "older than the pool's max_lifetime of 86400 s")],
    ),
    ("too old, drained, busy", look(node(BUSY + "+DRAIN"), instance(age=86401), marks=mark("old", None)), []),
    (
        "too old, drained, idle",
        look(node(UP + "+DRAIN"), instance(age=86401), marks=mark("old", None)),
        [PowerDown(("mpi-2",), "older than the pool's max_lifetime of 86400 s")],
    ),
    ("too old, going", look(node(UP + "+DRAIN+POWER_DOWN"), instance(age=86401), marks=mark("old", None)), []),
    ("too old, drained by a user", look(node(UP + "+DRAIN"), instance(age=86401)), []),
    (
        "registered with too little",
        look(node(INVALID, "Low RealMemory (reported:1)"), instance()),
        [
            Down(("mpi-2",), SHORT, FAILED_HOLD), Failed("mpi", ("mpi-2",), SHORT),
            Terminate(("i-mpi-2",), "its node could not start"),
        ],
    ),
    ("registered with too little, busy", look(node(BUSY + "+INVALID_REG"), instance(), failures={"mpi": 3}), []),
    ("registered with too little, reserved", look(node(INVALID + "+RESERVED", "Low"), instance()), []),
    ("registers with too little after long work", look(node(INVALID, "Low"), instance(age=601)), []),
    ("was short in an earlier life", look(node(COMING + "+INVALID_REG", "Low"), instance()), []),
    ("too old, reserved", look(node(UP + "+RESERVED"), instance(age=90000)), []),
    # going and gone
    ("suspended", look(node(GOING), instance()), [Terminate(("i-mpi-2",), "its node is powered down")]),
    ("off", look(node(OFF), instance()), [Terminate(("i-mpi-2",), "its node is powered down")]),
    ("off in a reservation", look(node(OFF + "+RESERVED"), instance()), [
        Terminate(("i-mpi-2",), "its node is powered down")
    ]),
    ("suspended, still cleaning up", look(node("COMPLETING+CLOUD+POWERING_DOWN"), instance()), []),
    ("off and no instance", look(node(OFF)), []),
    ("off below the minimum", look(node(OFF, name="mpi-1")), [PowerUp(("mpi-1",))]),
    ("below the minimum, pool stopped", look(node(OFF, name="mpi-1"), stopped={"mpi": "quota"}), []),
    ("below the minimum, drained by a user", look(node(OFF + "+DRAIN", "mine", "mpi-1")), []),
    ("below the minimum, reserved", look(node(OFF + "+RESERVED", name="mpi-1")), []),
    ("below the minimum, going", look(node(GOING, name="mpi-1")), []),
    # out of use
    ("refused, made idle by slurmctld", look(node(GOING), marks=mark()), [Hold(("mpi-2",), "no stock")]),
    ("refused, idle and off", look(node(OFF), marks=mark()), [Hold(("mpi-2",), "no stock")]),
    ("refused and held", look(node("DOWN+CLOUD+POWERED_DOWN", "hpc: no stock"), marks=mark(held=True)), []),
    ("given back by somebody", look(node(OFF), marks=mark(held=True)), []),
    ("refused, its time over", look(node("DOWN+CLOUD+POWERED_DOWN", "hpc: no stock"), marks=mark(seconds=0)), [
        Resume(("mpi-2",))
    ]),
    ("taken over by a user", look(node("DOWN+CLOUD+POWERED_DOWN", "mine"), marks=mark(seconds=0)), []),
    ("refused, there", look(node("DOWN+CLOUD+POWERED_DOWN", "hpc: no stock"), instance(), marks=mark(seconds=0)), [
        Terminate(("i-mpi-2",), "its node is powered down")
    ]),
    ("set down, power-down was lost", look(node("DOWN+CLOUD+POWERING_UP", "hpc: no stock"), marks=mark()), [
        PowerDown(("mpi-2",), "no stock")
    ]),
    ("set down, power-down wanted", look(node("DOWN+CLOUD+POWER_DOWN", "hpc: no stock"), marks=mark()), []),
    ("down by a user", look(node("DOWN+CLOUD", "mine"), instance(release=NOW)), [Extend("mpi", ("i-mpi-2",))]),
    ("down by a user, instance gone", look(node("DOWN+CLOUD+NOT_RESPONDING", "mine"), misses=MISSED), []),
    ("down by a user over a mark", look(node("DOWN+CLOUD", "mine"), instance(), marks=mark()), []),
    ("down and off by a user", look(node("DOWN+CLOUD+POWERED_DOWN", "mine")), []),
    ("drained and off by a user", look(node("IDLE+CLOUD+DRAIN+POWERED_DOWN", "mine")), []),
    ("lost by slurmctld", look(node("DOWN+CLOUD+NOT_RESPONDING", "Not responding"), instance(release=NOW)), []),
    ("lost by slurmctld, missed once", look(node("DOWN+CLOUD+NOT_RESPONDING", "Not responding")), []),
    ("lost by slurmctld and gone", look(node("DOWN+CLOUD+NOT_RESPONDING", "Not responding"), misses=MISSED), [
        Down(("mpi-2",), "its instance is gone")
    ]),
    # ResumeTimeout
    ("given up by slurmctld", look(node("DOWN+CLOUD+POWERED_DOWN", TIMEOUT), instance()), [
        Failed("mpi", ("mpi-2",), "not registered within 300 s"), Terminate(("i-mpi-2",), "its node is powered down")
    ]),
    ("given up, its reason is known", look(
        node("DOWN+CLOUD+POWERED_DOWN", TIMEOUT), instance(), reported={"mpi-2": "HPC901: no NAS"}
    ), [
        Hold(("mpi-2",), "HPC901: no NAS"),
        Failed("mpi", ("mpi-2",), "HPC901: no NAS"),
        Terminate(("i-mpi-2",), "its node is powered down"),
    ]),
    ("given up and counted", look(node("DOWN+CLOUD+POWERED_DOWN", TIMEOUT), instance(), marks=mark()), [
        Terminate(("i-mpi-2",), "its node is powered down")
    ]),
    ("given up, never launched", look(node("DOWN+CLOUD+POWERED_DOWN", TIMEOUT)), [Resume(("mpi-2",))]),
    ("given up, hold over", look(node("DOWN+CLOUD+POWERED_DOWN", TIMEOUT), marks=mark(seconds=-1, held=True)), [
        Resume(("mpi-2",))
    ]),
    ("given up earlier, in use again", look(node(OFF, TIMEOUT)), []),
    # what is nobody's
    ("orphan of no pool", look([], instance("gpu-3", age=121)), [
        Terminate(("i-gpu-3",), "no node of this cluster has its name")
    ]),
    ("young orphan", look([], instance("gpu-3", age=119)), []),
    ("no node's name", look([], instance("hello", age=999)), [
        Terminate(("i-hello",), "no node of this cluster has its name")
    ]),
    ("above the pool's maximum", look([], instance("mpi-21", age=999)), [
        Terminate(("i-mpi-21",), "no node of this cluster has its name")
    ]),
    ("slurmctld does not know the node yet", look([], instance("mpi-7", age=999)), []),
    ("a node of another's pool", look(node(BUSY, name="old-1"), instance("old-1", age=999)), []),
    ("c-1-7 is node 7 of pool c-1", look(node(COMING, name="c-1-7")), [Launch("c-1", ("c-1-7",))]),
    ("unknown state", look(node("UNKNOWN+CLOUD"), instance()), []),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "wanted"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_case(steps: list[Step], wanted: list[Step]) -> None:
    assert steps == wanted


def test_a_second_instance_of_one_node_goes_the_younger_one() -> None:
    pair = [instance(age=50, id="i-young"), instance(age=100, id="i-old")]
    assert look(node(COMING), pair) == [Terminate(("i-young",), "a second instance of one node")]
    assert look(node(UP), pair) == [Terminate(("i-young",), "a second instance of one node")]
    assert look(node(BUSY), pair) == [], "which of them does the work is not known"
    taken = [instance(age=50, id="i-young"), instance(age=100, id="i-old", reclaimed=True)]
    assert look(node(COMING), taken) == [Terminate(("i-old",), "a second instance of one node")]


def test_failed_starts_beside_a_fresh_node_do_not_count_against_the_pool() -> None:
    late = {"mpi-2": ago(301)}
    steps = look([node(COMING), node(UP, name="mpi-3")], [instance(age=310), instance("mpi-3")], requested=late)
    assert Failed("mpi", ("mpi-2",), "not registered within 300 s", alone=False) in steps


def test_memory_counts_misses_and_forgets_them() -> None:
    up, there = (node(BUSY),), (instance(),)
    memory = observe(Memory(), up, there, NOW)
    for second in range(3):
        memory = observe(memory, up, (), NOW + timedelta(seconds=second))
    assert memory.misses == {"mpi-2": Miss(3, NOW)}
    assert observe(memory, up, there, NOW).misses == {}
    assert observe(memory, (node(GOING),), (), NOW).seen == frozenset()


def test_memory_keeps_the_time_of_the_request() -> None:
    memory = observe(Memory(jobs={"mpi-2": 3, "mpi-9": 4}), (node(COMING),), (), NOW)
    later = observe(memory, (node(COMING),), (), NOW + timedelta(seconds=9))
    assert later.requested == {"mpi-2": NOW} and later.jobs == {"mpi-2": 3}
    assert observe(later, (node(UP),), (), NOW).requested == {}


@pytest.mark.parametrize(
    ("state", "marked", "kept"),
    [
        (OFF, mark(), True),
        (OFF, mark(held=True), False),
        (OFF, mark(seconds=-1), False),
        (COMING, mark(), True),
        (UP, mark(), False),
        (UP + "+DRAIN", mark(seconds=None), True),
        (UP + "+POWER_DOWN", mark(), True),
        ("DOWN+CLOUD+POWERED_DOWN", mark(seconds=-1), True),
    ],
)
def test_memory_forgets_marks_that_have_served(state: str, marked: dict[str, Mark], kept: bool) -> None:
    memory = observe(Memory(marks=marked), (node(state),), (), NOW)
    assert ("mpi-2" in memory.marks) is kept


# Properties over whatever states Slurm may show.

BASES = st.sampled_from(["IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN"])
FLAGS = st.sets(
    st.sampled_from(
        ["POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN", "POWER_UP", "DRAIN", "COMPLETING", "RESERVED",
         "MAINTENANCE", "NOT_RESPONDING", "INVALID_REG"]
    ),
    max_size=4,
)  # fmt: skip
REASONS = st.sampled_from(["", "mine", TIMEOUT, "Not responding", "hpc: no stock"])
NAMES = [f"mpi-{n}" for n in range(1, 6)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[tuple[Node, ...], tuple[Instance, ...], Memory]:
    nodes = tuple(Node(name, frozenset({draw(BASES), "CLOUD", *draw(FLAGS)}), draw(REASONS)) for name in NAMES)
    ages = st.integers(0, 100_000)
    instances = tuple(
        instance(
            name, age=draw(ages), id=f"i-{index}", reclaimed=draw(st.booleans()),
            release=NOW + timedelta(seconds=draw(st.integers(-10, 4000))),
            status=draw(st.sampled_from(["Pending", "Running", "Stopped"])),
        )
        for index, name in enumerate(draw(st.lists(st.sampled_from([*NAMES, "old-1"]), max_size=7)))
    )  # fmt: skip
    some = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 100), max_size=5)
    memory = Memory(
        requested={name: ago(10 * age) for name, age in draw(some).items()},
        misses={name: Miss(count, ago(count)) for name, count in draw(some).items()},
        seen=frozenset(draw(some)),
        launching=frozenset(draw(some)),
        jobs=draw(some),
        marks={
            name: Mark("no stock", None if age % 3 == 0 else NOW + timedelta(seconds=age - 50), age % 2 == 0)
            for name, age in draw(some).items()
        },
        stopped={"mpi": "why"} if draw(st.booleans()) else {},
        reported=dict.fromkeys(draw(some), "failed"),
    )
    return nodes, instances, observe(memory, nodes, instances, NOW)


quick = hypothesis_settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def named(steps: tuple[Step, ...], *kinds: type) -> set[str]:
    return {name for step in steps if isinstance(step, kinds) for name in getattr(step, "nodes", ())}


@quick
@given(worlds())
def test_an_instance_of_a_working_node_is_never_deleted(world: Any) -> None:
    nodes, instances, memory = world
    steps = decide(nodes, instances, memory, SETTINGS, NOW)
    working = {n.name for n in nodes if n.busy and not n.asked and not n.down}
    deleted = {i for step in steps if isinstance(step, Terminate) for i in step.instances}
    assert not {i.name for i in instances if i.id in deleted and i.name in working and n_up(nodes, i.name)}


def n_up(nodes: tuple[Node, ...], name: str) -> bool:
    return any(n.name == name and n.up for n in nodes)


@quick
@given(worlds())
def test_nothing_is_said_twice_about_one_thing(world: Any) -> None:
    nodes, instances, memory = world
    steps = decide(nodes, instances, memory, SETTINGS, NOW)
    deleted = [i for step in steps if isinstance(step, Terminate) for i in step.instances]
    assert len(deleted) == len(set(deleted))
    launched = [name for step in steps if isinstance(step, Launch) for name in step.nodes]
    assert len(launched) == len(set(launched))
    assert not set(launched) & memory.launching
    assert not set(launched) & {i.name for i in instances}, "never a second one"
    extended = {i for step in steps if isinstance(step, Extend) for i in step.instances}
    assert not extended & set(deleted)


@quick
@given(worlds())
def test_at_most_one_instance_of_an_idle_node_is_left(world: Any) -> None:
    nodes, instances, memory = world
    steps = decide(nodes, instances, memory, SETTINGS, NOW)
    deleted = {i for step in steps if isinstance(step, Terminate) for i in step.instances}
    for n in nodes:
        if not (n.up and n.busy):
            assert sum(i.name == n.name and i.id not in deleted for i in instances) <= 1


@quick
@given(worlds())
def test_all_nodes_of_a_job_are_in_one_launch(world: Any) -> None:
    nodes, instances, memory = world
    jobs = [step.job for step in decide(nodes, instances, memory, SETTINGS, NOW) if isinstance(step, Launch)]
    assert len(jobs) == len(set(jobs))


@quick
@given(worlds())
def test_what_users_set_is_not_changed(world: Any) -> None:
    nodes, instances, memory = world
    changed = named(decide(nodes, instances, memory, SETTINGS, NOW), Down, Hold, Drain, PowerDown, PowerUp, Resume)
    for n in nodes:
        if n.reason == "mine" and n.down:
            assert n.name not in changed
        if n.reason == "mine" and n.drained and n.powered_down and not n.asked and n.name not in memory.marks:
            assert n.name not in changed
        if n.reserved and n.up:
            assert n.name not in changed


@quick
@given(worlds())
def test_it_says_the_same_twice(world: Any) -> None:
    nodes, instances, memory = world
    assert decide(nodes, instances, memory, SETTINGS, NOW) == decide(nodes, instances, memory, SETTINGS, NOW)


@quick
@given(worlds())
def test_after_its_steps_it_has_nothing_to_say(world: Any) -> None:
    """The steps applied to what Slurm and the cloud show, until both have settled: a few rounds, then silence."""
    nodes, instances, memory = world
    for _ in range(6):
        steps = decide(nodes, instances, memory, SETTINGS, NOW)
        if not steps:
            return
        nodes, instances, memory = applied(nodes, instances, memory, steps)
        memory = observe(memory, nodes, instances, NOW)
    raise AssertionError(steps)


def applied(nodes: Any, instances: Any, memory: Memory, steps: tuple[Step, ...]) -> Any:
    states = {n.name: [set(n.states), n.reason] for n in nodes}
    living = {i.id: i for i in instances}
    marks, launching, failures = dict(memory.marks), set(memory.launching), dict(memory.failures)
    reported = dict(memory.reported)

    def base(name: str, value: str) -> None:
        states[name][0] -= {"IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "COMPLETING"}
        states[name][0].add(value)

    def off(name: str) -> None:
        base(name, "IDLE")
        states[name][0] -= {"POWERING_UP", "POWER_UP", "POWER_DOWN", "POWERING_DOWN", "DRAIN"}
        states[name][0].add("POWERED_DOWN")

    for step in steps:
        match step:
            case Down(names, reason, hold):
                for name in names:
                    off(name)
                    marks[name] = Mark(reason, NOW + timedelta(seconds=hold))
                    states[name][1] = f"hpc: {reason}"
            case Hold(names, reason):
                for name in names:
                    base(name, "DOWN")
                    states[name][1] = f"hpc: {reason}"
            case Drain(names, reason):
                for name in names:
                    states[name][0].add("DRAIN")
                    states[name][1] = f"hpc: {reason}"
                    marks[name] = Mark(reason, None)
            case PowerDown(names, _):
                for name in names:
                    off(name)
            case PowerUp(names):
                for name in names:
                    states[name][0] -= {"POWERED_DOWN"}
                    states[name][0].add("POWERING_UP")
            case Resume(names):
                for name in names:
                    base(name, "IDLE")
                    states[name][0].discard("DRAIN")
                    states[name][1] = ""
                    marks.pop(name, None)
            case Terminate(ids, _):
                for instance_id in ids:
                    living.pop(instance_id, None)
            case Extend(_, ids):
                for instance_id in ids:
                    living[instance_id] = replace(living[instance_id], release=NOW + timedelta(seconds=3600))
            case Launch(_, names, _):
                launching.update(names)
            case Failed(_, names, reason):
                for name in names:
                    reported.pop(name, None)
                    marks.setdefault(name, Mark(reason, NOW + timedelta(seconds=FAILED_HOLD)))
            case Started(name, _):
                failures.pop(name, None)
    gone = memory.seen & {i.name for i in instances if i.id not in living}
    return (
        tuple(Node(name, frozenset(state), reason) for name, (state, reason) in states.items()),
        tuple(living.values()),
        replace(
            memory, marks=marks, launching=frozenset(launching), failures=failures, reported=reported,
            seen=memory.seen - gone,
        ),
    )  # fmt: skip
