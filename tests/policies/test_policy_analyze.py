"""The pack in the real engine, on states: `pulumi policy analyze --file`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from analysis import PACK, Analysis, analyze, state_of
from policy_cases import BAD, CLUSTER_TAGS, GOOD, SOURCES, Case, around, resource, urn

from hpc.paths import PROJECT_ROOT
from policies import kinds
from policies.registry import RULES

pytestmark = pytest.mark.engine

#: Cases whose input is not known yet, and cases about the stack as a whole, have runs of their own.
AT_ONCE = [case for case in BAD if not case.config and case.kind not in (kinds.CLUSTER,) and case.rule != "hpc-size"]
ALONE = [case for case in BAD if case not in AT_ONCE]


def name(index: int) -> str:
    return f"subject-{index}"


@pytest.fixture(scope="module")
def together(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """One run over all cases that do not disturb each other."""
    others = {one.name: one for case in AT_ONCE for one in case.others}
    subjects = [case.subject(name(index)) for index, case in enumerate(AT_ONCE)]
    state = state_of([*around(), *others.values(), *subjects])
    return analyze(state, tmp_path_factory.mktemp("together"))


@pytest.mark.parametrize("index", range(len(AT_ONCE)), ids=[str(case) for case in AT_ONCE])
def test_refused_in_the_engine(together: Analysis, index: int) -> None:
    case = AT_ONCE[index]
    subject = urn(case.kind, name(index))
    said = [text for rule, _, where, text in together.said if rule == case.rule and where == subject]
    assert any(case.says in text for text in said), said or together.text[-2000:]
    assert all("(fix: " in text for text in said)
    assert together.exit_code == 1


@pytest.mark.parametrize("case", ALONE, ids=str)
def test_refused_in_the_engine_alone(engine: Path, case: Case, tmp_path: Path) -> None:
    stack = [one for one in around() if case.kind != kinds.CLUSTER or one.type != kinds.CLUSTER]
    state = state_of([*stack, *case.others, case.subject()])
    result = analyze(state, tmp_path, {case.rule: case.config} if case.config else None)
    assert any(case.says in text for text in result.messages(case.rule)), result.text[-2000:]
    assert result.exit_code == 1


def good_state() -> dict[str, Any]:
    subjects = [
        resource(kind, f"good-{index}", _sources=SOURCES.get(kind, {}), _parent=urn(kinds.CLUSTER, "c"))
        for index, kind in enumerate(kind for kind in GOOD if kind != kinds.CLUSTER)
    ]
    return state_of([*around(), *subjects])


def test_good_state_passes(engine: Path, tmp_path: Path) -> None:
    result = analyze(good_state(), tmp_path)
    assert result.said == ()
    assert result.exit_code == 0, result.text


def test_level_of_a_rule_is_configurable(engine: Path, tmp_path: Path) -> None:
    state = state_of(
        [*around(), resource(kinds.GROUP_RULE, "wide", portRange="1/65535", _sources=SOURCES[kinds.GROUP_RULE])]
    )
    assert analyze(state, tmp_path).rules("mandatory") == {"hpc-port-range-width"}
    advisory = analyze(state, tmp_path, {"hpc-port-range-width": "advisory"})
    assert (advisory.exit_code, advisory.rules("advisory")) == (0, {"hpc-port-range-width"})
    disabled = analyze(state, tmp_path, {"hpc-port-range-width": "disabled"})
    assert (disabled.exit_code, disabled.said) == (0, ())
    wider = analyze(state, tmp_path, {"hpc-port-range-width": {"maxPorts": 70000}})
    assert (wider.exit_code, wider.said) == (0, ())


def test_configuration_is_checked_against_the_schema(engine: Path, tmp_path: Path) -> None:
    for wrong in ({"maxPorts": "many"}, {"maxPorts": 0}):
        result = analyze(good_state(), tmp_path, {"hpc-port-range-width": wrong})
        assert result.exit_code != 0
        assert "maxPorts" in result.text


def test_remediation_adds_tags_and_tokens(engine: Path, tmp_path: Path) -> None:
    node = resource(
        kinds.INSTANCE, "node", tags=None, volumeTags=None, httpTokens=None, _parent=urn(kinds.CLUSTER, "c")
    )
    config = {
        "hpc-tags": {"enforcementLevel": "remediate", "defaults": CLUSTER_TAGS},
        "hpc-metadata-tokens": {"enforcementLevel": "remediate"},
    }
    assert analyze(state_of([*around(), node]), tmp_path).rules() == {"hpc-tags", "hpc-metadata-tokens"}
    mended = analyze(state_of([*around(), node]), tmp_path, config)
    assert mended.exit_code == 1, "an analysis says what it would mend, and mends nothing"
    assert "policyRemediationEvent" in mended.text
    assert '"hpc:role":"login"' in mended.text
    assert '"httpTokens":"required"' in mended.text


def test_remediation_without_a_value_stays_a_violation(engine: Path, tmp_path: Path) -> None:
    node = resource(kinds.DISK, "disk", tags=None)
    result = analyze(state_of([*around(), node]), tmp_path, {"hpc-tags": {"enforcementLevel": "remediate"}})
    assert (result.exit_code, result.rules()) == (1, {"hpc-tags"})


def copy_of_pack(folder: Path, waivers: list[dict[str, Any]] | str) -> Path:
    """The pack with other waivers, in a project of its own."""
    project = folder / "project"
    shutil.copytree(PROJECT_ROOT / "policies", project / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "hpc").symlink_to(PROJECT_ROOT / "hpc")
    text = waivers if isinstance(waivers, str) else yaml.safe_dump({"waivers": waivers})
    (project / "policies" / "waivers.yaml").write_text(text)
    return project / "policies" / "analyzer"


def waiver(**changes: Any) -> dict[str, Any]:
    import datetime

    return {
        "rule": "hpc-port-range-width",
        "resource": "wide*",
        "owner": "ops@example.com",
        "reason": "licence server",
        "expires": datetime.date(9999, 1, 1),
        **changes,
    }


def test_waivers(engine: Path, tmp_path: Path) -> None:
    import datetime

    state = state_of(
        [*around(), resource(kinds.GROUP_RULE, "wide", portRange="1/65535", _sources=SOURCES[kinds.GROUP_RULE])]
    )

    def run(waivers: list[dict[str, Any]] | str) -> Analysis:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return analyze(state, folder, pack=copy_of_pack(folder, waivers))

    waived = run([waiver()])
    assert (waived.exit_code, waived.rules("advisory")) == (0, {"hpc-waived"}), waived.text
    assert "waived by ops@example.com until 9999-01-01: licence server" in waived.messages("hpc-waived")[0]

    folder = tmp_path / "budget"
    folder.mkdir()
    budget = copy_of_pack(folder, [waiver(rule="hpc-budget-hour", resource="stack")])
    over = analyze(good_state(), folder, {"hpc-budget-hour": {"maxHourly": 1}}, budget)
    assert (over.exit_code, over.rules("advisory")) == (0, {"hpc-waived-stack"}), over.text
    assert "hpc-budget-hour: the worst hour is" in over.messages("hpc-waived-stack")[0]

    expired = run([waiver(expires=datetime.date(2020, 1, 1))])
    assert (expired.exit_code, expired.rules()) == (1, {"hpc-port-range-width"})
    assert "the waiver of ops@example.com ended on 2020-01-01" in expired.messages("hpc-port-range-width")[0]

    elsewhere = run([waiver(stacks=["prod"])])
    assert (elsewhere.exit_code, elsewhere.rules()) == (1, {"hpc-port-range-width"})

    for broken in ([waiver(rule="hpc-no-such-rule")], "waivers: 7", "[", [waiver(expires="soon")]):
        refused = run(broken)
        assert refused.exit_code == 1
        assert refused.rules() == {"hpc-port-range-width", "hpc-waivers"}, "no waiver counts"


def test_pack_says_what_it_is(engine: Path, tmp_path: Path) -> None:
    assert PACK.stat().st_mode & 0o111, "engines without a language host run it as a program"
    result = analyze(good_state(), tmp_path)
    assert '"hpc":"0.1.0"' in result.text.replace(" ", "")
    assert len(RULES) == 30


def test_unknown_names_in_the_settings_are_not_refused_by_the_engine(engine: Path, tmp_path: Path) -> None:
    """Why hpc.preview.environment refuses them."""
    assert analyze(good_state(), tmp_path, {"hpc-port-range-wdth": "disabled"}).exit_code == 0
