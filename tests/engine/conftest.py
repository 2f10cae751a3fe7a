"""The whole life of stacks, through the real engine, in a local cloud of the test's own (API only)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc.deploy.session import Session, open_session
from hpc.engine.cli import find_cli
from hpc.engine.plugins import ensure_plugins
from hpc.paths import cache_dir

#: The smallest cluster that has every kind of resource of the shipped stacks.
CLUSTER: dict[str, Any] = {
    "name": "life",
    "region": "cn-hangzhou",
    "zones": ["cn-hangzhou-j"],
    "network": {"cidr": "10.98.0.0/16", "ssh_from": ["192.0.2.0/24"], "nat": True},
    "image": {"os": "debian-12"},
    "storage": [
        {"mount": "/home", "retain": False},
        {"mount": "/scratch", "kind": "extreme", "capacity_gib": 100, "retain": False},
    ],
    "management": {"instance_type": "ecs.c7.large"},
    "login": {"instance_type": "ecs.c7.large"},
    "pools": [
        {
            "name": "mpi",
            "instance_types": ["ecs.c8i.large"],
            "interconnect": "tcp",
            "max": 4,
            "placement": "availability",
        }
    ],
    "protect": False,
}


@pytest.fixture(scope="session")
def engine() -> Path:
    found = find_cli()
    if found is None:
        pytest.skip("no Pulumi engine (make it with: python -m hpc.engine path)")
    return found


@pytest.fixture(params=["real", "stand-in"])
def plugins(request: pytest.FixtureRequest, engine: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    kind = str(request.param)
    if kind == "real":
        missing = [plugin.name for plugin in ensure_plugins(engine) if plugin.path is None]
        if missing:
            pytest.skip(f"the real plugins cannot be had: {', '.join(missing)}")
    monkeypatch.setenv("HPC_PROVIDERS", kind)
    return kind


class Stack:
    """A stack of the test: its file, its cloud, runs of it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "Pulumi.local.yaml"
        self.cluster = copy.deepcopy(CLUSTER)
        self._folder = folder

    def write(self) -> None:
        config = {"alicloud:region": self.cluster["region"], "hpc:cluster": self.cluster}
        self.file.write_text(yaml.safe_dump({"config": config}, sort_keys=False))

    def session(self, stack: ExitStack) -> Session:
        self.write()
        return stack.enter_context(open_session(self.file, progress=lambda line: None, hosts=False))

    def run(self, operation: Callable[[Session], Any]) -> Any:
        with ExitStack() as stack:
            return operation(self.session(stack))


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """A stack in a state folder, and so in a local cloud, of its own; the caches of the user are used."""
    from hpc.deploy.local import cloud_dir
    from localcloud.api.launch import stop

    monkeypatch.setenv("HPC_CACHE_DIR", str(cache_dir()))
    monkeypatch.setenv("HPC_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "stack").mkdir()
    yield Stack(tmp_path / "stack")
    stop(cloud_dir())
