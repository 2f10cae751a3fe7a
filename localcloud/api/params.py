"""Request parameters: the flat `A.1.B.2` names of the RPC protocol, typed access, what an action accepts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from localcloud.api.errors import ApiError, invalid, missing

#: Parameters of the protocol itself and of every action.
_COMMON = """
    Action Version Format AccessKeyId Signature SignatureMethod SignatureVersion SignatureNonce SignatureType Timestamp
    SecurityToken RegionId OwnerId OwnerAccount ResourceOwnerId ResourceOwnerAccount AcceptLanguage SecureTransport
    SourceIp AppIp BearerToken
"""
COMMON = frozenset(_COMMON.lower().split())
_GROUP = re.compile(r"(\S+?)\{([^{}]*)\}(!?)")
_INDEX = re.compile(r"(?<=\.)[1-9][0-9]{0,5}(?=\.|$)")
_ELEMENT = re.compile(r"[1-9][0-9]{0,5}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?")
#: Largest integer that the API takes (its integers have 32 bits).
_LARGEST = 2**31 - 1
_TIMES = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%MZ")


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Turn a JSON body into the flat names of form parameters (lists count from 1)."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flatten(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from flatten(item, f"{prefix}.{number}")
    elif isinstance(value, bool):
        yield prefix, "true" if value else "false"
    elif value is not None:
        yield prefix, str(value)


class Declared:
    """The parameters that an action accepts.

    Args:
        text: names separated by spaces; `!` marks a mandatory one, `N` stands for an index, and
            `Tag.N.{Key Value}` is short for both names.
    """

    def __init__(self, text: str) -> None:
        while "{" in text:
            text = _GROUP.sub(lambda m: " ".join(m.group(1) + inner for inner in m.group(2).split()), text)
        names = text.split()
        self.required = tuple(name[:-1] for name in names if name.endswith("!"))
        self.names = tuple(name.rstrip("!") for name in names)
        self._spelling = {name.lower(): name for name in self.names}
        self._lists = {stem.lower(): stem for name in self.names if ".N" in name and (stem := name.partition(".N")[0])}

    def canonical(self, flat: Mapping[str, str]) -> dict[str, str]:
        """The given parameters in their declared spelling.

        Raises:
            ApiError: a parameter is not declared, or a mandatory one is missing.
        """
        result: dict[str, str] = {}
        for name, value in flat.items():
            lower = name.lower()
            if lower in self._spelling:
                result[self._spelling[lower]] = value
                continue
            pattern = _INDEX.sub("n", lower)
            declared = self._spelling.get(pattern)
            if declared is not None:
                numbers = iter(_INDEX.findall(name))
                result[re.sub(r"(?<=\.)N(?=\.|$)", lambda _: next(numbers), declared)] = value  # noqa: B023
            elif lower in COMMON:
                result[name] = value
            elif lower in self._lists:  # a list given as one JSON document or one value
                result.update(self._json_list(self._lists[lower], value))
            elif value != "":  # clients send parameters without a value that an action does not have
                raise ApiError(
                    400, "InvalidParameter", f"The specified parameter {name} is not supported by this action."
                )
        for name in self.required:
            stem = name.partition(".N")[0]
            if not any(key == name or key.startswith(stem + ".") for key in result if result[key] != "") and not (
                result.get(name)
            ):
                raise missing(stem)
        return result

    @staticmethod
    def _json_list(stem: str, value: str) -> dict[str, str]:
        try:
            items = json.loads(value) if value.startswith("[") else [value]
        except ValueError:
            raise invalid(stem, "It is not a JSON list.") from None
        return dict(flatten(items, stem))


class Params:
    """Typed access to the parameters of one request (or of one element of a list in it)."""

    def __init__(self, flat: Mapping[str, str], prefix: str = "") -> None:
        self._flat = flat
        self._prefix = prefix

    def __contains__(self, name: str) -> bool:
        return self._flat.get(self._prefix + name, "") != ""

    def flat(self) -> Mapping[str, str]:
        """All parameters by their flat names."""
        return self._flat

    def text(self, name: str, default: str = "") -> str:
        """The value, or `default` if it was not given or is empty."""
        return self._flat.get(self._prefix + name) or default

    def optional(self, name: str) -> str | None:
        """The value, or None if it was not given; an empty value is kept (it clears an attribute)."""
        return self._flat.get(self._prefix + name)

    def require(self, name: str) -> str:
        """The value; a missing or empty one is an error."""
        value = self._flat.get(self._prefix + name)
        if not value:
            raise missing(self._prefix + name)
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str = "") -> str:
        """One of `allowed` (compared without case)."""
        value = self.text(name, default)
        if not value:
            return value
        for item in allowed:
            if item.lower() == value.lower():
                return item
        raise invalid(self._prefix + name, f"Allowed values: {', '.join(allowed)}.")

    def number(self, name: str, default: int = 0, low: int | None = None, high: int | None = None) -> int:
        """An integer between `low` and `high` inclusive (and of 32 bits)."""
        value = self._flat.get(self._prefix + name)
        if value is None or value == "":
            return default
        if not _INTEGER.fullmatch(value) or abs(int(value)) > _LARGEST:
            raise invalid(self._prefix + name, "It must be an integer.")
        parsed = int(value)
        if (low is not None and parsed < low) or (high is not None and parsed > high):
            raise invalid(self._prefix + name, f"It must be between {low} and {high}.")
        return parsed

    def real(self, name: str, default: float = 0.0) -> float:
        """A decimal number."""
        value = self._flat.get(self._prefix + name)
        if value is None or value == "":
            return default
        if not _NUMBER.fullmatch(value) or not math.isfinite(parsed := float(value)):
            raise invalid(self._prefix + name, "It must be a number.")
        return parsed

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean (`true`/`false`, any case)."""
        value = self._flat.get(self._prefix + name, "").lower()
        if value in ("", "true", "false", "1", "0"):
            return default if value == "" else value in ("true", "1")
        raise invalid(self._prefix + name, "It must be true or false.")

    def time(self, name: str) -> float | None:
        """A UTC time as seconds since 1970, or None if not given."""
        value = self.text(name)
        if not value:
            return None
        for form in _TIMES:
            try:
                return datetime.strptime(value, form).replace(tzinfo=UTC).timestamp()
            except ValueError:
                continue
        raise invalid(self._prefix + name, "Its form is yyyy-MM-ddTHH:mm:ssZ (UTC).")

    def _indices(self, name: str) -> list[int]:
        start = f"{self._prefix}{name}."
        found = {
            int(head)
            for key in self._flat
            if key.startswith(start) and _ELEMENT.fullmatch(head := key[len(start) :].partition(".")[0])
        }
        return sorted(found)

    def texts(self, name: str) -> list[str]:
        """The values of `name.1`, `name.2`, ... in order, empty ones left out."""
        return [
            value for number in self._indices(name) if (value := self._flat.get(f"{self._prefix}{name}.{number}", ""))
        ]

    def structs(self, name: str) -> list[Params]:
        """The elements of the list `name.N.*` in order."""
        return [Params(self._flat, f"{self._prefix}{name}.{number}.") for number in self._indices(name)]

    def struct(self, name: str) -> Params:
        """The members `name.*`."""
        return Params(self._flat, f"{self._prefix}{name}.")

    def json_texts(self, name: str) -> list[str]:
        """A list given as a JSON document in one parameter, such as `InstanceIds=["i-1","i-2"]`."""
        value = self.text(name)
        if not value:
            return self.texts(name)
        try:
            items = json.loads(value)
        except ValueError:
            raise invalid(name, "It is not a JSON list.") from None
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise invalid(name, "It must be a JSON list of strings.")
        return items

    def tags(self, name: str = "Tag") -> dict[str, str]:
        """Tags given as `Tag.N.Key` and `Tag.N.Value` (or in lower case), checked as the real cloud does."""
        result: dict[str, str] = {}
        for item in self.structs(name):
            key = item.text("Key") or item.text("key")
            value = item.text("Value") or item.text("value")
            if not key or len(key) > 128 or key.startswith(("aliyun", "acs:", "http://", "https://")):
                raise ApiError(400, "InvalidTagKey.Malformed", "The specified Tag.n.Key is not valid.")
            if len(value) > 128:
                raise ApiError(400, "InvalidTagValue.Malformed", "The specified Tag.n.Value is not valid.")
            if key in result:
                raise ApiError(400, "Duplicate.TagKey", "The Tag.N.Key contain duplicate key.")
            result[key] = value
        if len(result) > 20:
            raise ApiError(400, "InvalidTagCount", "The specified tags are beyond the permitted range.")
        return result
