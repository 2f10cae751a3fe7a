"""The steps of the pipelines that deploy and look for drift, run as CI runs them, against a local cloud."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_pipeline import project, step

from hpc.engine.cli import find_cli
from hpc.paths import cache_dir
from localcloud.api.client import LocalCloud

__all__ = ["project"]  # a fixture

pytestmark = pytest.mark.engine


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCloud]:
    """A local cloud (API only) that is the account of the pipeline, and a state backend of its own."""
    from hpc.deploy.local import cloud_dir, cloud_environment, ensure_cloud
    from localcloud.api.launch import stop

    if find_cli() is None:
        pytest.skip("no Pulumi engine (make it with: python -m hpc.engine path)")
    monkeypatch.setenv("HPC_CACHE_DIR", str(cache_dir()))
    monkeypatch.setenv("HPC_STATE_DIR", str(tmp_path / "state"))
    started = ensure_cloud(lambda line: None, hosts=False)
    for name, value in cloud_environment(started).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "backend").mkdir()
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'backend'}")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "only for this test")
    yield started
    stop(cloud_dir())


def test_a_stack_is_deployed_and_drift_is_found(project: Path, cloud: LocalCloud) -> None:
    deployed = step(project, "up.sh", "dev")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    assert cloud.counts()["instance"] == 2

    quiet = step(project, "drift.sh", "dev")
    assert quiet.returncode == 0, quiet.stdout + quiet.stderr

    gone = next(item for item in cloud.instances() if item["tags"]["hpc:role"] == "login")
    cloud.vanish(gone["id"])
    found = step(project, "drift.sh", "dev")
    assert found.returncode == 1, found.stdout + found.stderr
    assert "dev-login-0" in found.stdout + found.stderr

    taken_over = subprocess.run([".venv/bin/hpc", "refresh", "dev", "--yes"], cwd=project, timeout=300, check=False)
    assert taken_over.returncode == 0
    mended = step(project, "up.sh", "dev")
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert cloud.counts()["instance"] == 2
    assert step(project, "drift.sh", "dev").returncode == 0


def test_what_is_refused_is_not_deployed(project: Path, cloud: LocalCloud) -> None:
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text().replace("max: 8", "max: 32"))
    refused = step(project, "up.sh", "dev")
    assert refused.returncode == 1
    assert "HPC601" in refused.stdout + refused.stderr
    assert cloud.counts() == {}
