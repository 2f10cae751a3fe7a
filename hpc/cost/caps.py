"""Caps of the budget against the estimate."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from hpc.cost.model import Estimate, Line
from hpc.findings import Finding, Severity
from hpc.spec.cluster import ClusterSpec

#: Worst hour above `budget.max_hourly`.
HOUR_ABOVE_CAP = "HPC601"
#: Expected month above `budget.expected_monthly`.
MONTH_ABOVE_CAP = "HPC602"
#: A cap that could not be verified because a price is unknown.
CAP_NOT_VERIFIED = "HPC603"


def check_caps(spec: ClusterSpec, estimate: Estimate) -> tuple[Finding, ...]:
    """Findings on the budget: HPC601 and HPC602 are errors, HPC603 (a price is unknown) a warning."""
    budget = spec.budget
    return (
        *_check(
            estimate,
            cap=budget.max_hourly,
            currency=budget.currency,
            value=estimate.totals.worst,
            parts={line: line.amounts.worst for line in estimate.lines},
            code=HOUR_ABOVE_CAP,
            path="budget.max_hourly",
            what="the worst hour",
            fix="lower max of a pool, choose smaller types, set spot_price_limit, or raise budget.max_hourly",
        ),
        *_check(
            estimate,
            cap=budget.expected_monthly,
            currency=budget.currency,
            value=estimate.totals.month,
            parts={line: line.amounts.month for line in estimate.lines},
            code=MONTH_ABOVE_CAP,
            path="budget.expected_monthly",
            what="the expected month",
            fix="lower node_hours_per_month, use spot, choose smaller nodes, or raise budget.expected_monthly",
        ),
    )


def _check(
    estimate: Estimate,
    *,
    cap: Decimal | None,
    currency: str,
    value: Decimal | None,
    parts: dict[Line, Decimal | None],
    code: str,
    path: str,
    what: str,
    fix: str,
) -> Iterator[Finding]:
    if cap is None:
        return
    limit, said = cap, f"{cap} CNY"
    if currency == "USD":
        rate = estimate.usd_rate
        if rate.amount is None:
            yield _unverified(path, cap, "there is no exchange rate from USD to CNY")
            return
        limit = cap * rate.amount
        said = f"{cap} USD ({limit:.2f} CNY at {rate.amount} of {rate.as_of}, {rate.reliability})"
    known = value or Decimal(0)
    if known > limit:
        dearest = max(parts, key=lambda line: parts[line] or Decimal(0))
        yield Finding(
            code=code,
            severity=Severity.ERROR,
            path=path,
            value=str(cap),
            message=(
                f"{what} costs {known:.2f} CNY, above the cap of {said}; "
                f"most of it is {dearest.item} of {dearest.scope} ({dearest.name}): {parts[dearest]:.2f} CNY"
            ),
            fix=fix,
        )
        return
    missing = [line for line, amount in parts.items() if amount is None]
    if missing:
        names = ", ".join(f"{line.scope} {line.name}" for line in missing)
        yield _unverified(
            path, cap, f"no price is known for {names}; the rest of {what} costs {known:.2f} CNY of {said}"
        )


def _unverified(path: str, cap: Decimal, why: str) -> Finding:
    return Finding(
        code=CAP_NOT_VERIFIED,
        severity=Severity.WARNING,
        path=path,
        value=str(cap),
        message=f"the cap could not be verified: {why}",
        fix="read the prices of the account with: hpc catalog refresh --region REGION",
    )
