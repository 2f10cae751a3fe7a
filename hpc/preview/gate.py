"""From a preview, the checks and the price to a report with a verdict. It cannot be passed by accident. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from hpc.checks import Checked
from hpc.cost import Amounts, Estimate
from hpc.cost.diff import difference
from hpc.engine.results import Change, PolicyViolation, RunResult
from hpc.findings import Finding, Severity
from hpc.preview.model import Base, ChangeRow, Issue, Price, PriceRow, Report, Verdict, base_of
from hpc.preview.places import path_of
from hpc.spec.codes import registry
from policies.model import Violation
from policies.registry import BY_NAME
from policies.waivers import Waivers

#: The pack without which a preview says nothing.
PACK = "hpc"

#: The rule that also looks at what a run would delete or replace.
KEEP_DATA = "hpc-keep-data"

_WAIVED = ("hpc-waived", "hpc-waived-stack")
_REFUSING = ("mandatory", "remediate")
_CODE = re.compile(r"(HPC\d{3}) [^\n]*\n?")
_FIX = re.compile(r" \(fix: (?P<fix>.*)\)(?P<rest>( \[[^\]]*\])?)$", re.DOTALL)
_FILE_SYSTEM = "alicloud:nas/fileSystem:FileSystem"
_MANAGEMENT = "hpc:management:Management$alicloud:ecs/instance:Instance"
#: Inputs of components that are a price.
_PRICES = frozenset({"zeroHourly", "minimumHourly", "worstHourly", "nodeHourly", "expectedMonthly"})
_LONGEST_VALUE = 60
#: Price of what is not there.
_ZERO = Amounts(Decimal(0), Decimal(0), Decimal(0), Decimal(0))


def report(
    result: RunResult | None,
    checked: Checked,
    base: Estimate | Base | None = None,
    *,
    stack: str = "",
    stack_file: str = "",
    levels: Mapping[str, str] | None = None,
    waivers: Waivers | None = None,
    drift: RunResult | None = None,
    packs: Collection[str] = (PACK,),
    environment: str = "",
    notes: tuple[str, ...] = (),
) -> Report:
    """What a preview says and whether it may go on.

    Refused (1): the checks found an error, a mandatory rule is violated, a mandatory rule could not be run, or data
    would be lost. Could not run (2): the engine failed, or ended without the policy pack. Else it passed (0).

    Args:
        result: the preview, or None where it was not run since the stack file is refused.
        checked: the stack and the findings about its file.
        base: what the price is compared with.
        stack: name of the stack.
        stack_file: path of its file as it is to be shown.
        levels: level of each rule in the environment; `mandatory` for those that are not in it.
        waivers: exceptions, for what would be deleted or replaced; those of rules are applied by the pack.
        drift: a refresh that changed nothing.
        packs: names of the policy packs that must have run.
        environment: file that the levels come from.
        notes: what else is to be said.
    """
    levels = levels or {}
    issues = [_from_finding(finding) for finding in checked.findings]
    waived: list[Issue] = []
    if result:
        for violation in result.policies:
            issue = _from_violation(violation, levels, checked)
            (waived if violation.policy in _WAIVED else issues).append(issue)
        for issue, is_waived in _lost_data(result, levels, waivers or Waivers(), stack):
            (waived if is_waived else issues).append(issue)
    refusing = [issue for issue in issues if issue.refuses]
    failed = list(_failures(result, packs)) if not any(f.severity is Severity.ERROR for f in checked.findings) else []
    if result and not result.succeeded and refusing:
        # The engine's failure is the refusal itself, unless it has something else to say.
        failed = [issue for issue in failed if issue.code != "HPC780"]
    verdict = Verdict.REFUSED if refusing else Verdict.COULD_NOT_RUN if failed else Verdict.PASSED
    ordered = sorted(_unique([*issues, *failed]), key=lambda issue: (not issue.refuses, issue.code, issue.resource))
    return Report(
        stack=stack,
        stack_file=stack_file,
        verdict=verdict,
        reasons=tuple(_reasons(refusing, failed)),
        issues=tuple(ordered),
        waived=tuple(waived),
        changes=tuple(_changes(result)) if result else (),
        drift=tuple(_changes(drift)) if drift else None,
        price=_price(checked.estimate, base),
        environment=environment,
        notes=notes,
        seconds=result.seconds if result else 0.0,
    )


def could_not_run(
    error_code: str, message: str, fix: str, *, stack: str, stack_file: str, verdict: Verdict = Verdict.COULD_NOT_RUN
) -> Report:
    """The report of a preview that did not even begin: something was missing, or (`verdict`) it was refused."""
    issue = Issue(error_code, error_code, True, "error", _title(error_code), message, fix, page=_page(error_code))
    return Report(
        stack=stack,
        stack_file=stack_file,
        verdict=verdict,
        reasons=(message,),
        issues=(issue,),
        waived=(),
        changes=(),
        drift=None,
        price=None,
    )


def _from_finding(finding: Finding) -> Issue:
    value = f" (is {finding.as_dict()['value']})" if finding.value is not None else ""
    return Issue(
        code=finding.code,
        rule=finding.code,
        refuses=finding.severity is Severity.ERROR,
        severity=str(finding.severity),
        title=_title(finding.code),
        message=_printable(f"{finding.path or 'cluster'}{value}: {finding.message}"),
        fix=_printable(finding.fix),
        path=finding.path,
        page=_page(finding.code),
    )


def _from_violation(violation: PolicyViolation, levels: Mapping[str, str], checked: Checked) -> Issue:
    rule = BY_NAME.get(violation.policy)
    severity = rule.severity.value if rule else "medium"
    resource = violation.urn.split("::")[-1] if violation.urn and not _is_stack(violation.urn) else ""
    urn = violation.urn if resource else ""
    path = path_of(violation.policy, urn, checked.spec)
    page = f"docs/policies/{violation.policy}.md" if rule else ""
    if violation.could_not_run:
        refuses = levels.get(violation.policy, "mandatory") in _REFUSING
        title, fix = _title("HPC782"), _fix("HPC782")
        return Issue(
            "HPC782", violation.policy, refuses, severity, title, violation.message, fix, resource, urn, path, page
        )
    text = _printable(violation.message)
    code = "HPC783"
    if match := _CODE.match(text):
        code, text = match[1], text[match.end() :]
    fix = _fix(code)
    if told := _FIX.search(text):
        text, fix = text[: told.start()] + told["rest"], told["fix"]
    refuses = violation.level in _REFUSING
    return Issue(code, violation.policy, refuses, severity, _title(code), text.strip(), fix, resource, urn, path, page)


def _is_stack(urn: str) -> bool:
    return "::pulumi:pulumi:Stack::" in urn


def _lost_data(
    result: RunResult, levels: Mapping[str, str], waivers: Waivers, stack: str
) -> Iterator[tuple[Issue, bool]]:
    """File systems and management nodes that the run would delete or replace, and whether that is waived."""
    rule = BY_NAME[KEEP_DATA]
    level = levels.get(KEEP_DATA, rule.level.value)
    if level == "disabled":
        return
    for change in result.changes:
        kept = change.type == _FILE_SYSTEM or _MANAGEMENT in change.urn
        if not kept or change.operation not in ("delete", "replace"):
            continue
        what = "file system" if change.type == _FILE_SYSTEM else "management node"
        why = f" because of {', '.join(change.replacing)}" if change.replacing else ""
        message = f"the run would {change.operation} the {what} {change.name}{why}"
        violation = Violation(message, change.urn, change.name)
        issue = Issue(
            code=rule.code,
            rule=KEEP_DATA,
            refuses=level in _REFUSING,
            severity=rule.severity.value,
            title=_title(rule.code),
            message=message,
            fix="take the change back; if it is really meant, write a waiver of hpc-keep-data for the resource",
            resource=change.name,
            urn=change.urn,
            page=f"docs/policies/{KEEP_DATA}.md",
        )
        if old := waivers.expired_for(KEEP_DATA, violation, stack):
            issue = replace(issue, message=f"{message} [the waiver of {old.owner} ended on {old.expires}]")
        if given := waivers.covering(KEEP_DATA, violation, stack):
            text = f"{message} (waived by {given.owner} until {given.expires}: {given.reason})"
            yield replace(issue, message=text, refuses=False), True
        else:
            yield issue, False


def _failures(result: RunResult | None, packs: Collection[str]) -> Iterator[Issue]:
    """What keeps a run from saying anything."""
    if result is None:
        yield _failure("HPC780", "the engine was not run")
        return
    if not result.succeeded:
        errors = [d.message for d in result.diagnostics if d.severity == "error"]
        yield _failure("HPC780", result.first_error or (errors or ["the engine gave no reason"])[0])
    missing = sorted(set(packs) - set(result.packs))
    if missing and result.succeeded:
        yield _failure("HPC781", f"the policy pack {', '.join(missing)} did not run")


def _failure(code: str, message: str) -> Issue:
    return Issue(code, code, False, "error", _title(code), _printable(message), _fix(code), page=_page(code))


def _reasons(refusing: list[Issue], failed: list[Issue]) -> Iterator[str]:
    for issue in _unique(refusing or failed):
        where = f" ({issue.resource})" if issue.resource else ""
        yield f"{issue.code} {issue.title}{where}"


def _unique(issues: list[Issue]) -> list[Issue]:
    return list(dict.fromkeys(issues))


def _changes(result: RunResult) -> Iterator[ChangeRow]:
    """Changes of resources; of components only those of their inputs, which say what a person changed."""
    order = {"delete": 0, "replace": 1, "update": 2, "create": 3}
    for change in sorted(result.changed, key=lambda one: (order.get(one.operation, 4), one.type, one.name)):
        if change.type.startswith("pulumi:") or (change.type.startswith("hpc:") and not _tells(change)):
            continue
        because = change.replacing or (_shown(change) if change.operation == "update" else ())
        yield ChangeRow(change.operation, change.type, change.name, tuple(dict.fromkeys(because)))


def _shown(change: Change) -> tuple[str, ...]:
    """Inputs that differ; of components with their values, and without the figures that the price shows."""
    told = [f"{name} {_short(old)} → {_short(new)}" for name, old, new in change.values if name not in _PRICES]
    return tuple(told) or change.changed


def _short(value: object) -> str:
    text = "(none)" if value is None else json.dumps(value, ensure_ascii=False)
    return _printable(text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…")


def _tells(change: Change) -> bool:
    return change.operation == "update" and bool(change.changed)


def _price(estimate: Estimate | None, base: Estimate | Base | None) -> Price | None:
    if estimate is None:
        return None
    after = base_of(estimate)
    before = base_of(base) if isinstance(base, Estimate) else base
    rows = []
    for title in dict.fromkeys((*after.parts, *(before.parts if before else ()))):
        old = before.parts.get(title) if before else None
        new = after.parts.get(title)
        # A base that knows its pools but not its fixed parts says nothing about those.
        known = before is not None and (old is not None or title.startswith("pool "))
        rows.append(PriceRow(title, old, new, difference(old or _ZERO, new or _ZERO) if known else None))
    total = difference(before.totals, after.totals) if before else None
    rows.append(PriceRow("total", before.totals if before else None, after.totals, total))
    return Price(before.label if before else "", tuple(rows), estimate.complete)


def _printable(text: str) -> str:
    """Text without what would steer a terminal or break a document."""
    return "".join(char for char in text if char.isprintable() or char == "\n")


def _title(code: str) -> str:
    known = registry().get(code)
    return known.title if known else code


def _fix(code: str) -> str:
    known = registry().get(code)
    return known.fix if known else ""


def _page(code: str) -> str:
    known = registry().get(code)
    return f"docs/codes.md#{_anchor(f'{code} {known.title}')}" if known else ""


def _anchor(heading: str) -> str:
    """Anchor of a heading as code hosting sites make it."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
