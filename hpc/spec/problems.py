"""What pydantic has to say, in the words of the stack file: code, path, message and fix."""

from __future__ import annotations

import difflib
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from hpc.findings import Finding
from hpc.spec.cluster import ClusterSpec
from hpc.spec.codes import finding

_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a section of keys and values",
    "model_type": "a section of keys and values",
    "model_attributes_type": "a section of keys and values",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
}
_BOUNDS = {
    "greater_than_equal": ("is below {}, the least that is possible", "ge"),
    "greater_than": ("must be more than {}", "gt"),
    "less_than_equal": ("is above {}, the most that is possible", "le"),
    "less_than": ("must be less than {}", "lt"),
}
_UNITS = ("hpc_duration", "hpc_cidr", "hpc_port_range", "hpc_money", "hpc_memory")


def problem(error: Any, path: str, value: Any) -> Finding:
    """One error of pydantic as a finding.

    Args:
        error: an entry of `ValidationError.errors()`.
        path: of the value in the stack file.
        value: what the user wrote there.
    """
    kind, context, said = error["type"], error.get("ctx") or {}, error["msg"]
    name = str(error["loc"][-1]) if error["loc"] else ""
    if kind == "extra_forbidden":
        return _unknown_key(error["loc"], path, value)
    if kind == "missing":
        return finding("HPC031", path, None, f"the key {name} is missing", f"add {name}{_about(error['loc'])}")
    if kind in _TYPES:
        return finding("HPC032", path, value, f"must be {_TYPES[kind]}, not {_kind_of(value)}")
    if kind in ("enum", "literal_error"):
        return _not_among(context, path, value)
    if kind in _BOUNDS:
        text, key = _BOUNDS[kind]
        return finding("HPC034", path, value, text.format(context.get(key)))
    if kind in ("too_short", "too_long"):
        least, most = context.get("min_length"), context.get("max_length")
        wanted = f"at least {least}" if kind == "too_short" else f"at most {most}"
        return finding(
            "HPC036", path, value, f"has {context.get('actual_length', 'too many')} entries instead of {wanted}"
        )
    if kind in ("string_too_long", "string_too_short"):
        return finding("HPC035", path, value, said[0].lower() + said[1:])
    if kind in _UNITS:
        return finding("HPC037", path, value, said, _like(said))
    if kind.startswith("hpc_"):
        return finding("HPC035", path, value, said, _like(said))
    if kind == "string_pattern_mismatch":
        return finding("HPC035", path, value, "has characters that are not allowed there")
    return finding("HPC032", path, value, f"cannot be used: {said[0].lower() + said[1:]}")


def suggestion(loc: tuple[str | int, ...]) -> str | None:
    """The key that was probably meant where `loc` ends in an unknown one."""
    model = model_at(loc[:-1])
    if model is None:
        return None
    written = str(loc[-1])[:64].lower().replace("-", "_")
    known = list(model.model_fields)
    begins = [key for key in known if len(key) >= 3 and (written.startswith(key) or key.startswith(written[:20]))]
    if len(begins) == 1 and len(written) >= 3:
        return begins[0]
    return closest(written, known)


def closest(word: str, known: Any) -> str | None:
    """The most similar of some words, or None."""
    close = difflib.get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def _unknown_key(loc: tuple[str | int, ...], path: str, value: Any) -> Finding:
    model = model_at(loc[:-1])
    known = ", ".join(model.model_fields) if model else ""
    meant = suggestion(loc)
    fix = f"write {meant}" if meant else f"remove it; the keys here are: {known}"
    return finding("HPC030", path, value, f"the key {str(loc[-1])[:80]} is not known", fix)


def _not_among(context: dict[str, Any], path: str, value: Any) -> Finding:
    allowed = str(context.get("expected", "")).replace("'", "").replace(" or ", ", ").split(", ")
    meant = closest(value.lower(), allowed) if isinstance(value, str) else None
    return finding(
        "HPC033",
        path,
        value,
        f"is none of: {', '.join(allowed)}",
        f"write {meant}" if meant else f"use one of: {', '.join(allowed)}",
    )


def _like(said: str) -> str | None:
    """The fix that an example in the message gives."""
    _, found, example = said.partition(" such as ")
    return f"write it like {example}" if found else None


def _kind_of(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a whole number", float: "a number with a fraction", list: "a list", dict: "a section"}
    return names.get(type(value), type(value).__name__)


def _about(loc: tuple[str | int, ...]) -> str:
    model = model_at(loc[:-1])
    field = model.model_fields.get(str(loc[-1])) if model else None
    text = (field.description or "") if field else ""
    return f": {text.split(';')[0].rstrip('.')}" if text else ""


@cache
def _submodel(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    field = model.model_fields.get(key)
    return _model_in(field.annotation) if field else None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in get_args(annotation):
        if found := _model_in(part):
            return found
    return None


def model_at(loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The model whose keys stand at `loc`, or None where there is none."""
    model: type[BaseModel] | None = ClusterSpec
    inside = False  # in a mapping by name, such as `usage`, whose key is followed by a model
    for part in loc:
        if isinstance(part, int):
            continue
        if inside:
            inside = False
            continue
        if model is None:
            return None
        field = model.model_fields.get(part)
        inside = field is not None and getattr(field.annotation, "__origin__", None) is dict
        model = _submodel(model, part)
    return model
