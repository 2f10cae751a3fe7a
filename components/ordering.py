"""Making a value wait for resources that it does not come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pulumi

Value = TypeVar("Value")


def after(value: pulumi.Output[Value], resources: Iterable[pulumi.Resource]) -> pulumi.Output[Value]:
    """The value, for resources that may be made only once others are there.

    `depends_on` of a component does not reach the resources in it; a dependency of an input does.

    Args:
        value: what is handed on.
        resources: what must be there first; a component stands for all resources in it.
    """
    urns = [resource.urn for resource in resources]
    waiting: pulumi.Output[tuple[Value, list[str]]] = pulumi.Output.all(value, urns)  # type: ignore[assignment]
    return waiting.apply(lambda known: known[0])
