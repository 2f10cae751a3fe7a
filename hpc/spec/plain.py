"""A copy of what the user wrote in plain values, with a bound on its size, and with places for what is left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.paths import join
from hpc.spec.yaml_reader import MAX_DEPTH, MAX_NODES

#: Most characters in all texts together once aliases are expanded.
MAX_CHARACTERS = 2 * 1024 * 1024

#: Longest whole number, bits.
_MAX_BITS = 64


class _LeftOut:
    """Stands where an entry of a list was left out, so that the positions of the others stay."""

    def __repr__(self) -> str:
        return "LEFT_OUT"


LEFT_OUT = _LeftOut()


class TooLargeError(Exception):
    """The value is too large or too deep; the finding says so."""

    def __init__(self, found: Finding) -> None:
        self.found = found


@dataclass
class Copier:
    """Copies a value of unknown make into dicts, lists and scalars of one's own.

    Attributes:
        findings: what could not be copied.
        left_out: paths of it.
    """

    findings: list[Finding] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    _nodes: int = 0
    _characters: int = 0

    def copy(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """The copy; LEFT_OUT for what is no plain value.

        Raises:
            TooLargeError: limits exceeded (HPC006), as an alias bomb does.
        """
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise TooLargeError(finding("HPC006", "", None, f"a value is nested more than {MAX_DEPTH} levels deep"))
        if isinstance(value, str):
            self._characters += len(value)
        if self._nodes > MAX_NODES or self._characters > MAX_CHARACTERS:
            raise TooLargeError(
                finding(
                    "HPC006",
                    "",
                    None,
                    f"with its aliases expanded it has more than {MAX_NODES} values or {MAX_CHARACTERS} characters",
                )
            )
        if isinstance(value, Mapping):
            return self._mapping(value, path, depth)
        if isinstance(value, list | tuple):
            return [self.copy(entry, join(path, index), depth + 1) for index, entry in enumerate(value)]
        return self._leaf(value, path)

    def _mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        out = {}
        for key, entry in value.items():
            if not isinstance(key, str):
                said = key if isinstance(key, int | float | bool | type(None)) else type(key).__name__
                self.findings.append(finding("HPC007", path, said, f"a key is not text but {said!r:.80}"))
                continue
            self._characters += len(key)
            copied = self.copy(entry, join(path, key), depth + 1)
            if copied is not LEFT_OUT:
                out[key] = copied
        return out

    def _leaf(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            text = str(value)
            # Half of a surrogate pair is no text: it cannot be printed or written to a file.
            return (
                text
                if text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)
                else self._no(path, text)
            )
        if isinstance(value, int):
            return int(value) if value.bit_length() <= _MAX_BITS else self._no(path, "a number of more than 64 bits")
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else self._no(path, str(value))
        return self._no(path, type(value).__name__)

    def _no(self, path: str, said: str) -> _LeftOut:
        shown = said.encode("ascii", "backslashreplace").decode()[:80]
        self.findings.append(finding("HPC032", path, shown, f"is not a plain text, number, list or section: {shown}"))
        self.left_out.append(path)
        return LEFT_OUT


def compact(tree: Any, path: str, kept: dict[str, list[int]]) -> Any:
    """The tree without what is left out.

    Args:
        tree: plain values with LEFT_OUT in lists.
        path: where the tree is.
        kept: is filled with the original positions of the entries of each list that has lost some, by path.
    """
    if isinstance(tree, dict):
        return {key: compact(value, join(path, key), kept) for key, value in tree.items()}
    if isinstance(tree, list):
        positions = [index for index, value in enumerate(tree) if value is not LEFT_OUT]
        if len(positions) != len(tree):
            kept[path] = positions
        return [compact(tree[index], join(path, index), kept) for index in positions]
    return tree


def has(tree: Any, part: str | int) -> bool:
    """Whether the mapping has the key, or the list the position, and it is not left out."""
    if isinstance(tree, dict):
        return part in tree
    return isinstance(tree, list) and isinstance(part, int) and part < len(tree) and tree[part] is not LEFT_OUT


def reached(tree: Any, where: Iterable[str | int]) -> Any:
    """The value at a place; LEFT_OUT where there is none."""
    for part in where:
        if not has(tree, part):
            return LEFT_OUT
        tree = tree[part]
    return tree
