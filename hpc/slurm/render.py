"""The one jinja2 environment: undefined names are errors, no stray blank lines."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    # The output is configuration and shell, never HTML; values that reach a shell are quoted by their callers.
    return Environment(
        loader=PackageLoader("hpc.slurm"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )


def render(template: str, **values: Any) -> str:
    """Render one of the templates beside this module."""
    return _environment().get_template(template).render(**values)
