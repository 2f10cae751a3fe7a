"""Titles, explanations and fixes of the rules, from their codes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hpc.spec.codes import Code, read_codes
from policies.model import Rule

#: Folder of the generated pages.
PAGES = "docs/policies"


@cache
def codes() -> dict[str, Code]:
    """Codes of the pack by name."""
    return {code.code: code for code in read_codes(Path(__file__).with_name("codes.toml"))}


def page_of(rule: Rule) -> str:
    """Path of a rule's page in the repository."""
    return f"{PAGES}/{rule.name}.md"
