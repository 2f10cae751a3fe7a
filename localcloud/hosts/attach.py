"""Attaching a directory of this machine inside the mount namespace of a host.

A detached copy of the mount is made outside (open_tree(2)), its attributes are set (mount_setattr(2)), and a thread
that has entered the host's mount namespace puts it in place (move_mount(2)). Linux 5.12 or newer.
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE = 1
_AT_RECURSIVE, _AT_EMPTY_PATH = 0x8000, 0x1000
_MOVE_MOUNT_F_EMPTY_PATH = 4
_AT_FDCWD = -100
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_MS_PRIVATE = 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    ]


def attach(root: Path, below: str, pid: int, target: str, *, read_only: bool, options: frozenset[str]) -> None:
    """Mount `root/below` at `target` of the host that process `pid` is in.

    Args:
        root: directory of this machine that the result may not lead out of.
        below: path below it, without a slash in front.
        pid: process 1 of the host.
        target: absolute path in the host.
        read_only: no writing through this mount.
        options: `nosuid` and `noexec` are honoured; other options of NFS mean nothing to a directory.

    Raises:
        FileNotFoundError: there is no such directory below the root.
        OSError: the host cannot be entered, or has no such target.
    """
    source = os.open(root / below if below else root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Links below the root may be of a host's making: judge where the open directory really is.
        real = Path(f"/proc/self/fd/{source}").readlink()
        if real != root.resolve() and root.resolve() not in real.parents:
            raise FileNotFoundError(below)
        flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | _AT_RECURSIVE | os.O_CLOEXEC
        tree = _call(_OPEN_TREE, source, b"", flags)
    finally:
        os.close(source)
    try:
        wanted = _NODEV | (_RDONLY if read_only else 0)
        wanted |= (_NOSUID if "nosuid" in options else 0) | (_NOEXEC if "noexec" in options else 0)
        attributes = _Attributes(wanted, 0, _MS_PRIVATE, 0)
        _call(
            _MOUNT_SETATTR,
            tree,
            b"",
            _AT_EMPTY_PATH | _AT_RECURSIVE,
            ctypes.byref(attributes),
            ctypes.sizeof(attributes),
        )
        _in_mounts_of(pid, tree, target)
    finally:
        os.close(tree)


def _in_mounts_of(pid: int, tree: int, target: str) -> None:
    failure: list[BaseException] = []
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)

    def body() -> None:
        # Only this thread leaves: it stops sharing root and working directory with the others, and never comes back.
        try:
            _check(_libc.unshare(_CLONE_FS))
            _check(_libc.setns(namespace, _CLONE_NEWNS))
            _check(_libc.fchdir(root))
            _check(_libc.chroot(b"."))
            _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)
        except BaseException as error:  # handed to the caller's thread
            failure.append(error)

    try:
        thread = threading.Thread(target=body, name="attach")
        thread.start()
        thread.join()
    finally:
        os.close(namespace)
        os.close(root)
    if failure:
        raise failure[0]


def _call(number: int, *arguments: object) -> int:
    return _check(_libc.syscall(number, *arguments))


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
