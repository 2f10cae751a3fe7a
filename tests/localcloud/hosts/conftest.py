"""Fixtures of the hosts: a cloud of its own for each module, and nothing left of it afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from host_cloud import Cloud

from localcloud.hosts import support
from localcloud.hosts.reset import leftovers, reset


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # Booting is slow on a busy machine, and the first test may have to build the public image.
        if item.get_closest_marker("hosts") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(scope="session")
def hosts_possible(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where hosts cannot run, with the reason."""
    if why := support.prepare(tmp_path_factory.mktemp("probe")):
        pytest.skip("; ".join(why))


@pytest.fixture(scope="session")
def ssh_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = tmp_path_factory.mktemp("ssh") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    return key


@pytest.fixture(scope="module")
def cloud(hosts_possible: None, ssh_key: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud with no network yet; removed at the end, and the end leaves nothing."""
    state_dir = tmp_path_factory.mktemp("cloud")
    made = Cloud(state_dir, ssh_key)
    made.adopt()
    yield made
    made.backend.close()
    reset(state_dir, data=True)
    assert leftovers(state_dir) == ()
