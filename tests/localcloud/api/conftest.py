"""A server process for tests that need the protocol, and an opened cloud without a process for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from direct_cloud import Direct

from localcloud.api import launch
from localcloud.api.client import LocalCloud


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """One server for all tests of the protocol; each makes what it needs and removes it."""
    state = tmp_path_factory.mktemp("cloud")
    running = launch.start(state, hosts=False)
    running.set(nas_creation=0, instance_start=0, instance_stop=0, image_creation=0)
    yield running
    launch.stop(state)


@pytest.fixture
def direct(tmp_path: Path) -> Iterator[Direct]:
    """A cloud of one's own, called without HTTP."""
    opened = Direct(tmp_path / "state")
    yield opened
    opened.server.close()
