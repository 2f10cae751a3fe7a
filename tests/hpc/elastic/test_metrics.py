"""What monitoring reads, checked with Prometheus' own parser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hpc.elastic import metrics
from hpc.elastic.daemon import Daemon
from tests.hpc.elastic.settings_for_tests import TYPES, ZONES, pool, settings
from tests.hpc.elastic.simulation import Cluster


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "hpc_elastic.prom"


@pytest.fixture
def cluster(tmp_path: Path, file: Path) -> Any:
    class Watched(Cluster):
        def _daemon(self) -> Daemon:
            return Daemon(
                self.settings, self.slurm, self.cloud, self.state, self.clock, lambda seconds: None, metrics_file=file
            )

    made = Watched(settings(pool(max=9), pool("gpu", max=2)), tmp_path)
    yield made
    made.close()


def read(file: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(file.read_text()):
        for sample in family.samples:
            labels = ",".join(str(value) for value in sample.labels.values())
            found[f"{sample.name.removeprefix('hpc_elastic_')}{{{labels}}}"] = sample.value
    return found


def test_a_life_in_numbers(cluster: Any, file: Path) -> None:
    job = cluster.submit(3, seconds=600)
    cluster.run(10)
    assert read(file)["nodes{mpi,starting}"] == 3
    cluster.run(60)
    assert job.running_since
    cluster.slurm.down(["mpi-9"], "mine")
    cluster.state.stop("gpu", "why")
    cluster.run(10)
    seen = read(file)
    assert seen["nodes{mpi,busy}"] == 3 and seen["nodes{mpi,powered_down}"] == 6
    assert seen[f"instances{{mpi,{TYPES[0]},{ZONES[0]},payg}}"] == 3
    assert (seen["pool_stopped{mpi}"], seen["pool_stopped{gpu}"]) == (0, 1)
    assert (seen["launched_total{}"], seen["wasted_total{}"], seen["hourly_cny{}"]) == (3, 0, 12)
    assert 0 < seen["month_cny{}"] < 1
    assert seen["last_look_seconds{}"] == int(cluster.clock.now.timestamp())


def test_labels_of_strangers_are_escaped(cluster: Any, file: Path) -> None:
    cluster.submit(1, seconds=600)
    cluster.run(60)
    made = next(iter(cluster.cloud.living.values()))
    cluster.cloud.living[made.id] = replace(made, type='a"b\\c\nd')
    cluster.run(10)
    assert any('a"b\\c\nd' in key for key in read(file))


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    metrics.write(tmp_path / "nothing" / "x.prom", "text")
    assert "x.prom" in caplog.text
    metrics.write(None, "text")
