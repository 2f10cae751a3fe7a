"""Reading of YAML that nobody has checked: every oddity is a finding, and the effort is bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.paths import join

#: Largest file, bytes. The largest sensible stack file (100 pools, every key given) has about 150 KiB.
MAX_BYTES = 1024 * 1024

#: Most values and keys in a file, before aliases are expanded: twice what 100 pools with every key given have.
MAX_NODES = 20_000

#: Deepest nesting.
MAX_DEPTH = 50

# The C parser where PyYAML has it (all of its wheels do): it is ten times as fast.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,15}")
_OCTAL = re.compile(r"0o[0-7]{1,20}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]{1,4})?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class _TooMuchError(Exception):
    """The limits are exceeded; carries the finding."""

    def __init__(self, found: Finding) -> None:
        self.found = found


@dataclass
class _Open:
    """A mapping or list whose end has not been read yet."""

    value: dict[str, Any] | list[Any]
    path: str
    anchor: str | None
    key: Any = None
    has_key: bool = False
    seen: set[str] = field(default_factory=set)
    merged: list[dict[str, Any]] = field(default_factory=list)


def read_yaml(data: bytes) -> tuple[Any, tuple[Finding, ...]]:
    """Read one YAML document.

    Scalars are read as the YAML 1.2 core schema and the Pulumi engine read them: `yes` and `10:30` are text. So are
    `010` and `1_000`, which the engine takes for 8 and 1000: where a number is needed they are refused.
    Aliases are shared, not copied; `<<` merges. Of a repeated key the first value is kept.

    Returns:
        The value (None where there is none) and findings: HPC002 to HPC008.
    """
    if len(data) > MAX_BYTES:
        return None, (finding("HPC002", "", None, f"the file has {len(data)} bytes, more than {MAX_BYTES}"),)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return None, (finding("HPC003", "", None, f"byte {error.start} of the file is not UTF-8"),)
    reader = _Reader()
    try:
        value = reader.read(text)
    except _TooMuchError as error:
        return None, (*reader.findings, error.found)
    except yaml.YAMLError as error:
        return None, (*reader.findings, finding("HPC004", "", None, _explained(error)))
    return value, tuple(reader.findings)


def _explained(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return f"the file is not YAML: {where}{str(problem)[:200]}"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _mappings(value: Any) -> list[dict[str, Any]]:
    """What the value of a merge key names: a mapping or several; empty where it is anything else."""
    parts = value if isinstance(value, list) else [value]
    return parts if all(isinstance(part, dict) for part in parts) else []


def _scalar(text: str) -> Any:
    """Value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "0123456789+-.":
        if _INT.fullmatch(text):
            return int(text)
        if _HEX.fullmatch(text):
            return int(text, 16)
        if _OCTAL.fullmatch(text):
            return int(text, 8)
        if len(text) < 60 and _FLOAT.fullmatch(text):
            return float(text)
    return text


class _Reader:
    """Builds values from the parser's events, with a stack of its own instead of recursion."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._anchors: dict[str, Any] = {}
        self._stack: list[_Open] = []
        self._root: Any = None
        self._nodes = 0

    def read(self, text: str) -> Any:
        documents = 0
        for event in self._events(text):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _TooMuchError(finding("HPC004", "", None, f"a second document begins in line {_line(event)}"))
            elif isinstance(event, yaml.ScalarEvent):
                self._count(event)
                self._add(self._scalar_value(event), event)
            elif isinstance(event, yaml.AliasEvent):
                self._count(event)
                self._add(self._aliased(event), event)
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                self._count(event)
                self._begin(event)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                self._end(event)
        return self._root

    def _events(self, text: str) -> Iterator[Any]:
        yield from yaml.parse(text, Loader=_LOADER)

    def _count(self, event: yaml.Event, more: int = 1) -> None:
        self._nodes += more
        if self._nodes > MAX_NODES:
            raise _TooMuchError(finding("HPC006", "", None, f"the file has more than {MAX_NODES} keys and values"))
        if len(self._stack) > MAX_DEPTH:
            line = _line(event)
            raise _TooMuchError(finding("HPC006", "", None, f"line {line} is nested more than {MAX_DEPTH} levels deep"))

    def _here(self) -> str:
        if not self._stack:
            return ""
        top = self._stack[-1]
        if isinstance(top.value, list):
            return join(top.path, len(top.value))
        return join(top.path, top.key) if top.has_key and isinstance(top.key, str) else top.path

    def _scalar_value(self, event: yaml.ScalarEvent) -> Any:
        if event.tag and event.tag not in ("!", "tag:yaml.org,2002:str"):
            self._tagged(event)
            return event.value
        return _scalar(event.value) if event.implicit[0] and not event.tag else event.value

    def _tagged(self, event: Any) -> None:
        self.findings.append(
            finding("HPC008", self._here(), event.tag, f"line {_line(event)} has the tag {event.tag[:100]}")
        )

    def _aliased(self, event: yaml.AliasEvent) -> Any:
        if event.anchor in self._anchors:
            return self._anchors[event.anchor]
        self.findings.append(
            finding(
                "HPC004",
                self._here(),
                f"*{event.anchor}",
                f"line {_line(event)} refers to an anchor that is not complete or not there",
            )
        )
        return None

    def _begin(self, event: Any) -> None:
        if event.tag and event.tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self._tagged(event)
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Open(value, self._here(), event.anchor))

    def _end(self, event: yaml.Event) -> None:
        done = self._stack.pop()
        if isinstance(done.value, dict):
            self._merge(done.value, done.merged, event)
        if done.anchor:
            self._anchors[done.anchor] = done.value
        self._place(done.value, event)

    def _merge(self, value: dict[str, Any], merged: list[dict[str, Any]], event: yaml.Event) -> None:
        """Fill in the keys of merged mappings: one's own win, then those of the first."""
        for other in merged:
            self._count(event, len(other))
            for key, entry in other.items():
                value.setdefault(key, entry)

    def _add(self, value: Any, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent) and event.anchor:
            self._anchors[event.anchor] = value
        self._place(value, event)

    def _place(self, value: Any, event: Any) -> None:
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
            return
        if not top.has_key:
            top.key, top.has_key = value, True
            return
        key, top.key, top.has_key = top.key, None, False
        line = _line(event)
        if not isinstance(key, str):
            said = key if isinstance(key, int | float | bool | type(None)) else type(key).__name__
            self.findings.append(
                finding("HPC007", top.path, said, f"a key near line {line} is not text but {said!r:.80}")
            )
        elif key == "<<" and (parts := _mappings(value)):
            top.merged += parts
        elif key in top.seen:
            self.findings.append(
                finding(
                    "HPC005", join(top.path, key), value, f"the key {key[:80]} stands twice (again near line {line})"
                )
            )
        else:
            top.seen.add(key)
            top.value[key] = value
