"""Waivers: exceptions from a rule, with an owner, a reason and a date on which they end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from hpc.errors import RefusedError
from policies.model import Violation

#: The file of this repository.
WAIVERS_FILE = Path(__file__).with_name("waivers.yaml")

#: What a waiver names instead of a resource where the whole stack is meant.
WHOLE_STACK = "stack"

_KEYS = ("rule", "resource", "stacks", "owner", "reason", "expires")


@dataclass(frozen=True, slots=True)
class Waiver:
    """An exception from a rule.

    Attributes:
        rule: name of the rule.
        resource: pattern of the logical name or URN, `stack` for what a rule says of the whole stack.
        stacks: patterns of the stacks that it is for.
        owner: who answers for it.
        reason: why it is there.
        expires: last day on which it is valid.
    """

    rule: str
    resource: str
    stacks: tuple[str, ...]
    owner: str
    reason: str
    expires: date

    def valid(self, today: date) -> bool:
        """Whether it still counts."""
        return today <= self.expires

    def covers(self, rule: str, violation: Violation, stack: str) -> bool:
        """Whether it is about a violation."""
        names = (violation.name, violation.urn) if violation.urn else (WHOLE_STACK,)
        return (
            self.rule == rule
            and any(fnmatchcase(stack, pattern) for pattern in self.stacks)
            and any(fnmatchcase(name, self.resource) for name in names if name)
        )

    def as_dict(self) -> dict[str, Any]:
        """The waiver as plain JSON-ready values."""
        return {
            "rule": self.rule,
            "resource": self.resource,
            "stacks": list(self.stacks),
            "owner": self.owner,
            "reason": self.reason,
            "expires": self.expires.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Waivers:
    """The waivers of a file, as they count on one day."""

    entries: tuple[Waiver, ...] = ()
    today: date = date.max

    def covering(self, rule: str, violation: Violation, stack: str) -> Waiver | None:
        """The waiver that counts for a violation, or None."""
        return next((one for one in self.entries if one.valid(self.today) and one.covers(rule, violation, stack)), None)

    def expired_for(self, rule: str, violation: Violation, stack: str) -> Waiver | None:
        """A waiver that counted once, or None."""
        return next(
            (one for one in self.entries if not one.valid(self.today) and one.covers(rule, violation, stack)), None
        )


def load_waivers(today: date, rules: Collection[str], file: Path = WAIVERS_FILE) -> Waivers:
    """The waivers of a file; none where there is no file.

    Args:
        today: the day on which they are to count.
        rules: names of all rules.
        file: to be read.

    Raises:
        RefusedError: HPC760, the file cannot be used, for instance since it names a rule that does not exist.
    """
    if not file.exists():
        return Waivers(today=today)
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _refused(file, f"cannot be read: {error}") from error
    entries = document.get("waivers") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or set(document) - {"waivers"} or not isinstance(entries, list | None):
        raise _refused(file, "must have one key, `waivers`, with a list")
    found = [_waiver(file, index, entry, rules) for index, entry in enumerate(entries or ())]
    return Waivers(tuple(found), today)


def _waiver(file: Path, index: int, entry: Any, rules: Collection[str]) -> Waiver:
    where = f"waivers[{index}]"
    if not isinstance(entry, Mapping) or set(entry) - set(_KEYS):
        raise _refused(file, f"{where} must have the keys {', '.join(_KEYS)} (stacks may be left out)")
    texts = {}
    for key in ("rule", "resource", "owner", "reason"):
        value = entry.get(key)
        if not isinstance(value, str) or not value.strip():
            raise _refused(file, f"{where}.{key} is missing or no text")
        texts[key] = value.strip()
    if texts["rule"] not in rules:
        raise _refused(file, f"{where}.rule {texts['rule']} does not exist")
    expires = entry.get("expires")
    if type(expires) is not date:
        raise _refused(file, f"{where}.expires is missing or no date such as 2027-01-31")
    stacks = entry.get("stacks", ["*"])
    if not isinstance(stacks, list) or not stacks or not all(isinstance(stack, str) for stack in stacks):
        raise _refused(file, f"{where}.stacks is no list of names")
    return Waiver(**texts, stacks=tuple(stacks), expires=expires)


def _refused(file: Path, why: str) -> RefusedError:
    return RefusedError(f"{file.name}: {why}", code="HPC760", fix="see docs/policies/README.md, How to waive a rule")
