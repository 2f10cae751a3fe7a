"""Plain `pulumi`, in the environment that `hpc local env` prints, does what `hpc up local` does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from hpc.deploy.local import ensure_cloud, plain_environment
from hpc.deploy.session import Session
from hpc.engine.language import ensure_language_host, find_uv, path_of_plain_runs
from hpc.engine.plugins import ensure_plugins
from hpc.engine.results import RunResult
from hpc.paths import PROJECT_ROOT
from tests.engine.conftest import Stack

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def project(engine: Path, life: Stack) -> Path:
    """The project's program with the test's stack file beside it."""
    missing = [plugin.name for plugin in ensure_plugins(engine) if plugin.path is None]
    if missing or ensure_language_host() is None or find_uv() is None:
        pytest.skip(f"plain pulumi cannot run here: {', '.join(missing) or 'no Python language host, or no uv'}")
    life.write()
    folder = life.file.parent
    settings = yaml.safe_load((PROJECT_ROOT / "Pulumi.yaml").read_text())
    settings["runtime"]["options"]["virtualenv"] = str(PROJECT_ROOT / ".venv")
    settings["main"] = os.path.relpath(PROJECT_ROOT, folder)
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    return folder


def pulumi(folder: Path, *arguments: str) -> str:
    """Run plain `pulumi`; what it says."""
    variables = plain_environment(ensure_cloud(lambda line: None, hosts=False), lambda line: None)
    done = subprocess.run(
        ["pulumi", *arguments, "--stack", "local", "--non-interactive"],
        cwd=folder,
        env={
            **os.environ,
            **variables,
            "PATH": os.pathsep.join([*path_of_plain_runs(), os.environ["PATH"]]),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_plain_pulumi_and_hpc_take_turns(life: Stack, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPC_PROVIDERS", "real")

    def nothing_to_do(session: Session) -> RunResult:
        return session.deployment.preview()

    def up(session: Session) -> RunResult:
        return session.deployment.up()

    pulumi(project, "up", "--yes")
    assert life.run(nothing_to_do).changed == (), "hpc finds what plain pulumi has made"

    life.cluster["pools"][0]["max"] = 6
    assert life.run(up).succeeded
    pulumi(project, "preview", "--expect-no-changes")
    pulumi(project, "destroy", "--yes")
    assert ensure_cloud(lambda line: None, hosts=False).counts() == {}
