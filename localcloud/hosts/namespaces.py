"""Network namespaces: made by name with ip-netns(8), entered by single threads."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from localcloud.hosts.commands import run

_FOLDER = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def path(name: str) -> Path:
    """File that stands for the namespace."""
    return _FOLDER / name


def exists(name: str) -> bool:
    """Whether there is a namespace of this name."""
    return path(name).exists()


def listed(prefix: str) -> tuple[str, ...]:
    """Names of the namespaces that begin with `prefix`."""
    return tuple(sorted(file.name for file in _FOLDER.glob(f"{prefix}*"))) if _FOLDER.is_dir() else ()


def create(name: str) -> None:
    """Make a namespace; its loopback interface is up."""
    run(["ip", "netns", "add", name])
    run(["ip", "-n", name, "link", "set", "lo", "up"])


def delete(name: str) -> None:
    """Remove a namespace and the interfaces in it; a missing one is not an error."""
    if exists(name):
        run(["ip", "netns", "delete", name], check=False)
    if exists(name):
        run(["ip", "netns", "delete", name])  # once more, with the reason


def ip_batch(lines: list[str], *, namespace: str | None = None) -> None:
    """Run `ip` commands in one process, in a namespace or in this machine's own; stops at the first that fails."""
    if lines:
        where = ["-n", namespace] if namespace else []
        run(["ip", *where, "-batch", "-"], stdin="\n".join(lines) + "\n")


def inside(name: str, function: Callable[[], T]) -> T:
    """Call `function` in a thread of its own that is in the namespace; sockets made there stay there.

    Raises:
        OSError: the namespace cannot be entered. Whatever `function` raises is raised here.
    """
    result: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            # The thread ends in the namespace it entered: no other code ever runs in it.
            descriptor = os.open(path(name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _libc.setns(descriptor, _CLONE_NEWNET):
                    code = ctypes.get_errno()
                    raise OSError(code, os.strerror(code), str(path(name)))
            finally:
                os.close(descriptor)
            result.append(function())
        except BaseException as error:  # handed to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=body, name=f"in-{name}")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
