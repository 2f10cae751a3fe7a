from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hpc.engine import cli as engine_cli
from hpc.engine.versions import new_enough, parse
from hpc.errors import CannotRunError


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("v3.274.1", (3, 274, 1)),
        ("3.275.0-alpha.1+abc", (3, 275, 0)),
        (" v3.1.2\n", (3, 1, 2)),
        ("dev", None),
        ("", None),
        ("3.274", None),
    ],
)
def test_parse(text: str, numbers: tuple[int, int, int] | None) -> None:
    assert parse(text) == numbers


@pytest.mark.parametrize(
    ("version", "enough"), [("v3.249.0", True), ("v3.248.9", False), ("v4.0.0", True), ("v3.1000.0", True), ("", False)]
)
def test_minimum(version: str, enough: bool) -> None:
    assert new_enough(version) is enough


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH but what the test puts into `bin`, an empty cache, and no network."""
    monkeypatch.setenv("HPC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr("socket.create_connection", lambda *a, **k: (_ for _ in ()).throw(OSError("no network")))
    return tmp_path


def test_installed_cli_is_taken_when_new_enough(machine: Path) -> None:
    mine = program(machine / "bin" / "pulumi", "echo v3.260.0")
    assert engine_cli.ensure_cli() == mine


def test_old_cli_is_passed_over_for_a_build(machine: Path) -> None:
    program(machine / "bin" / "pulumi", "echo v3.100.0")
    fake_go(machine)
    assert engine_cli.ensure_cli() == engine_cli.cached_cli()


def fake_go(machine: Path, build: str = 'printf "#!/bin/sh\\necho v3.274.1\\n" > "$out"; chmod +x "$out"') -> Path:
    """A `go` that counts its builds in `builds` and makes a fake CLI."""
    return program(
        machine / "bin" / "go",
        f"""case "$1" in
  env) echo go1.26.8 ;;
  build) while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
    echo x >> {machine}/builds; sleep 0.3; {build} ;;
esac
""",
    )


def test_two_callers_build_once(machine: Path) -> None:
    fake_go(machine)
    threads = [
        threading.Thread(
            target=subprocess.run,
            args=([sys.executable, "-m", "hpc.engine", "path"],),
            kwargs={"env": {**os.environ, "no_proxy": "*"}, "check": True, "capture_output": True},
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (machine / "builds").read_text() == "x\n"
    assert engine_cli.find_cli() == engine_cli.cached_cli()


def test_failed_build_leaves_nothing_and_says_why(machine: Path) -> None:
    fake_go(machine, build="echo 'no space left on device' >&2; exit 1")
    with pytest.raises(CannotRunError, match="no space left on device") as caught:
        engine_cli.ensure_cli()
    assert caught.value.code == "HPC710"
    assert "no network" in caught.value.message
    assert list(engine_cli.cached_cli().parent.iterdir()) == []
