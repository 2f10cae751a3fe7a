"""The Python language host, with which plain `pulumi up` starts the program. Runs of `hpc` do without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from hpc.engine.cli import TOOLCHAIN, find_cli, find_go
from hpc.engine.places import part_of, writing
from hpc.engine.plugins import archive_of, unpack_file
from hpc.engine.versions import VERSION
from hpc.paths import cache_dir

Progress = Callable[[str], None]

_HOST = "pulumi-language-python"
#: The script by which the host runs a program; the host looks for it on PATH.
_EXECUTOR = "pulumi-language-python-exec"
_MODULE = "github.com/pulumi/pulumi/sdk/v3"


def language_dir() -> Path:
    """Folder for a language host that is not the installed one. It has to be on PATH of plain `pulumi`."""
    return cache_dir() / "engine" / VERSION / "language"


def find_language_host() -> Path | None:
    """The language host that is there: beside the CLI, on PATH, or the project's own; None where there is none."""
    cli = find_cli()
    beside = str(cli.resolve().parent) if cli else None
    for folders in (beside, None):
        if (found := shutil.which(_HOST, path=folders)) and shutil.which(_EXECUTOR, path=folders):
            return Path(found)
    own = language_dir()
    return own / _HOST if all(os.access(own / name, os.X_OK) for name in (_HOST, _EXECUTOR)) else None


def ensure_language_host(progress: Progress = lambda line: None) -> Path | None:
    """The language host, from an archive beside those of the plugins if it is not there.

    It comes with every installed CLI. For one that was built from source there are no modules of it; what it needs
    beside it is in the module of the SDK.

    Returns:
        The host, or None where it cannot be had.
    """
    if found := find_language_host():
        return found
    archive = archive_of(_HOST, VERSION)
    executor = shutil.which(_EXECUTOR) or _executor_of_module()
    if archive is None or executor is None:
        return None
    progress(f"Unpacking the Python language host {VERSION}")
    unpack_file(archive, language_dir() / _HOST)
    with writing(language_dir()):
        part = part_of(language_dir() / _EXECUTOR)
        shutil.copyfile(executor, part)
        part.chmod(0o755)
        part.rename(language_dir() / _EXECUTOR)
    return find_language_host()


def _executor_of_module() -> str | None:
    go = find_go()
    if go is None:
        return None
    try:
        done = subprocess.run(
            [str(go), "mod", "download", "-json", _MODULE],
            cwd=TOOLCHAIN,
            env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        file = Path(json.loads(done.stdout)["Dir"]) / "python" / "cmd" / _EXECUTOR
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None
    return str(file) if file.is_file() else None


def find_uv() -> Path | None:
    """uv, which Pulumi.yaml names as the tool that runs the program: on PATH, or the one that `make` has got."""
    if found := shutil.which("uv"):
        return Path(found)
    return next(iter(sorted(cache_dir().glob("uv-*/bin/uv"), reverse=True)), None)


def path_of_plain_runs() -> tuple[str, ...]:
    """Folders that plain `pulumi` needs in front of PATH on this machine: CLI, language host, uv."""
    found = []
    cli, host, uv = find_cli(), find_language_host(), find_uv()
    if cli and shutil.which("pulumi") is None:
        found.append(str(cli.parent))
    if host and host.parent == language_dir():
        found.append(str(host.parent))
    if uv and shutil.which("uv") is None:
        found.append(str(uv.parent))
    return tuple(found)
