"""Holds registered resources to the schema of the real provider (components/data/alicloud-schema.json)."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from components.recording import UNKNOWN, Registered, SecretValue
from hpc.paths import PROJECT_ROOT


@cache
def schema() -> dict[str, Any]:
    return json.loads((PROJECT_ROOT / "components" / "data" / "alicloud-schema.json").read_text())


def problems(resource: Registered) -> list[str]:
    """What the real provider would not take of a resource."""
    known = schema()["resources"].get(resource.type)
    if known is None:
        return [f"{resource.type}: not in the schema"]
    where = f"{resource.type} {resource.name}"
    found = [f"{where}: {name} is missing" for name in known.get("required", []) if name not in resource.inputs]
    for name, value in resource.inputs.items():
        if name == "__defaults":
            continue
        if name not in known["inputs"]:
            found.append(f"{where}: {name} is unknown")
            continue
        if known["inputs"][name].get("deprecated"):
            found.append(f"{where}: {name} is deprecated")
        found += type_problems(f"{where}: {name}", value, known["inputs"][name]["type"])
    return found


def type_problems(where: str, value: Any, kind: Any) -> list[str]:
    if isinstance(value, SecretValue):
        value = value.value
    if value is UNKNOWN:
        return []
    if isinstance(kind, list):
        container, element = kind
        if container == "array":
            if not isinstance(value, list):
                return [f"{where} is not a list"]
            return [p for i, item in enumerate(value) for p in type_problems(f"{where}[{i}]", item, element)]
        if not isinstance(value, dict):
            return [f"{where} is not a map"]
        return [p for key, item in value.items() for p in type_problems(f"{where}.{key}", item, element)]
    if kind in schema()["types"]:
        nested = schema()["types"][kind]
        if not isinstance(value, dict):
            return [f"{where} is not an object"]
        found = [f"{where}.{name} is missing" for name in nested.get("required", []) if name not in value]
        for name, item in value.items():
            if name not in nested["properties"]:
                found.append(f"{where}.{name} is unknown")
            else:
                found += type_problems(f"{where}.{name}", item, nested["properties"][name]["type"])
        return found
    # bool is an int in Python, but not for the provider.
    right = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
    }
    return [] if right[kind] else [f"{where} = {value!r} is not of type {kind}"]


def force_new(kind: str) -> set[str]:
    """Inputs of a resource whose change replaces it."""
    inputs = schema()["resources"].get(kind, {"inputs": {}})["inputs"]
    return {name for name, about in inputs.items() if about.get("forceNew")}
