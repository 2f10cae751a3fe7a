"""The verdict of the gate, and every form of its report, on runs that are written down here."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hpc.checks import Checked, check_stack_file
from hpc.engine.results import Change, Diagnostic, PolicyViolation, RunResult
from hpc.errors import RefusedError
from hpc.findings import Finding, Severity
from hpc.paths import PROJECT_ROOT
from hpc.preview import Base, Format, Report, Verdict, render, report, write_reports
from hpc.preview.environment import CONFIG_DIR, environment_of, read_environment
from hpc.preview.gate import could_not_run
from hpc.preview.model import base_of, base_of_run, base_of_state
from hpc.preview.places import line_of, path_of
from hpc.preview.render.markdown import marker
from hpc.preview.surroundings import pages_address
from policies.registry import BY_NAME, RULES
from policies.waivers import Waiver, Waivers

ROOT = "urn:pulumi:dev::hpc::pulumi:pulumi:Stack::hpc-dev"
POOL = "urn:pulumi:dev::hpc::hpc:cluster:Cluster$hpc:pool:Pool::dev-pool-mpi"
NAS = "urn:pulumi:dev::hpc::hpc:storage:Storage$alicloud:nas/fileSystem:FileSystem::dev-storage-home"
NODE = "urn:pulumi:dev::hpc::hpc:management:Management$alicloud:ecs/instance:Instance::dev-management-0"
LOGIN = "urn:pulumi:dev::hpc::hpc:login:Login$alicloud:ecs/instance:Instance::dev-login-0"


@pytest.fixture(scope="module")
def checked() -> Checked:
    return check_stack_file(PROJECT_ROOT / "Pulumi.dev.yaml")


def change(urn: str, operation: str, *, changed: tuple[str, ...] = (), replacing: tuple[str, ...] = ()) -> Change:
    return Change(urn, urn.split("::")[2].split("$")[-1], urn.split("::")[-1], operation, changed, replacing)


def violation(
    policy: str, level: str = "mandatory", urn: str = POOL, message: str = "", **more: Any
) -> PolicyViolation:
    rule = BY_NAME.get(policy)
    text = message or f"{rule.code if rule else ''} A title\nwhat is wrong (fix: do this)"
    return PolicyViolation(policy, "hpc", level, urn, text, more.get("could_not_run", False))


def run(*policies: PolicyViolation, succeeded: bool | None = None, **more: Any) -> RunResult:
    refused = any(one.level == "mandatory" for one in policies)
    return RunResult(
        "preview",
        succeeded=not refused if succeeded is None else succeeded,
        changes=more.get("changes", ()),
        policies=policies,
        diagnostics=more.get("diagnostics", ()),
        seconds=2.5,
        packs=more.get("packs", ("hpc",)),
    )


CANNOT = "can't run policy 'hpc-size' from policy pack 'hpc@v0.1.0' during preview: string value at .max can't be known"


def test_nothing_wrong(checked: Checked) -> None:
    done = report(run(), checked, stack="dev")
    assert (done.verdict, int(done.verdict), done.reasons) == (Verdict.PASSED, 0, ())


def test_mandatory_violation_refuses(checked: Checked) -> None:
    done = report(run(violation("hpc-size")), checked, stack="dev")
    assert (done.verdict, int(done.verdict)) == (Verdict.REFUSED, 1)
    (issue,) = done.refusing
    assert (issue.code, issue.rule, issue.resource) == ("HPC758", "hpc-size", "dev-pool-mpi")
    assert (issue.message, issue.fix, issue.path) == ("what is wrong", "do this", "pools[0].max")
    assert done.reasons == ("HPC758 Too many nodes or vCPUs (dev-pool-mpi)",)


def test_advisory_violation_does_not_refuse(checked: Checked) -> None:
    done = report(run(violation("hpc-size", "advisory")), checked)
    assert done.verdict is Verdict.PASSED
    assert [issue.code for issue in done.issues] == ["HPC758"]


def test_mandatory_rule_that_could_not_run_refuses_although_the_engine_lets_it_pass(checked: Checked) -> None:
    unable = violation("hpc-size", "advisory", urn="", message=CANNOT, could_not_run=True)
    assert report(run(unable), checked).verdict is Verdict.REFUSED
    assert report(run(unable), checked, levels={"hpc-size": "remediate"}).verdict is Verdict.REFUSED
    assert report(run(unable), checked, levels={"hpc-size": "advisory"}).verdict is Verdict.PASSED
    foreign = dataclasses.replace(unable, policy="somebody-elses-rule")
    assert report(run(foreign), checked, levels={"hpc-size": "advisory"}).verdict is Verdict.REFUSED


def test_pack_that_did_not_run_is_no_pass(checked: Checked) -> None:
    done = report(run(packs=()), checked)
    assert (done.verdict, int(done.verdict)) == (Verdict.COULD_NOT_RUN, 2)
    assert done.reasons == ("HPC781 Policy pack did not run",)
    assert report(run(packs=("other",)), checked).verdict is Verdict.COULD_NOT_RUN


def test_failed_engine_is_no_pass(checked: Checked) -> None:
    broken = run(succeeded=False, diagnostics=(Diagnostic("error", "", "no such plugin"),))
    done = report(broken, checked)
    assert done.verdict is Verdict.COULD_NOT_RUN
    assert any("no such plugin" in issue.message for issue in done.issues)
    assert report(run(succeeded=False), checked).verdict is Verdict.COULD_NOT_RUN
    both = report(dataclasses.replace(broken, policies=(violation("hpc-size"),)), checked)
    assert both.verdict is Verdict.REFUSED


def test_refused_stack_file(checked: Checked) -> None:
    finding = Finding("HPC305", Severity.ERROR, "pools[0].instance_types[0]", "ecs.c7.large", "no eRDMA", "use another")
    warning = Finding("HPC306", Severity.WARNING, "pools[0]", None, "not verified", "refresh")
    refused = dataclasses.replace(checked, findings=(warning, finding))
    for result in (None, run(), run(succeeded=False)):
        done = report(result, refused)
        assert done.verdict is Verdict.REFUSED
        assert [issue.code for issue in done.refusing] == ["HPC305"]
    assert report(run(), dataclasses.replace(checked, findings=(warning,))).verdict is Verdict.PASSED
    assert report(None, checked).verdict is Verdict.COULD_NOT_RUN, "no error and no run is no pass"
    assert report(None, Checked(None, None, (finding,))).verdict is Verdict.REFUSED


@pytest.mark.parametrize("operation", ["replace", "delete"])
@pytest.mark.parametrize(("urn", "what"), [(NAS, "file system"), (NODE, "management node")])
def test_losing_data_refuses(checked: Checked, operation: str, urn: str, what: str) -> None:
    lost = run(changes=(change(urn, operation, replacing=("zoneId",) if operation == "replace" else ()),))
    done = report(lost, checked, stack="dev")
    assert done.verdict is Verdict.REFUSED
    (issue,) = done.refusing
    assert issue.code == "HPC750"
    assert f"would {operation} the {what} {urn.split('::')[-1]}" in issue.message
    assert ("because of zoneId" in issue.message) == (operation == "replace")
    assert report(lost, checked, levels={"hpc-keep-data": "disabled"}).verdict is Verdict.PASSED
    advised = report(lost, checked, levels={"hpc-keep-data": "advisory"})
    assert (advised.verdict, len(advised.issues)) == (Verdict.PASSED, 1)


def test_losing_data_can_be_waived_until_a_date(checked: Checked) -> None:
    lost = run(changes=(change(NAS, "delete"),))
    waiver = Waiver("hpc-keep-data", "dev-storage-*", ("dev",), "ops@example.com", "moved", date(2030, 1, 31))
    last = report(lost, checked, stack="dev", waivers=Waivers((waiver,), date(2030, 1, 31)))
    assert (last.verdict, len(last.waived)) == (Verdict.PASSED, 1)
    after = report(lost, checked, stack="dev", waivers=Waivers((waiver,), date(2030, 2, 1)))
    assert after.verdict is Verdict.REFUSED
    assert "the waiver of ops@example.com ended on 2030-01-31" in after.issues[0].message
    other = report(lost, checked, stack="prod", waivers=Waivers((waiver,), date(2030, 1, 31)))
    assert other.verdict is Verdict.REFUSED


def test_other_instances_may_be_replaced(checked: Checked) -> None:
    done = report(run(changes=(change(LOGIN, "replace", replacing=("imageId",)), change(NAS, "update"))), checked)
    assert done.verdict is Verdict.PASSED
    assert [(row.operation, row.because) for row in done.changes] == [("replace", ("imageId",)), ("update", ())]


def test_changes_show_components_only_where_their_inputs_changed(checked: Checked) -> None:
    changes = (
        change(ROOT, "create"),
        change(POOL, "update", changed=("max",)),
        change("urn:pulumi:dev::hpc::hpc:cluster:Cluster::dev", "create"),
        change(LOGIN, "same"),
    )
    done = report(run(changes=changes), checked)
    assert [(row.name, row.because) for row in done.changes] == [("dev-pool-mpi", ("max",))]


def test_changes_of_a_component_show_values_and_leave_prices_to_the_price(checked: Checked) -> None:
    values = (("max", 8, 16), ("instanceTypes", ["a"] * 30, None), ("worstHourly", 1.5, 3.0))
    one = dataclasses.replace(change(POOL, "update", changed=tuple(name for name, _, _ in values)), values=values)
    (row,) = report(run(changes=(one,)), checked, stack="dev").changes
    assert row.because[0] == "max 8 → 16"
    assert row.because[1].startswith('instanceTypes ["a", ') and row.because[1].endswith("… → (none)")
    assert len(row.because) == 2
    assert "because of `max 8 → 16`" in render(report(run(changes=(one,)), checked, stack="dev"), Format.MARKDOWN)
    price = dataclasses.replace(one, values=values[2:], changed=("worstHourly",))
    assert report(run(changes=(price,)), checked).changes[0].because == ("worstHourly",)


def test_price_before_after_and_difference(checked: Checked) -> None:
    assert checked.estimate is not None
    done = report(run(), checked, checked.estimate)
    assert done.price is not None
    assert {row.delta.worst for row in done.price.rows if row.delta} == {Decimal(0)}
    base = base_of(checked.estimate, "main")
    without = Base("main", base.totals, {k: v for k, v in base.parts.items() if k != "pool mpi"})
    row = report(run(), checked, without).price.rows[0]  # type: ignore[union-attr]
    assert (row.title, row.before) == ("pool mpi", None)
    assert row.delta == row.after, "a new pool costs all of its price more"
    gone = dataclasses.replace(base, parts={**base.parts, "pool old": base.parts["pool mpi"]})
    row = next(r for r in report(run(), checked, gone).price.rows if r.title == "pool old")  # type: ignore[union-attr]
    assert row.after is None and row.delta is not None and row.delta.worst == -(base.parts["pool mpi"].worst or 0)


def test_base_of_a_deployed_stack() -> None:
    cluster = {"type": "hpc:cluster:Cluster", "inputs": {"worstHourly": 10.5, "expectedMonthly": 100}}
    pool = {"type": "hpc:pool:Pool", "inputs": {"pool": "mpi", "worstHourly": 9.25}}
    base = base_of_state({"resources": [cluster, pool]})
    assert base is not None
    assert (base.totals.worst, base.totals.zero) == (Decimal("10.5"), None)
    assert base.parts["pool mpi"].worst == Decimal("9.25")
    assert base_of_state({}) is None
    assert base_of_state({"resources": None}) is None


def test_base_by_a_run_is_the_base_by_the_state() -> None:
    cluster = {"worstHourly": 10.5, "expectedMonthly": 100}
    pool = {"pool": "mpi", "worstHourly": 9.25}
    before = {"urn:pulumi:dev::hpc::hpc:cluster:Cluster::dev": cluster, POOL: pool}
    state = [{"type": "hpc:cluster:Cluster", "inputs": cluster}, {"type": "hpc:pool:Pool", "inputs": pool}]
    assert base_of_run(dataclasses.replace(run(), before=before)) == base_of_state({"resources": state})
    assert base_of_run(run()) is None


def test_drift(checked: Checked) -> None:
    done = report(run(), checked, drift=run(changes=(change(LOGIN, "delete"),)))
    assert done.verdict is Verdict.PASSED
    assert done.drift is not None and [row.operation for row in done.drift] == ["delete"]
    assert report(run(), checked).drift is None


# Forms

HOSTILE = "x|y `z` <img src=x> @all [a](b) _c_ #1\nnext\x00\x1b[31m"


@pytest.fixture
def full(checked: Checked) -> Report:
    """A report with something of everything, and texts that mean something to every form."""
    findings = (Finding("HPC306", Severity.WARNING, "pools[0]", HOSTILE, "not verified", "refresh"),)
    done = report(
        run(
            violation("hpc-port-range-width", message=f"HPC733 T\n{HOSTILE} (fix: pin <it>)", urn=LOGIN),
            violation("hpc-budget-hour", urn=ROOT),
            violation("hpc-tags", "advisory"),
            violation("hpc-waived", "advisory", message="HPC759 Waived\nhpc-size: too many (waived by o)"),
            changes=(change(NAS, "replace", replacing=("zoneId",)), change(LOGIN, "create")),
        ),
        dataclasses.replace(checked, findings=findings),
        checked.estimate,
        drift=run(changes=(change(LOGIN, "update", changed=("tags",)),)),
        stack="dev",
        stack_file="Pulumi.dev.yaml",
        environment="policies/config/dev.json",
        notes=("a note",),
    )
    assert done.verdict is Verdict.REFUSED
    return done


@pytest.mark.parametrize("form", Format)
def test_every_form_of_every_report(full: Report, form: Format, checked: Checked) -> None:
    reports = (
        full,
        report(run(), checked, stack="dev"),
        report(run(packs=()), checked, stack="dev"),
        report(None, Checked(None, None, ()), stack="dev"),
        could_not_run("HPC711", "the stack cannot be opened", "log in", stack="dev", stack_file="Pulumi.dev.yaml"),
    )
    for one in reports:
        assert render(one, form)
    text = render(full, form)
    for code in ("HPC733", "HPC756", "HPC750", "HPC306"):
        assert code in text
    assert "could not run" in render(reports[2], form) or form in (Format.SARIF, Format.JUNIT)


def test_json(full: Report) -> None:
    document = json.loads(render(full, Format.JSON))
    assert (document["layout"], document["verdict"], document["exit_code"]) == (1, "refused", 1)
    assert document["changes"][0]["because"] == ["zoneId"]
    assert document["price"]["rows"][-1]["title"] == "total"
    assert document["price"]["rows"][-1]["delta"]["worst"] == "0.0000"
    assert document["drift"] and document["waived"] and document["notes"] == ["a note"]


def test_markdown_is_edited_in_place_and_cannot_be_broken_out_of(full: Report) -> None:
    text = render(full, Format.MARKDOWN)
    lines = text.splitlines()
    assert lines[0] == marker("dev") == "<!-- hpc-preview:dev -->"
    assert lines[1] == "## ❌ dev: refused, 3 things to fix"
    assert "<img" not in text and "@all" not in text and "[a](b)" not in text
    assert "1 to create, 1 to replace" in text
    assert "**replace** `dev-storage-home`" in text and "because of `zoneId`" in text
    assert "### Drift" in text and "### Waived" in text
    for line in (line for line in lines if line.startswith("| ")):
        assert line.count("|") == 8, line
    assert marker("a --> b\n") == "<!-- hpc-preview:a-b- -->"


def test_markdown_links_to_pages_where_it_knows_the_site(full: Report) -> None:
    linked = render(dataclasses.replace(full, pages="https://example.com/o/r/blob/abc"), Format.MARKDOWN)
    assert "(https://example.com/o/r/blob/abc/docs/policies/hpc-port-range-width.md)" in linked
    github = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r", "GITHUB_SHA": "abc"}
    assert pages_address(github) == "https://github.com/o/r/blob/abc"
    gitlab = {"CI_PROJECT_URL": "https://gitlab.com/o/r", "CI_COMMIT_SHA": "abc"}
    assert pages_address(gitlab) == "https://gitlab.com/o/r/-/blob/abc"
    assert pages_address({}) == ""


def test_markdown_fits_into_a_comment(checked: Checked) -> None:
    many = tuple(violation("hpc-tags", urn=f"{LOGIN}-{i}", message="HPC751 T\n" + "w" * 5000) for i in range(500))
    text = render(report(run(*many), checked, stack="dev"), Format.MARKDOWN)
    assert len(text) < 65_536
    assert text.startswith(marker("dev"))


def test_markdown_says_once_what_one_rule_says_of_one_place(checked: Checked) -> None:
    many = [violation("hpc-size", message=f"HPC758 T\nthing {number} (fix: mend it)") for number in range(3)]
    other = violation("hpc-size", urn=LOGIN, message="HPC758 T\nother (fix: mend it)")
    text = render(report(run(*many, other), checked, stack="dev"), Format.MARKDOWN)
    assert "`dev-pool-mpi`<br>thing 0<br>thing 1<br>thing 2<br>**Fix:** mend it" in text
    assert text.count("**HPC758") == 2


def test_what_did_not_begin_was_refused_or_could_not_run() -> None:
    for verdict in (Verdict.REFUSED, Verdict.COULD_NOT_RUN):
        done = could_not_run("HPC784", "no such rule", "mend it", stack="dev", stack_file="x", verdict=verdict)
        assert done.verdict is verdict
        assert "no such rule" in render(done, Format.MARKDOWN)


def test_sarif(full: Report) -> None:
    document = json.loads(render(full, Format.SARIF))
    assert document["version"] == "2.1.0"
    (one,) = document["runs"]
    rules = one["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert one["invocations"] == [{"executionSuccessful": True, "exitCode": 1}]
    for result in one["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning")
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "Pulumi.dev.yaml"
        assert place["region"]["startLine"] >= 1
        assert len(result["partialFingerprints"]["hpcIssue/v1"]) == 32
    (budget,) = [result for result in one["results"] if result["ruleId"] == "HPC756"]
    text = (PROJECT_ROOT / "Pulumi.dev.yaml").read_text().splitlines()
    assert "budget:" in text[budget["locations"][0]["physicalLocation"]["region"]["startLine"] - 1]
    (waived,) = [result for result in one["results"] if "suppressions" in result]
    assert waived["ruleId"] == "HPC759"


def test_junit(full: Report, checked: Checked) -> None:
    root = ET.fromstring(render(full, Format.JUNIT))  # noqa: S314  written by this program
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert {rule.name for rule in RULES} <= set(cases)
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {"hpc-port-range-width", "hpc-budget-hour", "hpc-keep-data"}
    assert root.get("failures") == "3" and root.get("skipped") == "0"
    assert cases["hpc-tags"].find("failure") is None and cases["hpc-tags"].find("system-out") is not None
    unable = ET.fromstring(render(report(run(packs=()), checked, stack="dev"), Format.JUNIT))  # noqa: S314
    assert int(unable.get("skipped", "0")) == len(RULES), "rules that did not run did not pass"
    assert int(unable.get("failures", "0")) == 1


def test_files(full: Report, tmp_path: Path) -> None:
    files = write_reports(full, tmp_path / "new" / "folder")
    assert {form for form in Format if form not in files} == {Format.TERMINAL}
    assert all(file.read_text() == render(full, form) for form, file in files.items())


# Places and environments


def test_lines_of_paths() -> None:
    text = (PROJECT_ROOT / "Pulumi.prod.yaml").read_text()
    lines = text.splitlines()
    assert "name: burst" in lines[line_of(text, "pools[1]") - 1]
    assert "ecs.c8ae.16xlarge" in lines[line_of(text, "pools[1].instance_types[0]") - 1]
    assert "mpi_ports" in lines[line_of(text, "network.mpi_ports") - 1]
    assert "name: burst" in lines[line_of(text, "pools[1].nosuch.field") - 1]
    assert "hpc:cluster" in lines[line_of(text, "") - 1]
    for broken in ("", "[", "a: b", "config: 7", "config: {hpc:cluster: [1]}"):
        assert line_of(broken, "pools[3].max") >= 1


def test_paths_of_resources(checked: Checked) -> None:
    assert path_of("hpc-erdma-capable-types", POOL, checked.spec) == "pools[0].instance_types"
    assert path_of("hpc-budget-hour", "", checked.spec) == "budget"
    assert path_of("hpc-port-range-width", LOGIN, None) == "network.mpi_ports"


@pytest.mark.parametrize("name", ["dev", "staging", "prod", "local"])
def test_shipped_environments(name: str) -> None:
    found = environment_of(name)
    assert (found.file, found.note) == (CONFIG_DIR / f"{name}.json", "")
    assert set(found.levels) == set(BY_NAME)
    for rule, setting in (("hpc-budget-hour", "maxHourly"), ("hpc-budget-month", "maxMonthly")):
        assert found.settings[rule][setting] > 0, "every environment has a budget"
    if name == "prod":
        assert set(found.levels.values()) == {"mandatory"}


def test_stack_without_a_file_gets_the_smallest_caps() -> None:
    assert environment_of("prod-eu").file.name == "prod.json"
    found = environment_of("nobody-knows")
    assert found.file.name == "dev.json" and "nobody-knows.json" in found.note
    caps = {name: environment_of(name).settings["hpc-budget-hour"]["maxHourly"] for name in ("dev", "staging", "prod")}
    assert min(caps, key=lambda name: caps[name]) == "dev"


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "7",
        '{"hpc-nosuch": "advisory"}',
        '{"hpc-size": "sometimes"}',
        '{"hpc-size": 7}',
        '{"hpc-size": {"maxnodes": 7}}',
        '{"hpc-inputs": "disabled"}',
        '{"exceptions": {}}',
        '{"all": "advisory"}',
        '{"hpc-size": {"maxNodes": "many"}}',
        '{"hpc-size": {"maxNodes": 1.5}}',
        '{"hpc-size": {"maxNodes": true}}',
        '{"hpc-size": {"maxNodes": -1}}',
        '{"hpc-budget-hour": {"maxHourly": null}}',
        '{"hpc-ssh-sources": {"minPrefix": 33}}',
        '{"hpc-nas-sources": {"networks": "10.0.0.0/8"}}',
        '{"hpc-nas-sources": {"networks": [10]}}',
        '{"hpc-tags": {"defaults": {"hpc:role": 7}}}',
    ],
)
def test_settings_that_would_silently_not_count_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RefusedError) as error:
        read_environment(tmp_path / "x.json")
    assert error.value.code == "HPC784"
