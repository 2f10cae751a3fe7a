"""Starting, stopping and finding the server process of a local cloud."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hpc.errors import CannotRunError
from hpc.notes import Note
from localcloud.api.client import LocalCloud
from localcloud.api.record import Record

Progress = Callable[[str], None]

LOG = "server.log"
#: How the line begins that says why there are no real hosts.
API_ONLY = "Instances exist in the API only"
_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 40.0


@dataclass(frozen=True, slots=True)
class Status:
    """State of the local cloud of a folder: `cloud` is None if it does not run; `log` is its log file."""

    cloud: LocalCloud | None
    log: Path


def hosts_possible(state_dir: Path, progress: Progress = lambda line: None) -> tuple[str, ...]:
    """Get ready for real hosts: programs that are missing, then the public image, which takes a minute once.

    Args:
        state_dir: folder of the cloud.
        progress: told in short lines what is going on.

    Returns:
        Why hosts cannot be had here, in short lines; empty if they can.
    """
    from localcloud.hosts.image import ensure_image
    from localcloud.hosts.support import prepare

    try:
        if found := prepare(state_dir, progress):
            return found
        ensure_image(progress)
    except CannotRunError as error:
        return (error.message,)
    except OSError as error:
        return (f"{error.filename or 'a file'} cannot be made: {error.strerror or error}",)
    return ()


def status(state_dir: Path) -> Status:
    """Whether a cloud runs on this folder."""
    return Status(LocalCloud.read(state_dir), state_dir / LOG)


def _hosts_wanted(state_dir: Path, *, asked: bool, progress: Progress) -> bool:
    reasons = hosts_possible(state_dir, progress)
    if reasons and asked:
        from localcloud.hosts.support import refusal

        raise refusal(reasons)
    if reasons:
        progress(Note(f"{API_ONLY}: {'; '.join(reasons)}"))
    return not reasons


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "its log cannot be read"
    return lines[-1] if lines else "it wrote nothing"


def start(
    state_dir: Path,
    *,
    hosts: bool | None = None,
    port: int | None = None,
    region: str | None = None,
    progress: Progress = lambda line: None,
) -> LocalCloud:
    """Start a server on a state folder, or find the one that runs.

    Args:
        state_dir: folder of the cloud; made if missing.
        hosts: real hosts or API only; None takes hosts where the machine can have them, and says why where not.
        port: TCP port; None keeps the one of last time or takes a free one.
        region: region of requests that name none; None is cn-hangzhou.
        progress: gets lines for the user.

    Raises:
        CannotRunError: HPC873, the server ended or did not answer in time; HPC856, hosts are asked for and cannot be
            had here; HPC875, the folder cannot be made.
    """
    if (running := LocalCloud.read(state_dir)) is not None:
        running.wait_ready()
        if hosts and not running.record.hosts:
            progress(Note("the local cloud that runs has no real hosts; `hpc local stop` first to start it with them"))
        return running
    try:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise CannotRunError(
            f"{state_dir} cannot be made: {error.strerror}",
            code="HPC875",
            fix="set HPC_STATE_DIR to a folder that you may write to",
        ) from error
    wanted = hosts is not False and _hosts_wanted(state_dir, asked=bool(hosts), progress=progress)
    command = [
        sys.executable, "-m", "localcloud.api", "--state", str(state_dir.absolute()),
        "--hosts" if wanted else "--no-hosts",
    ]  # fmt: skip
    if port is not None:
        command += ["--port", str(port)]
    if region is not None:
        command += ["--region", region]
    log = state_dir / LOG
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, close_fds=True
        )
    deadline = time.monotonic() + _START_TIMEOUT
    while time.monotonic() < deadline:
        cloud = LocalCloud.read(state_dir)
        if cloud is not None and cloud.record.pid == process.pid:
            cloud.wait_ready()
            return cloud
        if process.poll() is not None:
            break
        time.sleep(0.03)
    else:
        process.kill()
    raise CannotRunError(
        f"the local cloud did not start: {_tail(log)}", code="HPC873", fix=f"read {log}, remove what is in its way"
    )


def _ours(record: Record, state_dir: Path) -> bool:
    """Whether the recorded process is the server of this folder and not a stranger with the same number."""
    if not record.alive():
        return False
    try:
        arguments = Path(f"/proc/{record.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"localcloud.api" in arguments and str(state_dir.absolute()).encode() in arguments


def _signal(record: Record, number: signal.Signals) -> None:
    try:
        descriptor = os.pidfd_open(record.pid)
    except OSError:
        return
    try:
        if record.alive():  # still the same process: the descriptor cannot be taken over by another one
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


def stop(state_dir: Path, *, kill: bool = False) -> bool:
    """Stop the server of a folder; `kill` does it the hard way. Says whether one ran.

    Raises:
        CannotRunError: HPC874, it does not end.
    """
    record = Record.read(state_dir)
    if record is None or not _ours(record, state_dir):
        return False
    _signal(record, signal.SIGKILL if kill else signal.SIGTERM)
    deadline = time.monotonic() + _STOP_TIMEOUT
    while record.alive():
        with suppress(ChildProcessError):  # it may be a child of this very process
            os.waitpid(record.pid, os.WNOHANG)
        if time.monotonic() > deadline:
            raise CannotRunError(
                f"the local cloud (process {record.pid}) does not end", code="HPC874", fix="kill that process"
            )
        time.sleep(0.03)
    return True
