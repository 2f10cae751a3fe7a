"""Reading of a resource's inputs: what is not given has a default, what is not known yet is never taken for a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class _Unknown:
    """A value that is known only after deployment."""

    def __repr__(self) -> str:
        return "(known after up)"


#: The one value of its kind.
UNKNOWN = _Unknown()


class UnverifiedError(Exception):
    """An input cannot be judged, because it is not known yet or has a shape that nobody expects.

    Args:
        path: of the input, `systemDisk.encrypted`.
        why: half a sentence for the user.
    """

    def __init__(self, path: str, why: str = "is known only after deployment") -> None:
        super().__init__(f"`{path}` {why}")


@dataclass(frozen=True, slots=True)
class Props:
    """Inputs of a resource, or a part of them.

    Attributes:
        values: plain values, `UNKNOWN` among them.
        where: path of the part in the resource, empty for all of it.
    """

    values: Mapping[str, Any]
    where: str = ""

    def has(self, key: str) -> bool:
        """Whether an input is given, known or not; empty text, lists and maps are not given."""
        value = self.values.get(key)
        return value is UNKNOWN or (value is not None and value != "" and value != [] and value != {})

    def get(self, key: str) -> Any:
        """An input, None where it is not given.

        Raises:
            UnverifiedError: it is not known yet.
        """
        value = self.values.get(key)
        if value is UNKNOWN:
            raise UnverifiedError(self._path(key))
        return value

    def text(self, key: str, default: str = "") -> str:
        """An input as text."""
        value = self.get(key)
        return default if value is None or value == "" else str(value)

    def flag(self, key: str, default: bool) -> bool:
        """An input that is true or false; the texts `true` and `false` count, too."""
        value = self.get(key)
        if value is None or value == "":
            return default
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        raise UnverifiedError(self._path(key), "is neither true nor false")

    def number(self, key: str) -> float | None:
        """An input as a number, None where it is not given."""
        value = self.get(key)
        if value is None or value == "":
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            raise UnverifiedError(self._path(key), "is not a number") from None

    def texts(self, key: str) -> Iterator[str]:
        """The entries of a list of texts."""
        for index, value in enumerate(self._list(key)):
            if value is UNKNOWN:
                raise UnverifiedError(f"{self._path(key)}[{index}]")
            yield str(value)

    def part(self, key: str) -> Props:
        """An input that is a map; an empty one where it is not given."""
        value = self.get(key)
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
            value = value[0]  # some bridged providers keep single blocks as lists in their state
        if value is None:
            return Props({}, self._path(key))
        if not isinstance(value, Mapping):
            raise UnverifiedError(self._path(key), "is not a map")
        return Props(value, self._path(key))

    def parts(self, key: str) -> Iterator[Props]:
        """The entries of a list of maps.

        Of a list that is not known yet bridged providers make one entry that has nothing in it but the required
        inputs, not known either. Such an entry says nothing about its optional inputs, so it counts as unknown.
        """
        for index, value in enumerate(self._list(key)):
            path = f"{self._path(key)}[{index}]"
            if value is UNKNOWN:
                raise UnverifiedError(path)
            if not isinstance(value, Mapping):
                raise UnverifiedError(path, "is not a map")
            if all(item is UNKNOWN for item in value.values()):
                raise UnverifiedError(path)
            yield Props(value, path)

    def _list(self, key: str) -> Sequence[Any]:
        value = self.get(key)
        if value is None:
            return ()
        if isinstance(value, Mapping):
            return (value,)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise UnverifiedError(self._path(key), "is not a list")
        return value

    def _path(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key
