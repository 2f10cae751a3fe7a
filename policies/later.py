"""Parts of the Pulumi SDK that no policy needs are not loaded before somebody asks for one of their names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

#: A quarter of the time in which the pack starts.
LATER = ("pulumi.automation", "pulumi.dynamic")


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname in LATER else None
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


def load_later() -> None:
    """From now on, in this process, those parts are loaded when they are first used."""
    sys.meta_path.insert(0, _Finder())
