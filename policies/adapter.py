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
        #: The whole stack where the server has read it already.
        self.whole: Stack | None = None

    def __contains__(self, urn: str) -> bool:
        return urn in self._resources

    def keep(self, resource: Resource) -> None:
        """Look at a resource anew."""
        self._resources[resource.urn] = resource

    def take(self, args: ResourceValidationArgs) -> None:
        """Look at a resource anew. The first policy of the pack does so, before any rule asks."""
        self.keep(resource_of(args))

    def resource(self, args: ResourceValidationArgs) -> Resource:
        """A resource as it was seen last."""
        return self._resources.get(args.urn) or resource_of(args)

    def stack(self, resources: Sequence[PolicyResource]) -> Stack:
        """All resources of a stack, with their inputs and what those come from."""
        return self.whole or Stack(tuple(self._from_policy(resource) for resource in resources))

    def _from_policy(self, args: PolicyResource) -> Resource:
        return self.deployed(
            Resource(
                args.resource_type,
                args.name,
                # What the run did not register (a run with targets, for instance) has nothing but its outputs.
                Props({} if args.urn in self else plain(args.props)),
                args.urn,
                bool(args.opts.protect),
                args.parent.urn if args.parent else (args.opts.parent or ""),
                sources={key: tuple(one.urn for one in found) for key, found in args.property_dependencies.items()},
            ),
            _read(args.props, "id") if "id" in args.props else None,
        )

    def deployed(self, resource: Resource, identity: Any) -> Resource:
        """A resource as rules about the stack see it: with the inputs that were kept of it, and its id.

        Args:
            resource: what the engine says of it at the end of the run.
            identity: its id, `UNKNOWN`, or None where it has none.
        """
        known = self._resources.get(resource.urn)
        props = known.props if known else resource.props
        return replace(
            resource,
            props=props if identity is None else Props({**props.values, "id": identity}),
            region=known.region if known else "",
        )
