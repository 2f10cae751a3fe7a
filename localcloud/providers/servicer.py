"""The engine's provider protocol, once for all stand-ins: plain values in, plain values out."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from localcloud.providers.values import UNKNOWN, from_struct, to_struct


class ProviderError(Exception):
    """A resource operation failed; the engine shows the message."""


class Provider(ABC):
    """What a stand-in has to say for its resource types. All properties are plain values."""

    version: str

    @abstractmethod
    def serves(self, token: str) -> bool:
        """Whether this resource type is served."""

    @abstractmethod
    def configure(self, arguments: Mapping[str, Any]) -> None:
        """Take the provider's own inputs."""

    @abstractmethod
    def check(self, token: str, inputs: dict[str, Any]) -> list[tuple[str, str]]:
        """Problems of the inputs: (property, reason)."""

    @abstractmethod
    def replaces(self, token: str) -> frozenset[str]:
        """Inputs whose change replaces the resource."""

    @abstractmethod
    def preview_outputs(self, token: str, inputs: Mapping[str, Any]) -> frozenset[str]:
        """Outputs that are not known before the resource is made."""

    @abstractmethod
    def create(self, token: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Make it; id and properties."""

    @abstractmethod
    def read(self, token: str, identity: str, properties: dict[str, Any]) -> dict[str, Any] | None:
        """Properties now, or None when it is gone."""

    @abstractmethod
    def update(self, token: str, identity: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        """Change it; properties after that."""

    @abstractmethod
    def delete(self, token: str, identity: str, properties: dict[str, Any]) -> None:
        """Remove it."""

    @abstractmethod
    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a function (data source)."""


def _token(urn: str) -> str:
    return urn.split("::")[2].split("$")[-1]


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Speaks gRPC with the engine for one `Provider`."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._cancelled = threading.Event()

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Say what wire features are spoken: plain values only."""
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=False, accept_resources=False, accept_outputs=False
        )

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Version of the provider that is stood in for."""
        return plugin_pb2.PluginInfo(version=self._provider.version)

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """The engine has found us."""
        return empty_pb2.Empty()

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """No schema is served; the SDK has its own."""
        return provider_pb2.GetSchemaResponse(schema="{}")

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Provider inputs are taken as they are."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """A changed access key or endpoint replaces nothing."""
        return provider_pb2.DiffResponse()

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Take the provider's inputs."""
        self._provider.configure(from_struct(request.args))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=False, supportsPreview=True, acceptResources=False, acceptOutputs=False
        )

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Refuse inputs that the real provider would not take."""
        token = _token(request.urn)
        if not self._provider.serves(token):
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{token} is not served by the stand-in provider")
        problems = self._provider.check(token, from_struct(request.news))
        failures = [provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in problems]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Compare inputs; name what changes and what replaces."""
        token = _token(request.urn)
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        ignored = set(request.ignoreChanges)
        changed = sorted(key for key in {*old, *new} - ignored if old.get(key) != new.get(key))
        replaces = [key for key in changed if key in self._provider.replaces(token)]
        some = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=some, diffs=changed, replaces=replaces)

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Make the resource, or say at preview what is not known yet."""
        token, inputs = _token(request.urn), from_struct(request.properties)
        if request.preview:
            unknown = dict.fromkeys(self._provider.preview_outputs(token, inputs), UNKNOWN)
            return provider_pb2.CreateResponse(id="", properties=to_struct({**unknown, **inputs}))
        try:
            identity, properties = self._provider.create(token, inputs)
        except ProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return provider_pb2.CreateResponse(id=identity, properties=to_struct(properties))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Look at the resource; inputs are brought up to date, so that refresh shows drift."""
        token = _token(request.urn)
        before, inputs = from_struct(request.properties), from_struct(request.inputs)
        try:
            found = self._provider.read(token, request.id, before)
        except ProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        if found is None:
            return provider_pb2.ReadResponse()
        now = {key: found[key] if found.get(key) is not None else value for key, value in inputs.items()}
        properties = {**before, **now, **{key: value for key, value in found.items() if value is not None}}
        return provider_pb2.ReadResponse(id=request.id, properties=to_struct(properties), inputs=to_struct(now))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Change the resource in place."""
        token = _token(request.urn)
        old, new = from_struct(request.old_inputs), from_struct(request.news)
        if request.preview:
            return provider_pb2.UpdateResponse(properties=to_struct({**from_struct(request.olds), **new}))
        try:
            properties = self._provider.update(token, request.id, old, new)
        except ProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return provider_pb2.UpdateResponse(properties=to_struct(properties))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Remove the resource."""
        try:
            self._provider.delete(_token(request.urn), request.id, from_struct(request.properties))
        except ProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Call a function."""
        try:
            answer = self._provider.invoke(request.tok, from_struct(request.args))
        except ProviderError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(to_struct(answer))  # the field is named like a keyword
        return response

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        """Calls are short or bounded; nothing has to be broken off."""
        self._cancelled.set()
        return empty_pb2.Empty()
