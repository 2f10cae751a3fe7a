"""What inputs a resource takes, by the real provider's schema: names, types, required ones, those that replace it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hpc.paths import PROJECT_ROOT
from localcloud.providers.values import UNKNOWN

SCHEMA_FILE = PROJECT_ROOT / "components" / "data" / "alicloud-schema.json"

_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


@cache
def load() -> dict[str, Any]:
    """The schema file: `resources`, `functions` and `types` by token."""
    return dict(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))


def check_inputs(token: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with the inputs of a resource.

    Args:
        token: `alicloud:vpc/network:Network`.
        inputs: plain values; unknown ones pass.

    Returns:
        (property path, reason) pairs, none when the inputs are as the real provider's schema has them.
    """
    resource = load()["resources"][token]
    return _check_object("", inputs, resource["inputs"], resource["required"])


def forces_replacement(token: str) -> frozenset[str]:
    """Inputs whose change replaces the resource."""
    inputs = load()["resources"][token]["inputs"]
    return frozenset(name for name, declared in inputs.items() if declared.get("forceNew"))


def coerced(token: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Properties as the schema types them: the API writes some numbers as text and some text as numbers."""
    declared = load()["resources"][token]["inputs"]
    return {name: _coerce(value, declared.get(name, {}).get("type")) for name, value in properties.items()}


def _coerce(value: Any, kind: Any) -> Any:
    if value is None or isinstance(value, dict | list):
        return value
    if kind == "string" and not isinstance(value, str):
        return str(value)
    if kind in ("integer", "number") and isinstance(value, str) and value:
        return int(value) if kind == "integer" else float(value)
    if kind == "boolean" and isinstance(value, str):
        return value.lower() == "true"
    return value


def _check_object(
    path: str, values: dict[str, Any], declared: dict[str, Any], required: list[str]
) -> list[tuple[str, str]]:
    problems = [(f"{path}{name}", "is required") for name in required if values.get(name) is None and name in declared]
    for name, value in values.items():
        if name not in declared:
            problems.append((f"{path}{name}", "is not an input of this resource"))
        elif value is not None:
            problems += _check_value(f"{path}{name}", value, declared[name]["type"])
    return problems


def _check_value(path: str, value: Any, kind: Any) -> list[tuple[str, str]]:
    if value == UNKNOWN:
        return []
    if isinstance(kind, list):
        outer, inner = kind
        if outer == "array":
            if not isinstance(value, list):
                return [(path, "must be a list")]
            return [found for i, item in enumerate(value) for found in _check_value(f"{path}[{i}]", item, inner)]
        if not isinstance(value, dict):
            return [(path, "must be a map")]
        return [found for key, item in value.items() for found in _check_value(f"{path}.{key}", item, inner)]
    if kind in _SCALARS:
        right = isinstance(value, _SCALARS[kind]) and (kind == "boolean" or not isinstance(value, bool))
        return [] if right else [(path, f"must be a {kind}")]
    nested = load()["types"].get(kind)
    if nested is None:
        return []
    if not isinstance(value, dict):
        return [(path, "must be an object")]
    return _check_object(f"{path}.", value, nested["properties"], nested.get("required", []))
