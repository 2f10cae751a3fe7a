"""What no other rule can judge."""

from __future__ import annotations

from collections.abc import Iterator

from policies import kinds
from policies.model import UNVERIFIED, Config, Resource, Rule, Setting, Severity


def judged_types(resource: Resource, config: Config) -> Iterator[str]:
    """Machines by a type whose inputs no rule reads."""
    if resource.type not in config["allowed"]:
        yield (
            f"{UNVERIFIED}no rule looks at {resource.type}, so neither its price nor anything else of it is known; "
            f"use {kinds.UNJUDGED[resource.type]}"
        )


RULES = (
    Rule(
        name="hpc-judged-types",
        code="HPC761",
        severity=Severity.HIGH,
        types=tuple(kinds.UNJUDGED),
        settings={
            "allowed": Setting(
                {"type": "array", "items": {"type": "string"}},
                [],
                "Type tokens that are accepted although no rule looks at them.",
            )
        },
        checks=(judged_types,),
    ),
)
