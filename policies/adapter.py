"""From what pulumi-policy hands to a policy to what the rules look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulumi_policy import PolicyResource, ResourceValidationArgs
from pulumi_policy.proxy import UnknownValueError

from policies.model import Resource, Stack
from policies.props import UNKNOWN, Props


def plain(value: Any) -> Any:
    """A value without proxies; `UNKNOWN` where looking at it is refused."""
    if isinstance(value, Mapping):
        return {key: _read(value, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_read(value, index) for index in range(len(value))]
    return value


def _read(values: Any, key: Any) -> Any:
    try:
        return plain(values[key])
    except UnknownValueError:
        return UNKNOWN


def resource_of(args: ResourceValidationArgs | PolicyResource) -> Resource:
    """One resource."""
    region = plain(args.provider.props).get("region") if args.provider else None
    parent: Any = getattr(args, "parent", None)
    dependencies: Mapping[str, Sequence[PolicyResource]] = getattr(args, "property_dependencies", {})
    return Resource(
        type=args.resource_type,
        name=args.name,
        props=Props(plain(args.props)),
        urn=args.urn,
        protect=bool(args.opts.protect),
        parent=parent.urn if parent is not None else (args.opts.parent or ""),
        region=region if isinstance(region, str) else "",
        sources={key: tuple(one.urn for one in found) for key, found in dependencies.items()},
    )


def stack_of(resources: Sequence[PolicyResource]) -> Stack:
    """All resources of a stack."""
    return Stack(tuple(resource_of(resource) for resource in resources))
