"""Reasons from consoles: when they are read, what counts, what is forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from settings_for_tests import pool, settings

from hpc.elastic.consoles import Consoles
from hpc.elastic.ecs import CloudError
from hpc.elastic.instances import Instance
from hpc.elastic.memory import Memory

START = datetime(2026, 12, 1, 10, tzinfo=UTC)
SETTINGS = settings(pool(resume_timeout=100))


@dataclass
class Screens:
    """A cloud of consoles."""

    text: str = ""
    refuses: bool = False
    read: list[str] = field(default_factory=list)

    def console(self, instance_id: str) -> str:
        self.read.append(instance_id)
        if self.refuses:
            raise CloudError("Throttling", "later")
        return self.text


def look(consoles: Consoles, seconds: float, *ids: str, asked: bool = True) -> dict[str, str]:
    instances = [
        Instance(
            id=instance_id, name=f"mpi-{instance_id[2:]}", pool="mpi", status="Running", created=START, release=None,
            address=None, type="ecs.c8i.large", zone="cn-hangzhou-j", charge="payg",
        )
        for instance_id in ids
    ]  # fmt: skip
    requested = {instance.name: START for instance in instances} if asked else {}
    return consoles.look(instances, Memory(requested=requested), SETTINGS, START + timedelta(seconds=seconds))


@pytest.fixture
def screens() -> Screens:
    return Screens()


@pytest.fixture
def consoles(screens: Screens) -> Consoles:
    made: Any = Consoles(screens)  # type: ignore[arg-type]
    return made


def test_the_last_reason_counts_and_is_read_once(consoles: Consoles, screens: Screens) -> None:
    screens.text = "Linux\r\nHPC901: first\r\n[ 3.1] cloud-init[9]: HPC902: last\r\nlogin: "
    assert look(consoles, 50, "i-1") == {}
    assert look(consoles, 51, "i-1") == {"mpi-1": "HPC902: last"}
    assert look(consoles, 99, "i-1") == {"mpi-1": "HPC902: last"}
    assert screens.read == ["i-1"]


def test_a_console_without_a_reason_is_read_three_times(consoles: Consoles, screens: Screens) -> None:
    screens.text = "hpc: HPC of this kind: 901\r\nHPC801: not of a node\r\n"
    for seconds in range(0, 200, 2):
        assert look(consoles, seconds, "i-1") == {}
    assert len(screens.read) == 3


def test_a_cloud_that_refuses_stops_nothing(consoles: Consoles, screens: Screens) -> None:
    screens.refuses, screens.text = True, "HPC901: no NAS"
    assert look(consoles, 60, "i-1") == {}
    screens.refuses = False
    assert look(consoles, 71, "i-1") == {"mpi-1": "HPC901: no NAS"}


def test_nodes_that_nobody_waits_for_are_not_read(consoles: Consoles, screens: Screens) -> None:
    screens.text = "HPC901: no NAS"
    assert look(consoles, 60, "i-1", asked=False) == {}
    assert screens.read == []


def test_the_next_instance_of_a_node_starts_anew(consoles: Consoles, screens: Screens) -> None:
    screens.text = "HPC901: no NAS"
    assert look(consoles, 60, "i-1") == {"mpi-1": "HPC901: no NAS"}
    assert look(consoles, 60) == {}
    screens.text = "login: "
    assert look(consoles, 60, "i-1") == {}, "another instance of the same id stands for another one"
