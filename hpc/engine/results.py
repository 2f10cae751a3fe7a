"""What a run of the engine did or would do, folded from its events into plain, frozen data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent, StepEventMetadata

#: Operations that change nothing.
UNCHANGED = frozenset({"same", "read", "refresh", "read-discard"})

_ANSI = re.compile(r"\x1b\[[0-9;]*m|<\{%[^%]*%\}>")


def clean(text: str) -> str:
    """Engine text without colour codes."""
    return _ANSI.sub("", text).strip()


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one resource.

    Attributes:
        urn: the engine's name of it.
        type: resource type, e.g. `alicloud:vpc/network:Network`.
        name: logical name.
        operation: `create`, `update`, `replace`, `delete`, `same`, `refresh`, ...
        changed: inputs that differ.
        replacing: inputs whose change causes a replacement.
        values: of the project's own components: each input that differs, with the value before and after.
    """

    urn: str
    type: str
    name: str
    operation: str
    changed: tuple[str, ...] = ()
    replacing: tuple[str, ...] = ()
    values: tuple[tuple[str, Any, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """A policy that was violated, or could not be run.

    Attributes:
        policy: name of the rule.
        pack: name of the policy pack.
        level: `advisory`, `mandatory`, `remediate` or `disabled`.
        urn: resource, or "" for a rule about the whole stack.
        message: what the rule says.
        could_not_run: the rule met an unknown value, so it says nothing.
    """

    policy: str
    pack: str
    level: str
    urn: str
    message: str
    could_not_run: bool


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message of the engine, a provider or the program: `severity` is `info`, `warning` or `error`."""

    severity: str
    urn: str
    message: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """One preview, up, refresh or destroy.

    Attributes:
        kind: `preview`, `up`, `refresh` or `destroy`.
        succeeded: the engine says so.
        changes: one per resource.
        policies: violations, and rules that could not run.
        diagnostics: warnings and errors.
        outputs: stack outputs with secrets masked (up only).
        seconds: duration in s.
        packs: names of the policy packs that ran.
        before: inputs of the project's components as they were before the run, by URN.
    """

    kind: str
    succeeded: bool
    changes: tuple[Change, ...]
    policies: tuple[PolicyViolation, ...]
    diagnostics: tuple[Diagnostic, ...]
    outputs: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    packs: tuple[str, ...] = ()
    before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def count(self, *operations: str) -> int:
        """Number of resources with one of these operations."""
        return sum(change.operation in operations for change in self.changes)

    @property
    def changed(self) -> tuple[Change, ...]:
        """Changes that are changes."""
        return tuple(change for change in self.changes if change.operation not in UNCHANGED)

    @property
    def first_error(self) -> str:
        """The first error message that is not the engine's own summary, or ""."""
        errors = [d.message for d in self.diagnostics if d.severity == "error"]
        telling = [message for message in errors if "failed" not in message.lower().split("\n")[0][:20]]
        return (telling or errors or [""])[0]


class EventFolder:
    """Collects the events of one run; `result` gives what they say."""

    def __init__(self) -> None:
        self._changes: dict[str, Change] = {}
        self._policies: list[PolicyViolation] = []
        self._diagnostics: list[Diagnostic] = []
        self._packs: tuple[str, ...] = ()
        self._before: dict[str, Mapping[str, Any]] = {}

    def add(self, event: EngineEvent) -> None:
        """Take one event of the engine."""
        # A refresh learns what changed only after it has looked, hence both kinds of steps.
        for step in (event.resource_pre_event, event.res_outputs_event):
            if step:
                self._step(step.metadata)
        if policy := event.policy_event:
            message = clean(policy.message)
            self._policies.append(
                PolicyViolation(
                    policy=policy.policy_name,
                    pack=policy.policy_pack_name,
                    level=policy.enforcement_level,
                    urn=policy.resource_urn or "",
                    message=message,
                    could_not_run="can't run policy" in message,
                )
            )
        if summary := event.summary_event:
            # Of a pack in a folder the engine says "name|local|folder".
            self._packs = tuple(name.split("|")[0] for name in summary.policy_packs or ())
        if (told := event.diagnostic_event) and not told.ephemeral and (message := clean(told.message)):
            self._diagnostics.append(Diagnostic(told.severity.split("#")[0], told.urn or "", message))

    def _step(self, step: StepEventMetadata) -> None:
        operation = str(step.op.value)
        if step.old and step.old.type.startswith("hpc:"):
            self._before.setdefault(step.urn, dict(step.old.inputs or {}))
        if operation in ("create-replacement", "delete-replaced", "discard", "remove-pending-replace"):
            return
        earlier = self._changes.get(step.urn)
        if earlier and earlier.operation == "replace" and operation != "replace":
            return
        kind = step.urn.split("::")[2].split("$")[-1]
        # The engine says of a component that it changes, but not how.
        values = _differences(step) if kind.startswith("hpc:") and operation == "update" else ()
        self._changes[step.urn] = Change(
            urn=step.urn,
            type=kind,
            name=step.urn.split("::", 3)[-1],
            operation=operation,
            changed=tuple(step.diffs or (name for name, _, _ in values)),
            replacing=tuple(step.keys or ()) if operation == "replace" else (),
            values=values,
        )

    def fail(self, message: str) -> None:
        """Note why a run failed that had no event to say so."""
        self._diagnostics.append(Diagnostic("error", "", clean(message)))

    def result(self, kind: str, *, succeeded: bool, outputs: Mapping[str, Any], seconds: float) -> RunResult:
        """Everything that was told."""
        return RunResult(
            kind,
            succeeded,
            tuple(self._changes.values()),
            tuple(self._policies),
            tuple(self._diagnostics),
            outputs,
            seconds,
            self._packs,
            self._before,
        )


def _differences(step: StepEventMetadata) -> tuple[tuple[str, Any, Any], ...]:
    old = (step.old.inputs or {}) if step.old else {}
    new = (step.new.inputs or {}) if step.new else {}
    names = sorted({*old, *new})
    return tuple((name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name))
