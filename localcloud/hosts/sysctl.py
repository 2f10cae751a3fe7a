"""Limits of the kernel that many hosts on one machine outgrow; raised, never lowered."""

from __future__ import annotations

from pathlib import Path

_LEAST = {
    "fs/inotify/max_user_instances": 8192,
    "fs/inotify/max_user_watches": 1_048_576,
    "kernel/keys/maxkeys": 20_000,
    "kernel/pid_max": 4_194_304,
    "net/ipv4/neigh/default/gc_thresh3": 8192,
}


def raise_limits(root: Path = Path("/proc/sys")) -> None:
    """Raise each limit to what is needed, where it is lower."""
    for name, least in _LEAST.items():
        file = root / name
        if file.exists() and int(file.read_text()) < least:
            file.write_text(str(least))
