"""Every rule across the fields of a cluster that a user can break, one module per concern.

A rule is a function from a `Context` to findings. It never raises for what is in the spec, and what it cannot verify it
reports as a warning. A module lists its rules in `RULES`; the codes are in `hpc/spec/codes.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hpc.findings import Finding, Severity
from hpc.spec.cluster import ClusterSpec
from hpc.spec.codes import finding, registry
from hpc.spec.problems import closest
from hpc.spec.rules import (
    images,
    instance_types,
    long_lived,
    money,
    names,
    network,
    pools,
    ports,
    region,
    software,
    ssh,
    storage,
)
from hpc.spec.rules.context import CatalogView, Context, Rule

#: All rules in the order in which their findings are reported.
RULES: tuple[Rule, ...] = (
    *region.RULES,
    *names.RULES,
    *software.RULES,
    *network.RULES,
    *ports.RULES,
    *ssh.RULES,
    *pools.RULES,
    *instance_types.RULES,
    *images.RULES,
    *storage.RULES,
    *long_lived.RULES,
    *money.RULES,
)


def check(spec: ClusterSpec, catalog: CatalogView, *, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """All findings of the rules, with what `spec.checks` asks for applied.

    Args:
        spec: the cluster.
        catalog: what is known of regions, types, images and prices.
        rules: the rules; all of them unless given.
    """
    context = Context(spec, catalog)
    found = [result for rule in rules for result in _run(rule, context)]
    return (*_checks(spec), *_as_asked(found, spec))


def apply_checks(findings: Iterable[Finding], spec: ClusterSpec) -> tuple[Finding, ...]:
    """Findings of other checks (such as the caps on the price) with what `spec.checks` asks for applied."""
    return tuple(_as_asked(findings, spec))


def _run(rule: Rule, context: Context) -> list[Finding]:
    """The findings of a rule; a fault in one rule must not hide what the others find, nor stop the user."""
    try:
        return list(rule(context))
    except Exception as error:
        name = getattr(rule, "__name__", str(rule))
        said = f"the rule {name} could not be checked: {type(error).__name__}: {error}"
        return [finding("HPC109", "", None, said[:300])]


def _as_asked(findings: Iterable[Finding], spec: ClusterSpec) -> Iterator[Finding]:
    for found in findings:
        asked = spec.checks.get(found.code)
        known = registry().get(found.code) if asked else None
        if asked is None or known is None or not known.suppressible:
            yield found
        elif asked == "warning":
            yield replace(found, severity=Severity.WARNING if found.severity is Severity.ERROR else found.severity)


def _checks(spec: ClusterSpec) -> Iterator[Finding]:
    """HPC110, HPC111: codes in `checks` exist and may be downgraded."""
    for code, asked in spec.checks.items():
        known = registry().get(code)
        if known is None:
            meant = closest(code, registry())
            fix = f"see docs/codes.md for the codes; {meant} is similar" if meant else None
            yield finding("HPC110", f"checks.{code}", asked, f"there is no code {code}", fix)
        elif not known.suppressible:
            yield finding(
                "HPC111", f"checks.{code}", asked, f"{code} ({known.title}) cannot be switched off or downgraded"
            )
