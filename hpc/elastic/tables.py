"""Reads values of a JSON document one by one, so that each wrong one is told with its place."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


class SettingsError(Exception):
    """The settings file is missing or wrong; the message says where."""


class Table:
    """An object of the document. Its methods raise SettingsError where a value is not what it has to be.

    Args:
        raw: what the document has there.
        place: where that is, in words that begin a message.
    """

    def __init__(self, raw: Any, place: str) -> None:
        if not isinstance(raw, dict):
            raise SettingsError(f"{place} must be an object, not {raw!r:.60}")
        self._raw, self.place = raw, place

    def wrong(self, key: str, wanted: str) -> SettingsError:
        """What is wrong with a key."""
        return SettingsError(f"{self.place}: {key} must be {wanted}, not {self._raw.get(key)!r:.60}")

    def has(self, key: str) -> bool:
        """The key is there and is not null."""
        return self._raw.get(key) is not None

    def value(self, key: str) -> Any:
        """Whatever the key has; it must be there."""
        if key not in self._raw:
            raise SettingsError(f"{self.place} has no {key}")
        return self._raw[key]

    def text(self, key: str, among: tuple[str, ...] = ()) -> str:
        """A text, one of `among` where that is given."""
        found = self.value(key)
        if not isinstance(found, str) or not found:
            raise self.wrong(key, "a text")
        if among and found not in among:
            raise self.wrong(key, f"one of {', '.join(among)}")
        return found

    def number(self, key: str, least: float) -> Any:
        """A number."""
        found = self.value(key)
        if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found < float("inf"):
            raise self.wrong(key, f"a number of at least {least}")
        return found

    def whole(self, key: str, least: int) -> int:
        """A whole number."""
        found = self.value(key)
        if isinstance(found, bool) or not isinstance(found, int) or found < least:
            raise self.wrong(key, f"a whole number of at least {least}")
        return found

    def money(self, key: str) -> Decimal | None:
        """An amount; None where it is left out or null."""
        if not self.has(key):
            return None
        try:
            found = Decimal(str(self._raw[key]))
        except ArithmeticError as error:
            raise self.wrong(key, "an amount of money") from error
        if not found.is_finite() or found < 0:
            raise self.wrong(key, "an amount of money")
        return found

    def texts(self, key: str) -> dict[str, str]:
        """Texts by key; {} where it is left out or null."""
        found = self._raw.get(key) or {}
        if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
            raise self.wrong(key, "an object of texts")
        return dict(found)

    def tables(self, key: str, name: str) -> tuple[Table, ...]:
        """A list of objects, at least one."""
        found = self.value(key)
        if not isinstance(found, list) or not found:
            raise self.wrong(key, "a list with at least one entry")
        return tuple(Table(raw, f"{self.place}: {name} {index}") for index, raw in enumerate(found, 1))
