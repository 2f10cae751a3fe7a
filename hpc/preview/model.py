"""Types of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from hpc.cost import Amounts, Estimate, ScopeKind

if TYPE_CHECKING:
    from hpc.engine.results import RunResult


class Verdict(IntEnum):
    """What a preview comes to; the value is the exit code."""

    PASSED = 0
    REFUSED = 1
    COULD_NOT_RUN = 2

    @property
    def word(self) -> str:
        """For people."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that somebody should look at.

    Attributes:
        code: stable code, `HPC733`.
        rule: name of the policy, or the code where a check of the stack file says it.
        refuses: it keeps the preview from passing.
        severity: `low`, `medium`, `high`, `critical`, or a finding's `error`, `warning`, `info`.
        title: what kind of thing it is.
        message: what is wrong, with the value.
        fix: what to do.
        resource: logical name of the resource, or empty.
        urn: URN of the resource, or empty.
        path: where in the stack file, `pools[0].instance_types`, or empty for the whole cluster.
        page: page of the documentation in the repository.
    """

    code: str
    rule: str
    refuses: bool
    severity: str
    title: str
    message: str
    fix: str
    resource: str = ""
    urn: str = ""
    path: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """What happens to a resource.

    Attributes:
        operation: `create`, `update`, `replace` or `delete`.
        type: type token.
        name: logical name.
        because: inputs that cause it: those that force a replacement, else those that differ.
    """

    operation: str
    type: str
    name: str
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Base:
    """What the price is compared with.

    Attributes:
        label: what it is, for people.
        totals: of the whole cluster, CNY.
        parts: by title of the pool or fixed part; parts that are not known are missing.
    """

    label: str
    totals: Amounts
    parts: Mapping[str, Amounts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Price of a pool, a fixed part, or everything; None where it is not there or not known.

    Attributes:
        title: `pool mpi`, `login`, `total`.
        before, after: amounts, CNY per hour and expected month.
        delta: after minus before.
    """

    title: str
    before: Amounts | None
    after: Amounts | None
    delta: Amounts | None


@dataclass(frozen=True, slots=True)
class Price:
    """The price part of a report; the last row is the total."""

    base: str
    rows: tuple[PriceRow, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What a preview says.

    Attributes:
        stack: name of the stack.
        stack_file: path of its file as it should be shown.
        verdict: what it comes to.
        reasons: why, one sentence each; empty where it passed.
        issues: what refuses first, then what does not.
        waived: violations that a waiver covers.
        changes: what would change.
        drift: what differs from the cloud, or None where nobody looked.
        price: the price, or None where there is none.
        environment: file with the rules' settings, or empty.
        notes: what else one should know.
        seconds: how long the engine took, s.
        pages: address that pages of the documentation are below, or empty.
    """

    stack: str
    stack_file: str
    verdict: Verdict
    reasons: tuple[str, ...]
    issues: tuple[Issue, ...]
    waived: tuple[Issue, ...]
    changes: tuple[ChangeRow, ...]
    drift: tuple[ChangeRow, ...] | None
    price: Price | None
    environment: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    pages: str = ""

    @property
    def refusing(self) -> tuple[Issue, ...]:
        """Issues that keep it from passing."""
        return tuple(issue for issue in self.issues if issue.refuses)

    def count(self, operation: str) -> int:
        """How many resources have an operation, components left out."""
        return sum(change.operation == operation and not change.type.startswith("hpc:") for change in self.changes)


def base_of(estimate: Estimate, label: str = "") -> Base:
    """An estimate as something to compare with."""
    from hpc.cost.render.text import scope_title

    parts = dict.fromkeys((line.kind, line.scope) for kind in ScopeKind for line in estimate.lines if line.kind is kind)
    return Base(
        label or estimate.cluster,
        estimate.totals,
        {scope_title(scope, kind): estimate.by_scope(scope, kind) for kind, scope in parts},
    )


def base_of_run(result: RunResult) -> Base | None:
    """What the deployed stack said of its price, by a run that went over all of it; None where it has no cluster."""
    components = [
        {"type": urn.split("::")[2].split("$")[-1], "inputs": inputs} for urn, inputs in result.before.items()
    ]
    return base_of_state({"resources": components})


def base_of_state(deployment: Mapping[str, Any], label: str = "deployed") -> Base | None:
    """What a deployed stack said of its price, or None where it has no cluster.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
        label: what to call it.
    """
    from decimal import Decimal

    def amounts(inputs: Mapping[str, Any]) -> Amounts:
        read = {key: inputs.get(key) for key in ("zeroHourly", "minimumHourly", "worstHourly", "expectedMonthly")}
        known = {key: Decimal(str(value)) if isinstance(value, int | float) else None for key, value in read.items()}
        return Amounts(*known.values())

    totals: Amounts | None = None
    parts: dict[str, Amounts] = {}
    for resource in deployment.get("resources") or ():
        inputs = resource.get("inputs") or {}
        if resource.get("type") == "hpc:cluster:Cluster":
            totals = amounts(inputs)
        elif resource.get("type") == "hpc:pool:Pool":
            parts[f"pool {inputs.get('pool')}"] = amounts(inputs)
    return Base(label, totals, parts) if totals else None
