"""The list of names that the daemon keeps for all nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hpc.elastic.instances import Instance
from hpc.elastic.nodefiles import write_hosts

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def instance(number: str, name: str, address: str | None, age: int = 0) -> Instance:
    created = NOW - timedelta(seconds=age)
    return Instance(f"i-{number}", name, "mpi", "Running", created, None, address, "ecs.t", "zone-j", "spot")


def test_names_of_living_nodes(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    write_hosts(
        file, [instance("1", "mpi-1", "10.0.0.1"), instance("2", "mpi-2", None), instance("3", "x y", "10.0.0.3")]
    )
    assert file.read_text() == "10.0.0.1 mpi-1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["hosts"]
    write_hosts(file, [])
    assert file.read_text() == ""
    write_hosts(None, [])
    write_hosts(tmp_path / "nothing/hosts", [])


def test_a_name_is_that_of_the_younger_instance(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    old, new = instance("9", "mpi-1", "10.0.0.9", age=600), instance("1", "mpi-1", "10.0.0.200", age=5)
    for order in ([old, new], [new, old]):
        write_hosts(file, order)
        assert file.read_text() == "10.0.0.200 mpi-1\n"


def test_what_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    write_hosts(file, [instance("1", "mpi-1", "10.0.0.1")])
    before = file.stat().st_ino
    write_hosts(file, [instance("1", "mpi-1", "10.0.0.1")])
    assert file.stat().st_ino == before
