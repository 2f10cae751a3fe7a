"""The pack as pulumi-policy has it: what each policy declares, waivers on their own, the generated pages, its start."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from analysis import plain as state_values
from policy_cases import BAD, UNKNOWNS, Case
from pulumi.runtime import proto
from pulumi_policy import (
    EnforcementLevel,
    PolicyCustomTimeouts,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationPolicy,
)
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from hpc.errors import RefusedError
from hpc.paths import PROJECT_ROOT
from policies import docs, kinds
from policies.adapter import Seen, plain, resource_of
from policies.model import Resource, Violation
from policies.pack import INPUTS, policies
from policies.props import UNKNOWN, Props, UnverifiedError
from policies.registry import BY_NAME, RULES
from policies.serve import ByType, library_server
from policies.waivers import WAIVERS_FILE, Waivers, load_waivers

MADE = {policy.name: policy for policy in policies()}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_policies_declare_what_their_rules_are(rule: Any) -> None:
    policy = MADE[rule.name]
    assert policy.enforcement_level is EnforcementLevel(rule.level.value)
    assert policy.severity is not None and policy.severity.value == rule.severity.value
    assert policy.description.startswith(rule.code) and policy.tags == [rule.code]
    assert policy.remediation_steps and policy.display_name
    assert policy.url and (PROJECT_ROOT / policy.url).is_file()
    assert isinstance(policy, StackValidationPolicy if rule.stack_check else ResourceValidationPolicy)
    for name, setting in rule.settings.items():
        assert policy.config_schema is not None
        schema = policy.config_schema.properties[name]
        jsonschema.Draft7Validator.check_schema(schema)
        assert schema["description"]
        if setting.default is not None:
            jsonschema.validate(setting.default, schema)


def test_inputs_are_kept_before_any_rule_asks() -> None:
    assert next(iter(MADE)) == INPUTS


def arguments(props: dict[str, Any], kind: str = kinds.GROUP, name: str = "g") -> ResourceValidationArgs:
    options = PolicyResourceOptions(True, [], None, [], PolicyCustomTimeouts(0, 0, 0), [], "urn:parent")
    proxy = unknown_checking_proxy(props)
    return ResourceValidationArgs(kind, proxy, f"urn:pulumi:dev::hpc::{kind}::{name}", name, options, None)


def test_proxies_become_plain_values_with_unknown_ones_marked() -> None:
    props = {
        "a": UNKNOWN_STRING_VALUE,
        "b": {"c": UNKNOWN_STRING_VALUE, "d": 1},
        "e": [UNKNOWN_STRING_VALUE, "f"],
        "g": None,
    }
    one = resource_of(arguments(props))
    assert one.props.values == {"a": UNKNOWN, "b": {"c": UNKNOWN, "d": 1}, "e": [UNKNOWN, "f"], "g": None}
    assert (one.protect, one.parent, one.region) == (True, "urn:parent", "")
    assert plain("text") == "text"


def test_inputs_are_those_of_the_latest_look() -> None:
    seen = Seen()
    seen.take(arguments({"a": UNKNOWN_STRING_VALUE}))
    seen.take(arguments({"a": "known"}))
    assert seen.resource(arguments({})).props.values == {"a": "known"}
    assert seen.resource(arguments({"b": 1}, name="other")).props.values == {"b": 1}


def test_remediation_leaves_what_is_there_and_what_is_not_known() -> None:
    rule = BY_NAME["hpc-tags"]
    assert rule.remedy is not None
    config = rule.configured({"defaults": {"hpc:cluster": "c", "hpc:role": "other"}})
    whole = resource_of(arguments({"tags": {"hpc:role": "login", "mine": UNKNOWN_STRING_VALUE}}))
    assert rule.remedy(whole, config) == {"tags": {"hpc:role": "login", "mine": UNKNOWN, "hpc:cluster": "c"}}
    assert rule.remedy(resource_of(arguments({"tags": UNKNOWN_STRING_VALUE})), config) is None
    assert rule.remedy(resource_of(arguments({"tags": {"hpc:cluster": "c", "hpc:role": "x"}})), config) is None
    tokens = BY_NAME["hpc-metadata-tokens"]
    assert tokens.remedy is not None
    for untouched in ({"httpTokens": "required"}, {"httpTokens": UNKNOWN_STRING_VALUE}, {"httpEndpoint": "disabled"}):
        assert tokens.remedy(resource_of(arguments(untouched, kinds.INSTANCE)), {}) is None
    mended = tokens.remedy(resource_of(arguments({"httpTokens": "optional"}, kinds.INSTANCE)), {})
    assert mended == {"httpEndpoint": "enabled", "httpTokens": "required"}


def test_props() -> None:
    props = Props({"no": None, "empty": "", "yes": "true", "n": "5", "m": {"x": 1}, "one": [{"x": 2}], "u": UNKNOWN})
    assert not props.has("no") and not props.has("empty") and props.has("u") and not props.has("nosuch")
    assert props.flag("yes", False) is True and props.flag("no", True) is True
    assert props.number("n") == 5.0 and props.number("no") is None
    assert props.part("m").number("x") == 1 and props.part("one").number("x") == 2
    assert list(props.part("nosuch").texts("x")) == []
    for read in (
        lambda: props.text("u"),
        lambda: props.flag("n", True),
        lambda: props.number("yes"),
        lambda: props.part("n"),
    ):
        with pytest.raises(UnverifiedError):
            read()
    with pytest.raises(UnverifiedError, match=r"`m.y\[1\]`"):
        list(Props({"m": {"y": ["a", UNKNOWN]}}).part("m").texts("y"))


@pytest.mark.parametrize("config", [{}, {"hpc-port-range-width": {"maxPorts": 5}}], ids=["defaults", "settings"])
def test_showing_resources_by_type_changes_nothing(config: dict[str, Any]) -> None:
    """Both servers say the same of every resource that some rule refuses, and mend the same."""
    made = policies()
    both = [server("hpc", "1", made, EnforcementLevel.ADVISORY) for server in (library_server, ByType)]
    settings = proto.ConfigureAnalyzerRequest()
    for name, values in config.items():
        settings.policyConfig[name].properties.update(values)
        settings.policyConfig[name].enforcementLevel = proto.MANDATORY
    for name in ("hpc-tags", "hpc-metadata-tokens"):
        settings.policyConfig[name].enforcementLevel = proto.REMEDIATE
        settings.policyConfig[name].properties.update({"defaults": {"hpc:cluster": "c", "hpc:role": "other"}})
    said = 0
    for server in both:
        server.Configure(settings, None)
    for case in (*BAD, *UNKNOWNS):
        one = case.subject()
        request = proto.AnalyzeRequest(type=one.type, urn=one.urn, name=one.name)
        request.properties.update(state_values(one.props.values))
        answers = [server.Analyze(request, None) for server in both]
        assert answers[0].diagnostics == answers[1].diagnostics, case
        said += len(answers[1].diagnostics)
        mend = proto.AnalyzeRequest(type=one.type, urn=one.urn, name=one.name, properties=request.properties)
        assert both[0].Remediate(mend, None) == both[1].Remediate(mend, None), case
    assert said > len(BAD) / 2


def engine_values(value: Any) -> Any:
    """Inputs as the engine sends them at a preview."""
    if value is UNKNOWN:
        return UNKNOWN_STRING_VALUE
    if isinstance(value, dict):
        return {key: engine_values(item) for key, item in value.items()}
    return [engine_values(item) for item in value] if isinstance(value, list) else value


def whole(case: Case) -> proto.AnalyzeStackRequest:
    """The stack of a case as the engine shows it at the end: outputs, and what they come from."""
    request = proto.AnalyzeStackRequest()
    for one in case.stack().resources:
        told = request.resources.add(type=one.type, urn=one.urn, name=one.name, parent=one.parent)
        told.options.protect = one.protect
        told.properties.update(state_values({**one.props.values, "id": f"{one.name}-id"}))
        told.provider.properties.update({"region": one.region or "cn-hangzhou"})
        for key, urns in one.sources.items():
            told.propertyDependencies[key].urns.extend(urns)
    return request


@pytest.mark.parametrize("registered", [True, False], ids=["seen before", "of an earlier run"])
def test_unpacking_the_stack_once_changes_nothing(registered: bool) -> None:
    """Both servers say the same of every stack that some rule refuses, whether its resources were registered or not."""
    said = 0
    for case in [case for case in (*BAD, *UNKNOWNS) if BY_NAME[case.rule].stack_check]:
        answers = []
        for make in (library_server, ByType):
            seen = Seen()
            server_of_pack = make("hpc", "1", policies(seen=seen), EnforcementLevel.ADVISORY)
            server_of_pack.seen = seen
            settings = proto.ConfigureAnalyzerRequest()
            settings.policyConfig[case.rule].properties.update(case.config)
            settings.policyConfig[case.rule].enforcementLevel = proto.MANDATORY
            server_of_pack.Configure(settings, None)
            for one in case.stack().resources if registered else ():
                request = proto.AnalyzeRequest(type=one.type, urn=one.urn, name=one.name)
                request.properties.update(engine_values(one.props.values))
                request.provider.properties.update({"region": one.region or "cn-hangzhou"})
                server_of_pack.Analyze(request, None)
            answers.append(server_of_pack.AnalyzeStack(whole(case), None).diagnostics)
        assert answers[0] == answers[1], case
        said += any(diagnostic.policyName == case.rule for diagnostic in answers[1])
    assert said > 20


def test_types_that_no_rule_looks_at_and_secrets() -> None:
    seen = Seen()
    one = ByType("hpc", "1", policies(seen=seen), EnforcementLevel.ADVISORY)
    one.seen = seen
    request = proto.AnalyzeRequest(type="other:x:Y", urn="urn:x::y", name="y")
    secret = {SPECIAL_SIG_KEY: SPECIAL_SECRET_SIG, "value": {"a": [1, None, True, UNKNOWN_STRING_VALUE]}}
    request.properties.update({"s": secret, "n": 7})
    assert one.Analyze(request, None) == proto.AnalyzeResponse()
    assert one.Remediate(request, None) == proto.RemediateResponse()
    kept = seen.resource(arguments({}, "other:x:Y", "y")).props
    assert kept.values == {}, "of another URN nothing is known"
    assert seen.deployed(Resource("other:x:Y", "y", Props({}), "urn:x::y"), "i").props.values == {
        "s": {"a": [1.0, None, True, UNKNOWN]},
        "n": 7.0,
        "id": "i",
    }


# Waivers

ENTRY = {
    "rule": "hpc-size",
    "resource": "c-pool-*",
    "stacks": ["dev", "test-*"],
    "owner": "ops@example.com",
    "reason": "benchmark week",
    "expires": date(2030, 6, 30),
}


def write(folder: Path, document: Any) -> Path:
    file = folder / "waivers.yaml"
    file.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return file


def read(folder: Path, document: Any, today: date = date(2030, 6, 30)) -> Waivers:
    return load_waivers(today, BY_NAME.keys(), write(folder, document))


def test_waiver_counts_up_to_its_last_day(tmp_path: Path) -> None:
    violation = Violation("too many", "urn:x::c-pool-a", "c-pool-a")
    for today, counts in ((date(2030, 6, 29), True), (date(2030, 6, 30), True), (date(2030, 7, 1), False)):
        waivers = read(tmp_path, {"waivers": [ENTRY]}, today)
        assert bool(waivers.covering("hpc-size", violation, "dev")) == counts
        assert bool(waivers.expired_for("hpc-size", violation, "dev")) != counts


def test_waiver_covers_its_rule_resource_and_stacks_only(tmp_path: Path) -> None:
    waivers = read(tmp_path, {"waivers": [ENTRY, {**ENTRY, "resource": "stack", "stacks": ["*"]}]})
    pool = Violation("too many", "urn:x::c-pool-a", "c-pool-a")
    assert waivers.covering("hpc-size", pool, "test-7")
    assert not waivers.covering("hpc-size", pool, "prod")
    assert not waivers.covering("hpc-tags", pool, "dev")
    assert not waivers.covering("hpc-size", Violation("too many", "urn:x::d-pool-a", "d-pool-a"), "dev")
    assert waivers.covering("hpc-size", Violation("too many"), "prod"), "the whole stack"
    assert not waivers.covering("hpc-size", Violation("x", "urn:x::stack-trace", "stack-trace"), "prod")


@pytest.mark.parametrize(
    "document",
    [
        "[",
        "7",
        {"waiver": []},
        {"waivers": 7},
        {"waivers": ["hpc-size"]},
        {"waivers": [{**ENTRY, "rule": "hpc-nosuch"}]},
        {"waivers": [{**ENTRY, "expires": "2030-06-31"}]},
        {"waivers": [{**ENTRY, "expires": datetime(2030, 6, 30, tzinfo=UTC)}]},
        {"waivers": [{**ENTRY, "owner": " "}]},
        {"waivers": [{**ENTRY, "stacks": "dev"}]},
        {"waivers": [{**ENTRY, "stacks": []}]},
        {"waivers": [{**ENTRY, "until": date(2030, 1, 1)}]},
        *({"waivers": [{k: v for k, v in ENTRY.items() if k != key}]} for key in ENTRY if key != "stacks"),
    ],
    ids=str,
)
def test_waivers_that_are_not_whole_are_refused(document: Any, tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as error:
        read(tmp_path, document)
    assert error.value.code == "HPC760"


def test_no_file_and_an_empty_one_are_no_waivers(tmp_path: Path) -> None:
    assert load_waivers(date(2030, 1, 1), (), tmp_path / "nosuch").entries == ()
    assert read(tmp_path, "").entries == () and read(tmp_path, {"waivers": []}).entries == ()


def test_waivers_of_this_repository() -> None:
    load_waivers(date(2026, 1, 1), BY_NAME.keys(), WAIVERS_FILE)


# Pages and start


def test_pages_are_up_to_date() -> None:
    folder = PROJECT_ROOT / docs.PAGES
    made = docs.pages()
    assert {file.name for file in folder.glob("*.md")} == set(made), "run `python -m policies.docs`"
    for name, text in made.items():
        assert (folder / name).read_text() == text, f"{name}: run `python -m policies.docs`"


def test_start_loads_nothing_that_is_slow() -> None:
    slow = "pydantic pulumi_alicloud pulumi_command rich jinja2 typer components dill pulumi.automation._stack"
    program = "import sys; from policies.later import load_later; load_later(); "
    program += "from policies.pack import policies; policies(); import policies.serve; "
    program += f"print(*(set('{slow}'.split()) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_what_is_loaded_later_is_whole_when_it_is_used() -> None:
    program = "from policies.later import load_later; load_later(); import pulumi; "
    program += "print(pulumi.automation.LocalWorkspace.__name__, pulumi.dynamic.Resource.__name__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["LocalWorkspace", "Resource"]
