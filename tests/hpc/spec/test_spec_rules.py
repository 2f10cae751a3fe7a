"""Every rule: its smallest violation, the neighbour that passes, and that nothing but the rule finds it."""

from __future__ import annotations

from typing import Any

import pytest
from spec_cases import BASE, CASES, SHIPPED, Case, changed

from hpc.findings import Finding, Severity
from hpc.spec.cluster import ClusterSpec
from hpc.spec.codes import registry
from hpc.spec.load import parse_cluster
from hpc.spec.rules import RULES, apply_checks, check
from hpc.spec.rules.context import Context


def findings_of(changes: dict[str, Any], case: Case | None = None, **options: Any) -> list[Finding]:
    spec = ClusterSpec.model_validate(changed(changes))
    return list(check(spec, case.catalog if case else SHIPPED, **options))


def spots(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(found.code, found.path) for found in findings}


def test_the_base_of_all_cases_is_clean() -> None:
    assert findings_of({}) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_violation_is_found_at_its_path(case: Case) -> None:
    assert (case.code, case.path) in spots(findings_of(case.bad, case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_neighbour_passes(case: Case) -> None:
    assert case.code not in {found.code for found in findings_of(case.good, case)}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_finding_has_the_value_and_says_what_to_do(case: Case) -> None:
    raw = changed(case.bad)
    loaded = parse_cluster(raw)
    assert loaded.findings == ()
    for found in loaded.relevant(check(loaded.spec, case.catalog)):
        assert found.severity is registry()[found.code].severity
        assert found.message[-1] not in ".\n"
        assert found.fix
        found.as_dict()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_without_the_rule_its_violations_go_unnoticed(rule: Any) -> None:
    others = [other for other in RULES if other is not rule]
    own = [case for case in CASES if (case.code, case.path) not in spots(findings_of(case.bad, case, rules=others))]
    assert own, "no case depends on this rule"
    for case in own:
        assert (case.code, case.path) in spots(findings_of(case.bad, case, rules=[rule]))


def test_every_code_of_the_rules_has_a_case() -> None:
    declared = {code.code for code in registry().values() if code.room == "hpc/spec" and int(code.code[3:]) >= 101}
    elsewhere = {"HPC104", "HPC109", "HPC601", "HPC602", "HPC603"}  # loader, a faulty rule, price caps
    assert declared - elsewhere == {case.code for case in CASES}


def test_docstring_of_each_rule_names_its_codes() -> None:
    named = {code for rule in RULES for code in (rule.__doc__ or "").split(":")[0].split(", ")}
    cases = {case.code for case in CASES} - {"HPC110", "HPC111"}
    assert named == cases


def test_types_without_erdma_name_the_nearest_with_it() -> None:
    found = next(f for f in findings_of({"pools[0].instance_types": ["ecs.c7.4xlarge"]}) if f.code == "HPC305")
    nearest = SHIPPED.nearest_erdma("ecs.c7.4xlarge")
    assert nearest is not None
    assert nearest.name in found.fix
    assert nearest.vcpus == 16


def test_split_suggestion_names_the_types_of_each_part() -> None:
    found = next(
        f
        for f in findings_of({"pools[0].instance_types": ["ecs.c8ae.4xlarge", "ecs.c8ae.8xlarge", "ecs.c8a.4xlarge"]})
        if f.code == "HPC302"
    )
    assert (
        found.fix
        == "split pool mpi: one with ecs.c8ae.4xlarge, ecs.c8a.4xlarge (8 CPUs); one with ecs.c8ae.8xlarge (16 CPUs)"
    )


def test_small_vswitch_says_which_size_would_do() -> None:
    found = next(f for f in findings_of({"network.cidr": "10.0.0.0/24", "pools[0].max": 400}) if f.code == "HPC207")
    assert "432" in found.message
    assert "/23" in found.fix
    # The size that is named really is enough, and the next smaller one is not.
    vswitch = "network.vswitches"
    wide = {"network.cidr": "10.0.0.0/23", "pools[0].max": 400, vswitch: {"cn-hangzhou-j": "10.0.0.0/23"}}
    assert "HPC207" not in {f.code for f in findings_of(wide)}
    assert "HPC207" in {f.code for f in findings_of({**wide, vswitch: {"cn-hangzhou-j": "10.0.0.0/24"}})}


def test_unknown_type_warns_and_the_other_rules_go_on() -> None:
    found = findings_of({"pools[0].instance_types": ["ecs.zz.large", "ecs.c7.4xlarge"]})
    assert {("HPC301", "pools[0].instance_types[0]"), ("HPC305", "pools[0].instance_types[1]")} <= spots(found)
    assert registry()["HPC301"].severity is Severity.WARNING


def test_unknown_type_that_is_a_slip_is_guessed() -> None:
    (found,) = (f for f in findings_of({"pools[0].instance_types": ["ecs.c8ae.4xlrge"]}) if f.code == "HPC301")
    assert "ecs.c8ae.4xlarge" in found.fix


def test_effort_for_guesses_is_bounded() -> None:
    context = Context(ClusterSpec.model_validate(BASE), SHIPPED)
    assert sum(context.similar_type(f"ecs.c8ae.{n}xlarge") is not None for n in range(500, 600)) == 20


def test_all_findings_come_at_once() -> None:
    found = findings_of(
        {
            "region": "cn-beijing",
            "pools[0].min": 9,
            "pools[0].auto_release": "1m",
            "network.cidr": "11.0.0.0/16",
            "storage": [{"mount": "/etc"}],
            "usage": {"nope": {}},
        }
    )
    assert {"HPC102", "HPC322", "HPC324", "HPC326", "HPC201", "HPC405", "HPC608"} <= {f.code for f in found}


def test_suppressible_finding_is_downgraded_or_off() -> None:
    too_small = {"network.cidr": "10.0.0.0/24", "pools[0].max": 400}
    error = [f for f in findings_of(too_small) if f.code == "HPC207"]
    assert [f.severity for f in error] == [Severity.ERROR]
    warned = [f for f in findings_of({**too_small, "checks": {"HPC207": "warning"}}) if f.code == "HPC207"]
    assert [f.severity for f in warned] == [Severity.WARNING]
    assert findings_of({**too_small, "checks": {"HPC207": "off"}}) == []


def test_other_findings_cannot_be_suppressed() -> None:
    changes = {"pools[0].instance_types": ["ecs.c7.4xlarge"], "checks": {"HPC305": "off"}}
    assert {"HPC305", "HPC111"} == {f.code for f in findings_of(changes)}
    changes = {"checks": {"HPC111": "off"}}
    assert [f.code for f in findings_of(changes)] == ["HPC111"]


def test_checks_apply_to_findings_of_other_rooms() -> None:
    spec = ClusterSpec.model_validate(changed({"checks": {"HPC603": "off", "HPC601": "off"}}))
    caps = [Finding(code, Severity.WARNING, "budget", None, "m", "f") for code in ("HPC601", "HPC603")]
    assert [found.code for found in apply_checks(caps, spec)] == ["HPC601"]


def test_faulty_rule_is_a_warning_and_hides_nothing() -> None:
    def faulty(context: Any) -> Any:
        raise ZeroDivisionError("oops")

    spec = ClusterSpec.model_validate(changed({"pools[0].min": 9}))
    found = check(spec, SHIPPED, rules=[faulty, *RULES])
    assert [f.code for f in found] == ["HPC109", "HPC322"]
    assert found[0].severity is Severity.WARNING
    assert "oops" in found[0].message


def test_node_names_that_a_hostlist_parser_misreads_are_refused() -> None:
    spec = ClusterSpec.model_validate(BASE)
    odd = spec.model_copy(update={"pools": (spec.pools[0].model_copy(update={"name": "c[1"}),)})
    assert "HPC108" in {f.code for f in check(odd, SHIPPED)}


def test_reserved_slurm_parameters_cover_those_of_the_renderer() -> None:
    from hpc.slurm.config import RESERVED
    from hpc.spec.software import OWNED_PARAMETERS

    assert RESERVED <= OWNED_PARAMETERS
