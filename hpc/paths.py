"""Where things are kept outside of the repository: one cache folder and one state folder per user."""

from __future__ import annotations

import os
from pathlib import Path

_NAME = "alicloud-hpc"

#: The checkout that this package runs from (it is installed editable).
PROJECT_ROOT = Path(__file__).resolve().parent.parent


def _folder(override: str, xdg: str, default: str) -> Path:
    if chosen := os.environ.get(override):
        return Path(chosen)
    base = os.environ.get(xdg)
    return (Path(base) if base else Path.home() / default) / _NAME


def cache_dir() -> Path:
    """Folder for what can be made again: engine builds, base images, package caches (`HPC_CACHE_DIR` overrides)."""
    return _folder("HPC_CACHE_DIR", "XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Folder for the local cloud and for local Pulumi state (`HPC_STATE_DIR` overrides)."""
    return _folder("HPC_STATE_DIR", "XDG_STATE_HOME", ".local/state")
