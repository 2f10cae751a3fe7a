"""Serving the pack: pulumi-policy's own server, made fast.

pulumi-policy unpacks the inputs of a resource once for every policy, and all resources of a stack once for every policy
about the stack, so that a pack of thirty policies spends its time on unpacking for rules that then look away. Here each
message is unpacked once, a resource is shown only to the policies that look at its type, and what reaches the library
has no inputs left in it. The library offers no way to do so, hence the private class; the version is pinned, and a test
holds the answers of both servers together.
"""

from __future__ import annotations

import faulthandler
from collections.abc import Iterable, Mapping
from typing import Any

import pulumi_policy
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel, Policy
from pulumi_policy import policy as library
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.proxy import _is_unknown

from policies.adapter import Seen
from policies.model import Resource, Stack
from policies.pack import INPUTS
from policies.props import UNKNOWN, Props
from policies.registry import BY_NAME

#: The library's server of a list of policies.
library_server: Any = library._PolicyAnalyzerServicer


def unpacked(value: Any) -> Any:
    """A protobuf value as rules see it: secrets in clear, `UNKNOWN` where it is known only after deployment."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        return UNKNOWN if _is_unknown(text) else text
    if kind == "struct_value":
        fields = value.struct_value.fields
        if SPECIAL_SIG_KEY in fields and fields[SPECIAL_SIG_KEY].string_value == SPECIAL_SECRET_SIG:
            return unpacked(fields["value"])
        return {key: unpacked(item) for key, item in fields.items()}
    if kind == "list_value":
        return [unpacked(item) for item in value.list_value.values]
    if kind == "bool_value":
        return bool(value.bool_value)
    return value.number_value if kind == "number_value" else None


def resource_in(request: Any, sources: Mapping[str, tuple[str, ...]] | None = None, parent: str = "") -> Resource:
    """The resource of a message, inputs unpacked."""
    region: Any = ""
    if request.HasField("provider") and "region" in request.provider.properties.fields:
        region = unpacked(request.provider.properties.fields["region"])
    return Resource(
        type=request.type,
        name=request.name,
        props=Props({key: unpacked(value) for key, value in request.properties.fields.items()}),
        urn=request.urn,
        protect=request.options.protect,
        parent=parent or request.options.parent,
        region=region if isinstance(region, str) else "",
        sources=sources or {},
    )


class Part(library._PolicyAnalyzerServicer):
    """The library's server of the policies that look at one type."""

    mends = False

    def settle(self, policies: Iterable[Policy]) -> None:
        """Note what follows from the settings, once they are known."""
        self.mends = any(self._get_enforcement_level(policy) is EnforcementLevel.REMEDIATE for policy in policies)

    def _configure_runtime_settings(self) -> None:
        """No rule asks the Pulumi runtime for anything; the library would read the stack's settings at each message."""


class ByType(Part):
    """The server of the pack, with a server of its own for each type of resource."""

    #: Inputs that the rules about the stack go by.
    seen: Seen = Seen()

    def __init__(self, name: str, version: str, policies: list[Policy], *options: Any) -> None:
        super().__init__(name, version, policies, *options)
        self._name, self._version, self._options = name, version, options
        self._policies = policies
        self._told: dict[str, Any] = {}
        self._parts: dict[str, Part | None] = {}

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Keep the settings for the servers of the types."""
        return self._keep("Configure", request, context)

    def ConfigureStack(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Keep what the engine says of the stack."""
        return self._keep("ConfigureStack", request, context)

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Judge a resource."""
        self.seen.keep(resource_in(request))
        part = self._part(request.type)
        if part is None:
            return proto.AnalyzeResponse()
        request.properties.Clear()
        request.ClearField("provider")
        return part.Analyze(request, context)  # type: ignore[no-untyped-call]

    def Remediate(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Mend a resource."""
        part = self._part(request.type)
        if part is None or not part.mends:
            return proto.RemediateResponse()
        return part.Remediate(request, context)  # type: ignore[no-untyped-call]

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Judge the stack, which is unpacked here once for all rules."""
        self.seen.whole = Stack(tuple(self._deployed(resource) for resource in request.resources))
        del request.resources[:]
        return super().AnalyzeStack(request, context)  # type: ignore[no-untyped-call]

    def _deployed(self, resource: Any) -> Resource:
        identity = resource.properties.fields.get("id")
        if resource.urn in self.seen:
            resource.properties.Clear()  # no rule reads the outputs of what was seen
        sources = {key: tuple(found.urns) for key, found in resource.propertyDependencies.items()}
        read = resource_in(resource, sources, resource.parent)
        return self.seen.deployed(read, None if identity is None else unpacked(identity))

    def _keep(self, call: str, request: Any, context: Any) -> Any:
        self._told[call] = request
        self._parts = {}
        return getattr(super(), call)(request, context)

    def _part(self, kind: str) -> Part | None:
        if kind not in self._parts:
            policies = looking_at(kind, self._policies)
            self._parts[kind] = self._made(policies) if policies else None
        return self._parts[kind]

    def _made(self, policies: list[Policy]) -> Part:
        part = Part(self._name, self._version, policies, *self._options)
        for call, request in self._told.items():
            getattr(part, call)(request, None)
        part.settle(policies)
        return part


def looking_at(kind: str, policies: Iterable[Policy]) -> list[Policy]:
    """The policies that look at a type: rules by what they say, others always but for the one that keeps the inputs."""
    return [
        policy
        for policy in policies
        if (kind in BY_NAME[policy.name].types if policy.name in BY_NAME else policy.name != INPUTS)
    ]


def serve(name: str, policies: list[Policy], seen: Seen) -> None:
    """Serve the pack until the engine ends it.

    Args:
        name: of the pack.
        policies: of the pack.
        seen: where they keep the inputs of resources.
    """
    ByType.seen = seen
    faulthandler.cancel_dump_traceback_later()  # from here on nothing can keep it from serving
    setattr(library, "_PolicyAnalyzerServicer", ByType)  # noqa: B010  a type checker takes no assignment to a class
    pulumi_policy.PolicyPack(name=name, policies=policies)
