"""Whatever happens in whatever order: no node gets two instances, all jobs end, nothing is left running."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.hpc.elastic.settings_for_tests import TYPES, ZONES, all_types, all_zones, pool, settings
from tests.hpc.elastic.simulation import Cluster

KEYS = [(kind, zone, charge) for kind in TYPES for zone in ZONES for charge in ("spot", "payg")]
SUBMIT = st.tuples(st.just("submit"), st.integers(1, 12))
EVENTS = st.one_of(
    SUBMIT,
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("away"), st.integers(10, 400)),
    st.tuples(st.just("reclaim"), st.integers(0, 20)),
    st.tuples(st.just("vanish"), st.integers(0, 20)),
    st.tuples(st.just("hide"), st.integers(0, 20)),
    st.tuples(st.just("broken"), st.integers(1, 15)),
    st.tuples(st.just("mended"), st.just(0)),
    st.tuples(st.just("stock"), st.tuples(st.integers(0, len(KEYS) - 1), st.integers(0, 9))),
    st.tuples(st.just("lag"), st.integers(0, 40)),
    st.tuples(st.just("outage"), st.booleans()),
    st.tuples(st.just("denied"), st.booleans()),
    st.tuples(st.just("killed"), st.booleans()),
    st.tuples(st.just("wait"), st.integers(5, 300)),
)
MOST = 14


@hypothesis_settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SUBMIT, min_size=2, max_size=4), st.lists(EVENTS, min_size=8, max_size=24))
def test_it_ends_well(jobs: list[tuple[str, object]], events: list[tuple[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        mine = pool(charge="spot-then-payg", types=all_types(), zones=all_zones(), max=15, resume_timeout=120)
        # Failures are made up here, so they do not stop the pool.
        made = settings(mine, budget={"max_nodes": MOST}, tuning={"failure_limit": 10_000, "cooldown": 60})
        cluster = Cluster(made, Path(folder))
        try:
            for what, value in [*jobs, *events]:
                happen(cluster, what, value)
                cluster.run(15)
                assert len(cluster.cloud.living) <= MOST
            calm(cluster)
            for _ in range(80):
                if all(job.done for job in cluster.slurm.pending) and settled(cluster):
                    break
                cluster.run(120, step=10)
            assert all(job.done for job in cluster.slurm.pending)
            assert settled(cluster) and not cluster.state.unfinished()
        finally:
            cluster.close()


def settled(cluster: Cluster) -> bool:
    """Nothing runs and everything can be used."""
    return not cluster.cloud.living and not any(node.down or node.drained for node in cluster.slurm.nodes())


def happen(cluster: Cluster, what: str, value: object) -> None:
    cloud, number = cluster.cloud, value if isinstance(value, int) else 0
    living = sorted(cloud.living.values(), key=lambda instance: instance.id)
    chosen = living[number % len(living)] if living else None
    match what:
        case "submit":
            cluster.submit(number, seconds=200)
        case "restart":
            cluster.restart()
        case "away":
            cluster.watched = False
            cluster.run(number)
            cluster.restart()
        case "reclaim" if chosen:
            cloud.reclaim(chosen.name)
        case "vanish" if chosen:
            cloud.delete([chosen.id])
        case "hide" if chosen:
            cloud.hidden[chosen.name] = 3
        case "broken":
            cloud.broken.add(f"mpi-{number}")
        case "mended":
            cloud.broken.clear()
        case "stock" if isinstance(value, tuple):
            cloud.stock[KEYS[value[0]]] = value[1]
        case "lag":
            cloud.lag = number
        case "outage":
            cloud.down = bool(value)
        case "denied":
            cloud.denied = "NoCredentials" if value else ""
        case "killed":
            cloud.kill_after_launch = bool(value)
        case "wait":
            cluster.run(number)


def calm(cluster: Cluster) -> None:
    """All is well again."""
    cloud = cluster.cloud
    cloud.broken.clear()
    cloud.stock.clear()
    cloud.down, cloud.denied, cloud.kill_after_launch, cloud.lag = False, "", False, 0
    cluster.restart()
