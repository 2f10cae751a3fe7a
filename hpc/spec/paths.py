"""Paths into the stack file as findings write them: `pools[0].max`, `tags["a.b"]`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z0-9_:/@-]{1,128}")


def join(base: str, *parts: str | int) -> str:
    """The path of a key or list entry below `base`; the path of the whole cluster is empty."""
    path = base
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{json.dumps(part[:128], ensure_ascii=False)}]"
    return path


def under(path: str, base: str) -> bool:
    """Whether `path` is `base` or something inside of it."""
    return path == base or (path.startswith(base) and (not base or path[len(base)] in ".["))


def parents(path: str) -> list[str]:
    """The paths that `path` lies inside of, outermost first; the whole cluster is not among them."""
    return [path[: match.start()] for match in re.finditer(r"[.\[]", path)]


class Places:
    """Some paths, to be asked quickly whether another one touches any of them.

    Args:
        paths: the paths.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._paths: set[str] = set()
        self._around: set[str] = set()
        for path in paths:
            self.add(path)

    def __bool__(self) -> bool:
        return bool(self._paths)

    def add(self, path: str) -> None:
        """Add a path."""
        self._paths.add(path)
        self._around.update(parents(path))

    def touched(self, path: str) -> bool:
        """Whether `path` is one of the paths, lies inside of one, or has one inside."""
        if path in self._paths or path in self._around:
            return True
        return any(parent in self._paths for parent in parents(path))


def without_indexes(path: str) -> str:
    """The path with the positions in lists left out: `pools.max`."""
    return re.sub(r"\[\d+\]", "", path)
