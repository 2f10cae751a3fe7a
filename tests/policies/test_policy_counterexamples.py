"""Every rule against resources that break it, through real previews: one of what is wrong, one of what is unknown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hand_made import VARIABLE
from policy_cases import BAD, GROUP_SOURCE, UNKNOWNS, Case, around

from hpc.deploy.session import Session
from hpc.engine.project import Deployment
from hpc.engine.results import RunResult
from hpc.preview import Verdict, report
from hpc.preview.surroundings import PACK_PROGRAM
from localcloud.providers.resources import RESOURCES
from policies import kinds
from policies.model import Resource
from policies.props import UNKNOWN
from policies.registry import BY_NAME, RULES
from tests.engine.conftest import Stack, life, plugins

__all__ = ["life", "plugins"]

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: What the provider wants beside what rules look at.
REQUIRED: dict[str, dict[str, Any]] = {
    kinds.INSTANCE: {"imageId": "debian_12_10_x64_20G", "securityGroups": ["sg-1"], "vswitchId": "vsw-1"},
    kinds.INSTANCE_SET: {"imageId": "debian_12_10_x64_20G", "securityGroupIds": ["sg-1"], "vswitchId": "vsw-1"},
    kinds.GROUP_RULE: {"securityGroupId": "sg-1", "type": "ingress"},
    kinds.GROUP: {"vpcId": "vpc-1"},
    kinds.SCALING: {"scalingGroupId": "asg-1"},
    kinds.PROVISIONING: {"launchTemplateId": "lt-1"},
    kinds.QUEUE: {"clusterId": "ehpc-1"},
    kinds.INTERFACE: {"vswitchId": "vsw-1"},
    kinds.DISK: {"zoneId": "cn-hangzhou-j", "size": 40},
    kinds.FILE_SYSTEM: {"protocolType": "NFS", "storageType": "Performance"},
    kinds.NAS_RULE: {"accessGroupName": "a"},
    kinds.VSWITCH: {"vpcId": "vpc-1"},
    kinds.RAM_POLICY: {"policyName": "p"},
    kinds.ADDRESS_BINDING: {"allocationId": "eip-1"},
}

#: Settings by which every rule that has nothing against anything by itself refuses.
CONFIG: dict[str, Any] = {
    "hpc-budget-hour": {"maxHourly": 1},
    "hpc-budget-month": {"maxMonthly": 1},
    "hpc-compute-released": {"requireMaxLifetime": True},
    "hpc-instance-types": {"denied": ["ecs.c8ae.*"]},
    "hpc-regions": {"allowed": ["cn-beijing"]},
}


def taken_by_provider(case: Case) -> bool:
    """Whether the provider itself accepts the inputs; what it refuses never reaches a rule."""
    no_document = case.changes.get("policyDocument") == "{"
    no_protocol = "ipProtocol" in case.changes and case.changes["ipProtocol"] is None
    return not (no_document or no_protocol or case.changes == GROUP_SOURCE)


def entry(one: Resource, name: str = "") -> dict[str, Any]:
    """A resource as the program takes it."""

    def plain(value: Any) -> Any:
        if value is UNKNOWN:
            return "$unknown"
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    inputs = {**REQUIRED.get(one.type, {}), **plain(dict(one.props.values))}
    for key, urns in one.sources.items():
        if key in inputs:
            inputs[key] = f"$id:{urns[0].split('::')[-1]}"
    if one.type == kinds.POOL and name:
        inputs["pool"] = name  # names of pools are unique
    parent = one.parent.split("::")[-1] if one.parent else None
    return {"type": one.type, "name": name or one.name, "inputs": inputs, "parent": parent, "protect": one.protect}


def subjects(cases: Iterable[tuple[str, Case]]) -> list[dict[str, Any]]:
    """The resources of cases, each case's own and what goes with it, what is referred to first."""
    made = []
    for name, case in cases:
        text = json.dumps([entry(case.subject(), name), *(entry(one, f"{name}-{one.name}") for one in case.others)])
        for known, its_name in (("subject", name), *((one.name, f"{name}-{one.name}") for one in case.others)):
            text = text.replace(f'"$id:{known}"', f'"$id:{its_name}"')
        mine, *others = json.loads(text)
        made += [*others, mine] if f'"$id:{name}-' in json.dumps(mine) else [mine, *others]
    return made


def preview(stack: Stack, made: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, session: Session) -> RunResult:
    """One preview of a program that makes the resources by hand."""
    folder = stack.file.parent
    resources, config = folder / "resources.json", folder / "config.json"
    resources.write_text(json.dumps([*map(entry, around()), *made]))
    config.write_text(json.dumps(CONFIG))
    monkeypatch.setenv(VARIABLE, str(resources))
    workspace = dataclasses.replace(session.deployment.workspace, program=Path(__file__).with_name("hand_made.py"))
    result = Deployment(workspace).preview(policy_packs=[PACK_PROGRAM], policy_configs=[config])
    errors = [d.message for d in result.diagnostics if d.severity == "error"]
    assert result.packs == ("hpc",)
    assert errors in ([], ["preview failed"]), "nothing but the rules stopped it"
    assert report(result, session.checked).verdict is Verdict.REFUSED
    assert session.cloud is not None and session.cloud.counts() == {}, "a preview makes nothing"
    return result


def said(result: RunResult, rule: str, name: str) -> list[str]:
    """What a rule says of a resource; of the stack for an empty name."""
    return [
        violation.message
        for violation in result.policies
        if violation.policy == rule
        and violation.level == "mandatory"
        and (violation.urn.endswith(f"::{name}") if name else "::pulumi:pulumi:Stack::" in violation.urn)
    ]


@pytest.mark.parametrize("which", ["wrong", "unknown"])
def test_every_counter_example_is_refused_by_its_rule(
    life: Stack, plugins: str, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    cases = {f"s{number}": case for number, case in enumerate(BAD if which == "wrong" else UNKNOWNS)}
    cases = {name: case for name, case in cases.items() if taken_by_provider(case)}
    if plugins == "stand-in":  # they have the types of the shipped stacks only
        cases = {name: case for name, case in cases.items() if case.kind in RESOURCES or case.kind.startswith("hpc:")}
    result: RunResult = life.run(partial(preview, life, subjects(cases.items()), monkeypatch))
    silent, shown = [], set()
    for name, case in cases.items():
        about_stack = case.rule in ("hpc-budget-hour", "hpc-budget-month", "hpc-size")
        messages = said(result, case.rule, name) or (said(result, case.rule, "") if about_stack else [])
        # What depends on the settings, or on all resources together, is worded by those of this test.
        if not messages or (not case.config and not about_stack and not any(case.says in one for one in messages)):
            silent.append(f"{name} {case}: {messages}")
        else:
            shown.add(case.rule)
    assert silent == [], "\n".join(silent)
    if plugins == "real":
        assert shown == {rule.name for rule in RULES}, "every rule refuses something through the engine"
    codes = {violation.message.split()[0] for violation in result.policies if violation.policy in shown}
    assert codes == {BY_NAME[rule].code for rule in shown}
