"""Each rule on plain data: what it refuses, what it lets pass, what it makes of inputs that are not known."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from policy_cases import BAD, GOOD, SOURCES, UNKNOWNS, Case, around, resource, urn

from hpc.cost.model import HOURS_PER_MONTH
from hpc.spec import names
from hpc.spec.codes import read_codes
from policies import kinds
from policies.model import Resource, Rule, Stack, Violation, check_resource, check_stack
from policies.props import UNKNOWN, Props
from policies.registry import BY_NAME, GROUPS, RULES
from policies.rules import money


def said(stack: Stack, rules: Iterable[Rule], config: dict[str, Any]) -> dict[str, list[Violation]]:
    """What rules say of a stack, by rule."""
    out = {}
    for rule in rules:
        settings = {key: value for key, value in config.items() if key in rule.settings}
        found = [v for one in stack.resources for v in check_resource(rule, one, settings)]
        out[rule.name] = found + check_stack(rule, stack, settings)
    return out


def judge(case: Case, rules: Iterable[Rule] = RULES) -> Violation:
    """The violation that a case is about; fails where there is none."""
    violations = said(case.stack(), rules, case.config).get(case.rule, [])
    matching = [violation for violation in violations if case.says in violation.message]
    assert matching, [violation.message for violation in violations]
    return matching[0]


@pytest.mark.parametrize("case", BAD, ids=str)
def test_refused(case: Case) -> None:
    violation = judge(case)
    assert violation.unverified == violation.message.startswith("could not be verified: ")
    if violation.urn:
        assert violation.urn in case.stack().by_urn


@pytest.mark.parametrize("case", UNKNOWNS, ids=str)
def test_unknown_is_never_a_pass(case: Case) -> None:
    violation = judge(case)
    assert violation.unverified
    assert violation.message.startswith("could not be verified: ")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_removing_a_rule_is_noticed(rule: Rule) -> None:
    cases = [case for case in (*BAD, *UNKNOWNS) if case.rule == rule.name]
    assert any(case in BAD for case in cases), "no counter-example"
    assert any(case in UNKNOWNS for case in cases), "no unknown value"
    others = [one for one in RULES if one is not rule]
    for case in cases:
        with pytest.raises(AssertionError):
            judge(case, others)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_removing_a_check_is_noticed(rule: Rule) -> None:
    """Each check of a rule with several has a case that only it finds."""
    if len(rule.checks) < 2:
        return
    from dataclasses import replace

    for check in rule.checks:
        without = replace(rule, checks=tuple(one for one in rule.checks if one is not check))
        missed = 0
        for case in (case for case in BAD if case.rule == rule.name):
            try:
                judge(case, [without])
            except AssertionError:
                missed += 1
        assert missed, check.__name__


@pytest.mark.parametrize("kind", GOOD)
def test_good_resources_pass_every_rule(kind: str) -> None:
    parent = urn(kinds.CLUSTER, "c") if kind in (kinds.INSTANCE, kinds.POOL) else ""
    subject = resource(kind, "subject", _sources=SOURCES.get(kind, {}), _parent=parent)
    others: tuple[Resource, ...] = around()
    if kind == kinds.SCALING_GROUP:
        source = {"scalingGroupId": (subject.urn,)}
        others = (*others, resource(kinds.SCALING, "configuration", _sources=source))
    found = said(Stack((*others, subject)), RULES, {"maxHourly": 1000.0, "maxMonthly": 1_000_000.0})
    assert {name: violations for name, violations in found.items() if violations} == {}


@pytest.mark.parametrize("kind", sorted({kind for rule in RULES for kind in rule.types}))
def test_no_rule_fails_on_a_resource_without_inputs_or_with_nonsense(kind: str) -> None:
    keys = {key for values in GOOD.values() for key in values}
    for value in (
        {},
        dict.fromkeys(keys),
        dict.fromkeys(keys, "nonsense"),
        dict.fromkeys(keys, 7),
        {key: [{}] for key in keys},
    ):
        subject = Resource(kind, "subject", Props(value), urn(kind, "subject"))
        for violations in said(Stack((subject,)), RULES, {"maxHourly": 1.0}).values():
            for violation in violations:
                assert "failed on it" not in violation.message, violation.message


def test_everything_unknown_is_refused_by_every_rule_that_looks_at_it() -> None:
    for rule in RULES:
        for kind in rule.types:
            keys = {key for values in GOOD.values() for key in values} | LATE_KEYS
            subject = Resource(kind, "subject", Props(dict.fromkeys(keys, UNKNOWN)), urn(kind, "subject"))
            config = {name: s.default for name, s in rule.settings.items()}
            config |= {"maxHourly": 1e9, "maxMonthly": 1e9}
            if rule.name == "hpc-regions":
                config["allowed"] = ["cn-hangzhou"]
            found = said(Stack((*around(), subject)), [rule], config)[rule.name]
            if (rule.name, kind) not in _NOTHING_TO_KNOW:
                assert found, (rule.name, kind)


#: Inputs that good resources do not have.
LATE_KEYS = {"launchTemplateOverrides", "password", "kmsEncryptedPassword", "vpcId", "prefixListId"}

#: Rules that look at no input of these types, or at nothing but whether there is one.
_NOTHING_TO_KNOW = {
    ("hpc-keep-data", kinds.FILE_SYSTEM),
}


def test_types_that_no_rule_judges_can_be_accepted_by_name() -> None:
    rule = next(one for one in RULES if one.name == "hpc-judged-types")
    for kind in kinds.UNJUDGED:
        one = Resource(kind, "x", Props({}), urn(kind, "x"))
        assert check_resource(rule, one) and not check_resource(rule, one, {"allowed": [kind]})
        assert [other.name for other in RULES if kind in other.types] == [rule.name]


def test_tokens_of_types_are_the_sdk_s() -> None:
    """A misspelt token would match nothing, and so let everything pass."""
    spec = find_spec("pulumi_alicloud")
    assert spec is not None and spec.origin
    tokens = sorted({kind for rule in RULES for kind in rule.types if kind.startswith("alicloud:")})
    folders = {token.split(":")[1].split("/")[0] for token in tokens}
    text = {
        name: "".join(file.read_text() for file in Path(spec.origin).parent.glob(f"{name}/*.py")) for name in folders
    }
    assert [token for token in tokens if f"'{token}'" not in text[token.split(":")[1].split("/")[0]]] == []


def test_sum_above_a_cap_names_the_pools_that_it_comes_from() -> None:
    cluster = resource(kinds.CLUSTER, "c")
    pools = [
        resource(kinds.POOL, f"c-pool-{name}", pool=name, max=most, worstHourly=price, _parent=cluster.urn)
        for name, most, price in (("a", 8, 20.0), ("b", 16, 70.0))
    ]
    (violation,) = check_stack(BY_NAME["hpc-budget-hour"], Stack((cluster, *pools)), {"maxHourly": 50})
    assert violation.message == (
        "the worst hour is 100.00 CNY, above the cap of 50.00 CNY; "
        "c-pool-b (max 16) 70, c-pool-a (max 8) 20, the rest of c 10"
    )


def test_secrets_are_not_shown() -> None:
    subject = resource(kinds.INSTANCE, "subject", password="hunter2", userData="hunter2")
    for violations in said(Stack((*around(), subject)), RULES, {}).values():
        assert not any("hunter2" in violation.message for violation in violations)


def test_names_codes_and_groups() -> None:
    codes = {code.code for code in read_codes(Path("policies/codes.toml").resolve())}
    assert len({rule.name for rule in RULES}) == len(RULES) == len(BY_NAME)
    assert [rule.code for rule in RULES] == sorted({rule.code for rule in RULES})
    assert {rule.code for rule in RULES} < codes
    assert [rule for rules in GROUPS.values() for rule in rules] == list(RULES)
    for rule in RULES:
        assert bool(rule.checks) != bool(rule.stack_check)


def test_copies_of_what_the_pack_does_not_import() -> None:
    assert (kinds.TAG_CLUSTER, kinds.TAG_ROLE, kinds.TAG_POOL) == (names.TAG_CLUSTER, names.TAG_ROLE, names.TAG_POOL)
    assert money.HOURS_PER_MONTH == HOURS_PER_MONTH
