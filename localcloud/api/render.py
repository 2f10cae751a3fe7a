"""Answers as JSON or as XML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape


def to_json(document: Mapping[str, Any]) -> bytes:
    """Compact JSON in UTF-8."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _xml(name: str, value: Any, out: list[str]) -> None:
    if isinstance(value, list):
        for item in value:
            _xml(name, item, out)
        return
    out.append(f"<{name}>")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _xml(str(key), item, out)
    elif isinstance(value, bool):
        out.append("true" if value else "false")
    elif value is not None:
        out.append(escape("".join(c for c in str(value) if (c >= " " and c not in "\ufffe\uffff") or c in "\t\n\r")))
    out.append(f"</{name}>")


def to_xml(root: str, document: Mapping[str, Any]) -> bytes:
    """XML under `root`; a list becomes repeated elements of its own name."""
    out = ['<?xml version="1.0" encoding="UTF-8"?>']
    _xml(root, document, out)
    return "".join(out).encode("utf-8", "replace")
