"""From what pulumi-policy hands to a policy to what the rules look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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


def resource_of(args: ResourceValidationArgs) -> Resource:
    """One resource with its inputs."""
    region = plain(args.provider.props).get("region") if args.provider else None
    return Resource(
        type=args.resource_type,
        name=args.name,
        props=Props(plain(args.props)),
        urn=args.urn,
        protect=bool(args.opts.protect),
        parent=args.opts.parent or "",
        region=region if isinstance(region, str) else "",
    )


class Seen:
    """The inputs of every resource of a run, kept for the rules about the whole stack.

    The engine shows those rules outputs only: of a component that is what it registered at its end, which has none of
    the figures that a rule judges, and at a preview inputs that are not known yet are simply missing.
    """

    def __init__(self) -> None:
        self._resources: dict[str, Resource] = {}

    def __contains__(self, urn: str) -> bool:
        return urn in self._resources

    def take(self, args: ResourceValidationArgs) -> None:
        """Look at a resource anew. The first policy of the pack does so, before any rule asks."""
        self._resources[args.urn] = resource_of(args)

    def resource(self, args: ResourceValidationArgs) -> Resource:
        """A resource as it was seen last."""
        return self._resources.get(args.urn) or resource_of(args)

    def stack(self, resources: Sequence[PolicyResource]) -> Stack:
        """All resources of a stack, with their inputs and what those come from."""
        return Stack(tuple(self._whole(resource) for resource in resources))

    def _whole(self, args: PolicyResource) -> Resource:
        identity = _read(args.props, "id") if "id" in args.props else None
        known = self._resources.get(args.urn)
        if known is None:
            # The run did not register it (a run with targets, for instance): its outputs are all there is.
            known = Resource(args.resource_type, args.name, Props(plain(args.props)), args.urn)
        sources = {key: tuple(one.urn for one in found) for key, found in args.property_dependencies.items()}
        parent = args.parent.urn if args.parent else (args.opts.parent or "")
        props = known.props if identity is None else Props({**known.props.values, "id": identity})
        return replace(known, props=props, protect=bool(args.opts.protect), parent=parent, sources=sources)
