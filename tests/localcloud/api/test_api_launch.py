"""What a start says where real hosts cannot be had: each reason made for real, in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpc.errors import CannotRunError
from hpc.notes import Note
from hpc.paths import PROJECT_ROOT
from localcloud.api import launch

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="takes root's rights away, so it needs them first")

_ASK = """
import json, pathlib, sys
from localcloud.api.launch import hosts_possible
print(json.dumps(hosts_possible(pathlib.Path(sys.argv[1]))))
"""


def asked(state: Path, *before: str, path: str = "") -> list[str]:
    """Reasons that a process of its own finds, started through the words of `before`."""
    done = subprocess.run(
        [*before, sys.executable, "-c", _ASK, str(state)],
        cwd=PROJECT_ROOT,
        env={**os.environ, **({"PATH": path} if path else {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [str(reason) for reason in json.loads(done.stdout)]


def nobody(state: Path) -> list[str]:
    """Words that run a program as somebody without rights; skips where they could not even start Python."""
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    state.mkdir(parents=True, exist_ok=True)
    os.chown(state, 65534, 65534)
    if (
        not shutil.which("setpriv")
        or subprocess.run(
            [*words, sys.executable, "-c", "import hpc"], cwd=PROJECT_ROOT, capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("another user cannot run this checkout's Python")
    return words


def without_programs(folder: Path, *names: str) -> str:
    """A PATH with everything that this machine has, but for some programs."""
    programs = folder / "bin"
    programs.mkdir()
    for place in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir():
            if program.name not in names and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    return str(programs)


@needs_root
def test_without_root(tmp_path: Path) -> None:
    words = nobody(tmp_path / "state")
    assert asked(tmp_path / "state", *words) == ["instance hosts need root"]


@needs_root
def test_without_nspawn_and_without_apt(tmp_path: Path) -> None:
    found = asked(tmp_path / "state", path=without_programs(tmp_path, "systemd-nspawn", "apt-get"))
    assert found
    assert "systemd-container" in found[-1]
    assert "apt-get" in found[-1]


@needs_root
def test_where_no_overlay_can_be_mounted(tmp_path: Path) -> None:
    for name in ("lower", "upper", "work", "root"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    mount = f'mount -t overlay outer -o {options} {tmp_path}/root && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no overlay can be mounted here")
    if asked(tmp_path / "other"):
        pytest.skip("hosts cannot be had here anyhow")
    (reason,) = asked(tmp_path / "root" / "state", *words)
    assert reason.startswith("no overlay file system can be mounted in")


def test_reasons_become_one_line_that_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "hosts_possible", lambda state, progress: ("no root", "no overlay"))
    said: list[str] = []
    cloud = launch.start(tmp_path / "state", progress=said.append)
    try:
        assert not cloud.record.hosts
        assert said == [f"{launch.API_ONLY}: no root; no overlay"]
        assert isinstance(said[0], Note)
        launch.start(tmp_path / "state", hosts=True, progress=said.append)
        assert "hpc local stop" in said[-1]
    finally:
        launch.stop(tmp_path / "state")


def test_hosts_that_are_asked_for_are_not_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "hosts_possible", lambda state, progress: ("no root",))
    with pytest.raises(CannotRunError, match="no root") as refused:
        launch.start(tmp_path, hosts=True)
    assert refused.value.code == "HPC856"
    assert launch.status(tmp_path).cloud is None


@pytest.mark.parametrize("error", [CannotRunError("no packages", code="HPC860", fix=""), OSError(28, "full")])
def test_an_image_that_cannot_be_built_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    def build(progress: object) -> Path:
        raise error

    monkeypatch.setattr("localcloud.hosts.support.prepare", lambda state, progress: ())
    monkeypatch.setattr("localcloud.hosts.image.ensure_image", build)
    (reason,) = launch.hosts_possible(tmp_path)
    assert "no packages" in reason or "full" in reason


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRunError) as refused:
        launch.start(tmp_path / "file" / "state", hosts=False)
    assert refused.value.code == "HPC875"


@needs_root
def test_command_line_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from hpc.cli.main import main; main()", "local", "start"]
    environment = {
        **os.environ,
        "HPC_STATE_DIR": str(tmp_path / "state"),
        "HPC_CACHE_DIR": str(tmp_path / "cache"),
        "PATH": without_programs(tmp_path, "systemd-nspawn", "apt-get"),
    }
    try:
        done = subprocess.run(
            command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        assert f"{launch.API_ONLY}: programs are missing" in done.stderr
    finally:
        launch.stop(tmp_path / "state" / "cloud")
