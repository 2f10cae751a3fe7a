"""Runs a Pulumi program without an engine and records what it registers: behind the offline plan and the tests."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime import mocks, rpc, set_all_config, settings
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import run_in_stack

#: Answers a function call of a provider: token and arguments to the result.
Invokes = Callable[[str, Mapping[str, Any]], dict[str, Any]]

#: Outputs of a resource once it exists: type, name and inputs to properties beside the inputs.
Outputs = Callable[[str, str, Mapping[str, Any]], dict[str, Any]]


_STACK = "pulumi:pulumi:Stack"


class _Unknown:
    """A value that is known only once resources exist."""

    def __repr__(self) -> str:
        return "(known after up)"


#: The one value of its kind.
UNKNOWN = _Unknown()


@dataclass(frozen=True, slots=True)
class SecretValue:
    """A value that state holds encrypted."""

    value: Any

    def __repr__(self) -> str:
        return "(secret)"


@dataclass(frozen=True, slots=True)
class Registered:
    """One resource as the engine would have seen it.

    Attributes:
        urn: of the resource.
        type: type token.
        name: logical name.
        parent: URN of the parent, the stack's for its own children.
        custom: made by a provider, not a component.
        inputs: plain values, `UNKNOWN` and `SecretValue` among them.
        protect: deleting and replacing it is refused.
        retain_on_delete: the cloud keeps it when Pulumi forgets it.
        deleted_with: URN of the resource whose deletion deletes it, too.
        depends_on: URNs of what must exist before it.
        ignore_changes: inputs whose changes are not applied.
        secret_outputs: outputs that are secret in any case.
        aliases: URNs and names under which it was known before.
        provider: reference of an explicit provider, or empty.
    """

    urn: str
    type: str
    name: str
    parent: str
    custom: bool
    inputs: Mapping[str, Any]
    protect: bool
    retain_on_delete: bool
    deleted_with: str
    depends_on: tuple[str, ...]
    ignore_changes: tuple[str, ...]
    secret_outputs: tuple[str, ...]
    aliases: tuple[str, ...]
    provider: str


@dataclass(slots=True)
class Recording:
    """What a program did.

    Attributes:
        resources: in the order of registration.
        outputs: outputs of the stack.
        log: messages as (severity, text).
    """

    resources: list[Registered] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)


class _Mocks(mocks.Mocks):
    def __init__(self, invokes: Invokes) -> None:
        self._invokes = invokes

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        return self._invokes(args.token, args.args), []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        raise NotImplementedError  # RegisterResource is answered by the monitor itself


class _Monitor(mocks.MockMonitor):
    def __init__(self, recording: Recording, invokes: Invokes, outputs: Outputs | None) -> None:
        super().__init__(_Mocks(invokes))
        self._recording = recording
        self._outputs = outputs

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """As the engine does: all parents' types but the stack's are part of a URN."""
        above = parent.split("::")[2] if parent else ""
        qualified = type_ if above in ("", _STACK) else f"{above}${type_}"
        return f"urn:pulumi:{settings.get_stack()}::{settings.get_project()}::{qualified}::{name}"

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  (name of the protocol)
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == _STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        inputs = _plain_struct(request.object)
        self._recording.resources.append(
            Registered(
                urn=urn,
                type=request.type,
                name=request.name,
                parent=request.parent,
                custom=request.custom,
                inputs=inputs,
                protect=request.protect,
                retain_on_delete=request.retainOnDelete,
                deleted_with=request.deletedWith,
                depends_on=tuple(sorted(request.dependencies)),
                ignore_changes=tuple(request.ignoreChanges),
                secret_outputs=tuple(request.additionalSecretOutputs),
                aliases=tuple(_alias(alias) for alias in request.aliases),
                provider=request.provider or next(iter(request.providers.values()), ""),
            )
        )
        state = struct_pb2.Struct()
        state.CopyFrom(request.object)
        resource_id = ""
        if self._outputs is not None and request.custom:
            resource_id = f"{request.name}-id"
            state.update(self._outputs(request.type, request.name, inputs))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=resource_id, object=state)

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802  (name of the protocol)
        if request.urn.split("::")[2] == _STACK:
            self._recording.outputs.update(_plain_struct(request.outputs))
        return empty_pb2.Empty()


class _Engine:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._root = ""

    def Log(self, request: Any) -> Any:  # noqa: N802  (name of the protocol)
        severity = ("debug", "info", "warning", "error")[request.severity]
        if severity != "debug":
            self._recording.log.append((severity, request.message))
        return empty_pb2.Empty()

    def RequirePulumiVersion(self, request: Any) -> Any:  # noqa: N802  (name of the protocol)
        return empty_pb2.Empty()


def record(
    program: Callable[[], None],
    *,
    invokes: Invokes,
    outputs: Outputs | None = None,
    config: Mapping[str, str] | None = None,
    project: str = "hpc",
    stack: str = "dev",
) -> Recording:
    """Run a program in a fresh Pulumi run-time; neither an engine nor a provider is needed.

    Args:
        program: declares the resources.
        invokes: answers function calls of providers.
        outputs: makes the outputs of resources; without it the run is a preview, in which they are unknown.
        config: the stack's configuration, `hpc:cluster` to its JSON text and so on.
        project: name of the project.
        stack: name of the stack.

    Raises:
        Exception: whatever the program raises.
    """
    recording = Recording()
    record_into(recording, program, invokes=invokes, outputs=outputs, config=config or {}, project=project, stack=stack)
    return recording


def record_into(
    recording: Recording,
    program: Callable[[], None],
    *,
    invokes: Invokes,
    outputs: Outputs | None,
    config: Mapping[str, str],
    project: str,
    stack: str,
) -> None:
    """Like `record`, into a recording that the caller has even when the program fails."""

    def run() -> None:
        settings.set_root_resource(None)  # type: ignore[arg-type]
        set_all_config(dict(config))
        monitor = _Monitor(recording, invokes, outputs)
        features = monitor.GetDeploymentInfo(empty_pb2.Empty()).supportedFeatures  # type: ignore[no-untyped-call]
        settings.configure(
            mocks.MockSettings(  # type: ignore[no-untyped-call]
                monitor=monitor,
                monitor_features=set(features),
                engine=_Engine(recording),
                project=project,
                stack=stack,
                dry_run=outputs is None,
                organization="organization",
                root_directory="",
                lock=settings.SETTINGS.lock,
                outputs=set(),
                package_refs={},
                base_providers_by_ref={},
                callbacks=None,
            )
        )
        loop = asyncio.new_event_loop()
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(run_in_stack(program))
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    # Pulumi keeps its run-time state in context variables: this run sees none of another one and leaves none behind.
    contextvars.copy_context().run(run)


def _alias(alias: Any) -> str:
    if alias.WhichOneof("alias") == "urn":
        return str(alias.urn)
    spec = alias.spec
    return f"{spec.type}::{spec.name}"


def _plain_struct(struct: Any) -> dict[str, Any]:
    return {key: _plain(value) for key, value in struct.fields.items()}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = value.struct_value.fields
        if rpc._special_sig_key in fields:
            if fields[rpc._special_sig_key].string_value == rpc._special_secret_sig:
                return SecretValue(_plain(fields["value"]))
            if "urn" in fields:
                return fields["urn"].string_value
        return _plain_struct(value.struct_value)
    if kind == "list_value":
        return [_plain(item) for item in value.list_value.values]
    if kind == "string_value":
        return UNKNOWN if value.string_value == rpc.UNKNOWN else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return value.bool_value if kind == "bool_value" else None


def unwrap(value: Any) -> Any:
    """A value without the marks of secrets, for looking into it."""
    if isinstance(value, SecretValue):
        return unwrap(value.value)
    if isinstance(value, Mapping):
        return {key: unwrap(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [unwrap(item) for item in value]
    return value
