"""Serving the pack: pulumi-policy's own server, with each resource shown only to the policies that look at its type.

pulumi-policy unpacks the inputs of a resource once for every policy, so that a pack of thirty policies spends most of
its time on unpacking for rules that then look away. It offers no way to say which types a policy is for, hence the
private class; the version is pinned, and a test compares both ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pulumi_policy
from pulumi_policy import Policy
from pulumi_policy import policy as library

from policies.adapter import Seen
from policies.registry import BY_NAME


class ByType(library._PolicyAnalyzerServicer):
    """The server of the library, with a server of its own for each type of resource."""

    #: Inputs that the rules about the stack go by.
    seen: Seen = Seen()

    def __init__(self, name: str, version: str, policies: list[Policy], *options: Any) -> None:
        super().__init__(name, version, policies, *options)
        self._name, self._version, self._options = name, version, options
        self._policies = policies
        self._told: dict[str, Any] = {}
        self._parts: dict[str, Any] = {}

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Keep the settings for the servers of the types."""
        return self._keep("Configure", request, context)

    def ConfigureStack(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Keep what the engine says of the stack."""
        return self._keep("ConfigureStack", request, context)

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Judge a resource."""
        return self._part(request.type).Analyze(request, context)

    def Remediate(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Mend a resource."""
        return self._part(request.type).Remediate(request, context)

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802  (name of the protocol)
        """Judge the stack. Of resources whose inputs were seen no rule reads the outputs, but for the id."""
        for resource in request.resources:
            if resource.urn in self.seen:
                identity = resource.properties.fields.get("id")
                kept = identity.string_value if identity is not None else ""
                resource.properties.Clear()
                if kept:
                    resource.properties["id"] = kept
        return super().AnalyzeStack(request, context)  # type: ignore[no-untyped-call]

    def _keep(self, call: str, request: Any, context: Any) -> Any:
        self._told[call] = request
        self._parts = {}
        return getattr(super(), call)(request, context)

    def _part(self, kind: str) -> Any:
        part = self._parts.get(kind)
        if part is None:
            part = library_server(self._name, self._version, looking_at(kind, self._policies), *self._options)
            for call, request in self._told.items():
                getattr(part, call)(request, None)
            self._parts[kind] = part
        return part


#: The library's server of a list of policies.
library_server: Any = library._PolicyAnalyzerServicer


def looking_at(kind: str, policies: Iterable[Policy]) -> list[Policy]:
    """The policies that look at a type: rules by what they say, all others always."""
    return [policy for policy in policies if policy.name not in BY_NAME or kind in BY_NAME[policy.name].types]


def serve(name: str, policies: list[Policy], seen: Seen) -> None:
    """Serve the pack until the engine ends it.

    Args:
        name: of the pack.
        policies: of the pack.
        seen: where they keep the inputs of resources.
    """
    ByType.seen = seen
    setattr(library, "_PolicyAnalyzerServicer", ByType)  # noqa: B010  a type checker takes no assignment to a class
    pulumi_policy.PolicyPack(name=name, policies=policies)
