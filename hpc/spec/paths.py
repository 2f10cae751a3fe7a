"""Paths into the stack file as findings write them: `pools[0].max`, `tags["a.b"]`."""

from __future__ import annotations

import json
import re

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


def related(path: str, other: str) -> bool:
    """Whether one of the two paths is the other or lies inside of it. The whole cluster is related to nothing else."""
    if not path or not other:
        return path == other
    return under(path, other) or under(other, path)


def without_indexes(path: str) -> str:
    """The path with the positions in lists left out: `pools.max`."""
    return re.sub(r"\[\d+\]", "", path)
