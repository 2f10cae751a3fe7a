"""Settings of the rules in an environment: the file of a stack, and the level of each rule in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc.errors import RefusedError
from hpc.paths import PROJECT_ROOT
from policies.registry import BY_NAME

#: Folder of the files, one for each environment.
CONFIG_DIR = PROJECT_ROOT / "policies" / "config"

#: Environment of stacks that have no file: the one with the smallest caps, so that nothing passes for want of a file.
FALLBACK = "dev"

_LEVELS = ("advisory", "mandatory", "remediate", "disabled")


@dataclass(frozen=True, slots=True)
class Environment:
    """Settings of the rules.

    Attributes:
        file: where they come from.
        levels: level of every rule.
        settings: settings by rule; those that are not given have the rule's defaults.
        note: what a person should know about the choice of the file, or empty.
    """

    file: Path
    levels: Mapping[str, str]
    settings: Mapping[str, Mapping[str, Any]]
    note: str = ""


def environment_of(stack: str, folder: Path = CONFIG_DIR) -> Environment:
    """Settings for a stack: those of `<stack>.json`, for `prod-eu` those of `prod.json`, else those of `dev.json`.

    Raises:
        RefusedError: HPC784, the file cannot be used.
    """
    for name in (stack, stack.split("-")[0]):
        if name and (file := folder / f"{name}.json").is_file():
            return read_environment(file)
    found = read_environment(folder / f"{FALLBACK}.json")
    note = f"there is no {stack}.json in policies/config, so the caps of {FALLBACK}.json count"
    return Environment(found.file, found.levels, found.settings, note)


def read_environment(file: Path) -> Environment:
    """Read a file of settings, and refuse what the engine would silently leave out.

    Raises:
        RefusedError: HPC784, the file cannot be used.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _refused(file, f"cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise _refused(file, "is no object")
    levels = {name: rule.level.value for name, rule in BY_NAME.items()}
    settings: dict[str, Mapping[str, Any]] = {}
    for name, given in document.items():
        rule = BY_NAME.get(name)
        if rule is None:
            raise _refused(file, f"there is no rule {name}")
        entry = {"enforcementLevel": given} if isinstance(given, str) else given
        if not isinstance(entry, dict):
            raise _refused(file, f"{name} is neither a level nor an object")
        level = entry.get("enforcementLevel", levels[name])
        if level not in _LEVELS:
            raise _refused(file, f"{name}: {level} is none of {', '.join(_LEVELS)}")
        unknown = set(entry) - set(rule.settings) - {"enforcementLevel"}
        if unknown:
            raise _refused(file, f"{name} has no setting {', '.join(sorted(unknown))}")
        levels[name] = level
        settings[name] = {key: value for key, value in entry.items() if key != "enforcementLevel"}
        for key, value in settings[name].items():
            if why := _misfit(value, rule.settings[key].schema):
                raise _refused(file, f"{name}: {key} {why}")
    return Environment(file, levels, settings)


def _misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Why a setting is not what its rule takes, or empty. The engine would say so later, and not in which file."""
    kind = schema["type"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "integer": is_number and float(value).is_integer(),
        "number": is_number,
        "boolean": isinstance(value, bool),
        "string": isinstance(value, str),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    if not fits[kind]:
        return f"is {json.dumps(value)}, which is no {kind}"
    if is_number and value < schema.get("minimum", value):
        return f"is {value}, below {schema['minimum']}"
    if is_number and value > schema.get("maximum", value):
        return f"is {value}, above {schema['maximum']}"
    inner = value if kind == "array" else value.values() if kind == "object" else ()
    part = schema.get("items") if kind == "array" else schema.get("additionalProperties")
    return next((f"has an entry that {why}" for item in inner if part and (why := _misfit(item, part))), "")


def _refused(file: Path, why: str) -> RefusedError:
    return RefusedError(f"{file.name}: {why}", code="HPC784", fix="see docs/policies/README.md, Environments")
