"""Hostlists as Slurm writes them: `mpi-[1-40,42]`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import NodeSet

#: Most names that one hostlist may stand for, and its longest text.
NAME_LIMIT = 100_000
_TEXT_LIMIT = 1_000_000

#: What Slurm writes. ClusterShell knows more (groups, which run commands; set operators), and none of it is wanted.
_FORM = re.compile(r"[A-Za-z0-9.,_\[\]-]*")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_ELEMENT = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")


def folded(nodes: Iterable[str]) -> str:
    """Node names as a hostlist."""
    return str(NodeSet.fromlist(sorted(nodes)))


def expanded(hostlist: str) -> tuple[str, ...]:
    """The node names of a hostlist.

    Raises:
        ValueError: it is no hostlist, or stands for more than `NAME_LIMIT` names.
    """
    if len(hostlist) > _TEXT_LIMIT or not _FORM.fullmatch(hostlist):
        raise ValueError(f"{hostlist[:80]!r} is not a hostlist")
    if sum(_count(element) for element in _ELEMENT.findall(hostlist)) > NAME_LIMIT:
        raise ValueError(f"{hostlist[:80]!r} stands for more than {NAME_LIMIT} nodes")
    try:
        return tuple(NodeSet(hostlist))
    except Exception as error:
        raise ValueError(f"{hostlist[:80]!r} is not a hostlist: {error}") from error


def _count(element: str) -> int:
    """How many names an element has, before anything is expanded."""
    total = 1
    for ranges in _BRACKETS.findall(element):
        total *= sum(_width(part) for part in ranges.split(","))
        if total > NAME_LIMIT:
            break
    return total


def _width(part: str) -> int:
    low, dash, high = part.partition("-")
    if not dash:
        return 1
    # More digits than any node number has would not be counted, only refused.
    if not (low.isdigit() and high.isdigit()) or len(low) > 9 or len(high) > 9:
        return NAME_LIMIT + 1
    return max(1, int(high) - int(low) + 1)
