"""Types of the rules: what a rule is, what it looks at, what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from policies.props import Props, UnverifiedError

Config = Mapping[str, Any]

#: First words of what a rule says where it could not judge.
UNVERIFIED = "could not be verified: "


class Level(StrEnum):
    """What a violation does: a mandatory one fails the preview, a remediated one is mended where that is possible."""

    ADVISORY = "advisory"
    MANDATORY = "mandatory"
    REMEDIATE = "remediate"
    DISABLED = "disabled"

    @property
    def refuses(self) -> bool:
        """Whether a violation fails the preview."""
        return self in (Level.MANDATORY, Level.REMEDIATE)


class Severity(StrEnum):
    """How bad a violation is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


@dataclass(frozen=True)
class Resource:
    """A resource as a rule sees it.

    Attributes:
        type: type token.
        name: logical name.
        props: its inputs.
        urn: of the resource.
        protect: deleting and replacing it is refused.
        parent: URN of the component that it belongs to, or empty.
        region: region of its provider, or empty where that is not known.
        sources: URNs of the resources that an input comes from, by input; known to rules about the stack only.
    """

    type: str
    name: str
    props: Props
    urn: str = ""
    protect: bool = False
    parent: str = ""
    region: str = ""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stack:
    """All resources of a stack."""

    resources: tuple[Resource, ...]

    @cached_property
    def by_urn(self) -> Mapping[str, Resource]:
        """Resources by URN."""
        return {resource.urn: resource for resource in self.resources}

    def of(self, *types: str) -> Iterator[Resource]:
        """Resources of some types."""
        return (resource for resource in self.resources if resource.type in types)

    def above(self, resource: Resource) -> Iterator[Resource]:
        """The components that a resource belongs to, the nearest first."""
        seen = {resource.urn}
        urn = resource.parent
        while urn and urn not in seen and (parent := self.by_urn.get(urn)):
            seen.add(urn)
            yield parent
            urn = parent.parent


@dataclass(frozen=True, slots=True)
class Violation:
    """What a rule says.

    Attributes:
        message: what is wrong, with the value and the input.
        urn: resource, or empty for the whole stack.
        name: logical name of the resource, or empty.
        unverified: nothing is known to be wrong, but the rule could not be checked.
    """

    message: str
    urn: str = ""
    name: str = ""
    unverified: bool = False


Check = Callable[[Resource, Config], Iterable[str]]
StackCheck = Callable[[Stack, Config], Iterable[Violation]]
Remedy = Callable[[Resource, Config], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Setting:
    """A setting of a rule.

    Attributes:
        schema: JSON schema of its value, without the default.
        default: its value unless given.
        meaning: one sentence, with the unit.
    """

    schema: Mapping[str, Any]
    default: Any
    meaning: str


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        name: name of the policy.
        code: stable code, declared in codes.toml with title, explanation and fix.
        severity: how bad a violation is.
        types: types of the resources that it looks at; of a rule about the stack, those that it judges.
        level: unless an environment says otherwise.
        settings: by name.
        checks: each is run by itself, so that an unknown input of one keeps no other from speaking.
        stack_check: for rules about the whole stack.
        remedy: gives the inputs that mend a resource, or None where there is nothing to mend or it would not be safe.
    """

    name: str
    code: str
    severity: Severity
    types: tuple[str, ...]
    level: Level = Level.MANDATORY
    settings: Mapping[str, Setting] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    stack_check: StackCheck | None = None
    remedy: Remedy | None = None

    def configured(self, given: Mapping[str, Any] | None) -> Config:
        """Settings with their defaults."""
        given = given or {}
        return {name: given.get(name, setting.default) for name, setting in self.settings.items()}


def check_resource(rule: Rule, resource: Resource, given: Mapping[str, Any] | None = None) -> list[Violation]:
    """What a rule says of a resource. It never raises: what cannot be judged is a violation."""
    if resource.type not in rule.types:
        return []
    config = rule.configured(given)
    found: list[Violation] = []
    for check in rule.checks:
        found += _guarded(lambda check=check: check(resource, config), resource)  # type: ignore[misc]
    return found


def check_stack(rule: Rule, stack: Stack, given: Mapping[str, Any] | None = None) -> list[Violation]:
    """What a rule says of a stack. It never raises: what cannot be judged is a violation."""
    if rule.stack_check is None:
        return []
    found: list[Violation] = []
    try:
        found.extend(rule.stack_check(stack, rule.configured(given)))
    except Exception as error:
        found.append(Violation(f"{UNVERIFIED}{error}", unverified=True))
    return found


def each(resources: Iterable[Resource], check: Callable[[Resource], Iterable[str]]) -> Iterator[Violation]:
    """Judge resources of a stack one by one, so that an unknown input of one keeps no other from being judged."""
    for resource in resources:
        yield from _guarded(lambda resource=resource: check(resource), resource)  # type: ignore[misc]


def _guarded(check: Callable[[], Iterable[str]], resource: Resource) -> list[Violation]:
    found: list[Violation] = []
    try:
        for message in check():
            found.append(Violation(message, resource.urn, resource.name, message.startswith(UNVERIFIED)))
    except UnverifiedError as error:
        message = f"{UNVERIFIED}{error}"
        found.append(Violation(message, resource.urn, resource.name, unverified=True))
    except Exception as error:
        message = f"{UNVERIFIED}the rule failed on it ({type(error).__name__}: {error})"
        found.append(Violation(message, resource.urn, resource.name, unverified=True))
    return found
