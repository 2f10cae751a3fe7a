"""The pack: each rule as a policy of pulumi-policy, waivers applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)

from hpc.errors import RefusedError
from hpc.spec.codes import Code
from policies.adapter import Seen, resource_of
from policies.model import Rule, Violation, check_resource, check_stack
from policies.registry import BY_NAME, RULES
from policies.texts import codes, page_of
from policies.waivers import Waivers, load_waivers

#: Name of the pack, as in PulumiPolicy.yaml.
PACK = "hpc"

#: Policies beside the rules: what waivers cover, and whether they can be used at all.
WAIVED = "hpc-waived"
WAIVERS = "hpc-waivers"

#: Subject of what rules say of the whole stack; no URN is so short.
_STACK = "stack"

#: The policy that comes first and says nothing: it keeps the inputs of all resources.
INPUTS = "hpc-inputs"


def policies(rules: Iterable[Rule] = RULES, today: date | None = None, seen: Seen | None = None) -> list[Policy]:
    """All policies of the pack.

    Args:
        rules: to be registered.
        seen: where the inputs of resources are kept.
        today: the day on which waivers count; today in UTC unless given.
    """
    problem = ""
    try:
        waivers = load_waivers(today or datetime.now(UTC).date(), BY_NAME.keys())
    except RefusedError as error:
        waivers, problem = Waivers(), f"{error.message} (fix: {error.fix})"
    known = codes()
    rules, waived = tuple(rules), _Waived()
    seen = seen if seen is not None else Seen()
    made: list[Policy] = [_inputs(seen), *(_policy(rule, known[rule.code], waivers, seen, waived) for rule in rules)]
    if waivers.entries:
        made += _waiving(known["HPC759"], waived)
    if problem:
        made.append(_broken(known["HPC760"], problem))
    return made


def _inputs(seen: Seen) -> Policy:
    def look(args: ResourceValidationArgs, report: ReportViolation) -> None:
        seen.take(args)

    return ResourceValidationPolicy(
        name=INPUTS,
        description="Keeps the inputs of resources for the rules about the whole stack; it never reports anything",
        validate=look,
        enforcement_level=EnforcementLevel.MANDATORY,
    )


def _policy(rule: Rule, code: Code, waivers: Waivers, seen: Seen, waived: _Waived) -> Policy:
    schema = {
        name: {
            **setting.schema,
            "description": setting.meaning,
            **({} if setting.default is None else {"default": setting.default}),
        }
        for name, setting in rule.settings.items()
    }
    common: dict[str, Any] = {
        "name": rule.name,
        "description": f"{code.code} {code.title}",
        "display_name": code.title,
        "enforcement_level": EnforcementLevel(rule.level.value),
        "config_schema": PolicyConfigSchema(schema) if schema else None,
        "severity": Severity(rule.severity.value),
        "tags": [code.code],
        "remediation_steps": code.fix,
        "url": page_of(rule),
    }

    def say(violation: Violation, report: ReportViolation, stack: str, subject: str) -> None:
        if one := waivers.covering(rule.name, violation, stack):
            text = f"{rule.name}: {violation.message} (waived by {one.owner} until {one.expires}: {one.reason})"
            waived.add(subject, text, violation.urn)
            return
        text = f"{violation.message} (fix: {code.fix})"
        if old := waivers.expired_for(rule.name, violation, stack):
            text += f" [the waiver of {old.owner} ended on {old.expires}]"
        report(text, violation.urn or None)

    if rule.stack_check:

        def validate_stack(args: StackValidationArgs, report: ReportViolation) -> None:
            stack = seen.stack(args.resources)
            found = check_stack(rule, stack, args.get_config())
            name = next((_stack_of_urn(one.urn) for one in stack.resources if one.urn), "")
            for violation in found:
                say(violation, report, name, _STACK)

        return StackValidationPolicy(validate=validate_stack, **common)

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        if args.resource_type not in rule.types:
            return
        found = check_resource(rule, seen.resource(args), args.get_config())
        for violation in found:
            say(violation, report, _stack_of_urn(args.urn), args.urn)

    return ResourceValidationPolicy(validate=validate, remediate=_remedy(rule), **common)


def _remedy(rule: Rule) -> Callable[[ResourceValidationArgs], Any] | None:
    if rule.remedy is None:
        return None
    remedy = rule.remedy

    def remediate(args: ResourceValidationArgs) -> Mapping[str, Any] | None:
        if args.resource_type not in rule.types:
            return None
        changed = remedy(resource_of(args), rule.configured(args.get_config()))
        if not changed:
            return None
        # The proxy itself goes back, so that inputs that are not known yet stay what they are.
        props: Any = args.props
        for key, value in changed.items():
            props[key] = value
        return args.props

    return remediate


class _Waived:
    """What waivers covered in the run of the rules that is going on, for the policies that tell it.

    The engine runs the policies of a resource, and later those of the stack, in the order of the pack, so that the
    policies that tell come after the rules.
    """

    def __init__(self) -> None:
        self._texts: dict[str, list[tuple[str, str]]] = {}

    def add(self, subject: str, text: str, urn: str) -> None:
        self._texts.setdefault(subject, []).append((text, urn))

    def tell(self, subject: str, report: ReportViolation) -> None:
        for text, urn in self._texts.pop(subject, ()):
            report(text, urn or None)


def _waiving(code: Code, waived: _Waived) -> list[Policy]:
    """Two policies that only tell what is waived, so that it stays in sight."""

    def resource(args: ResourceValidationArgs, report: ReportViolation) -> None:
        waived.tell(args.urn, report)

    def whole(args: StackValidationArgs, report: ReportViolation) -> None:
        waived.tell(_STACK, report)

    common: dict[str, Any] = {
        "description": f"{code.code} {code.title}",
        "enforcement_level": EnforcementLevel.ADVISORY,
        "severity": Severity.LOW,
        "tags": [code.code],
        "remediation_steps": code.fix,
    }
    return [
        ResourceValidationPolicy(name=WAIVED, validate=resource, **common),
        StackValidationPolicy(name=f"{WAIVED}-stack", validate=whole, **common),
    ]


def _broken(code: Code, problem: str) -> Policy:
    def tell(args: StackValidationArgs, report: ReportViolation) -> None:
        report(problem, None)

    return StackValidationPolicy(
        name=WAIVERS,
        description=f"{code.code} {code.title}",
        validate=tell,
        enforcement_level=EnforcementLevel.MANDATORY,
        severity=Severity.HIGH,
        tags=[code.code],
        remediation_steps=code.fix,
    )


def _stack_of_urn(urn: str) -> str:
    return urn.split("::")[0].rpartition(":")[2]
