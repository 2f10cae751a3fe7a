"""The gate through real previews in a local cloud (API only): what passes, what is refused, what the comment says."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hpc.checks import check_stack_file
from hpc.deploy.session import Session
from hpc.engine.project import Deployment
from hpc.paths import PROJECT_ROOT
from hpc.preview import Format, Report, Verdict, render, report
from hpc.preview.deployed import analyze_session
from hpc.preview.environment import CONFIG_DIR, read_environment
from hpc.preview.model import base_of
from hpc.preview.run import preview_session, preview_stack
from hpc.preview.surroundings import PACK_PROGRAM
from tests.engine.conftest import Stack, life

__all__ = ["life"]

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: What somebody adds to the program by hand, past the stack file.
BY_HAND = """
import runpy, pulumi, pulumi_alicloud as alicloud
runpy.run_path({program!r}, run_name="__main__")
from components.provider import local_cloud, local_provider
import os
cloud = pulumi.ResourceOptions(provider=local_provider("by-hand", "cn-hangzhou", local_cloud("local", os.environ)))
tags = {{"hpc:cluster": "life", "hpc:role": "compute"}}
{body}
"""


@pytest.fixture
def stack(life: Stack, engine: Path) -> Iterator[Stack]:
    return life


def settings(stack: Stack, environment: str) -> Path:
    """The settings of an environment, for a cluster that is not protected, so that the test can remove it."""
    document = json.loads((CONFIG_DIR / f"{environment}.json").read_text())
    file = stack.file.parent / f"{environment}.json"
    file.write_text(json.dumps({**document, "hpc-keep-data": "disabled"}))
    return file


def preview_by_hand(stack: Stack, body: str, environment: str = "dev") -> Report:
    """A real preview of the stack with something added to the program."""
    config = settings(stack, environment)
    with ExitStack() as exits:
        session = stack.session(exits)
        program = stack.file.parent / "program.py"
        text = BY_HAND.format(program=str(PROJECT_ROOT / "__main__.py"), body=textwrap.dedent(body))
        program.write_text(text)
        workspace = dataclasses.replace(session.deployment.workspace, program=program)
        result = Deployment(workspace).preview(policy_packs=[PACK_PROGRAM], policy_configs=[config])
        return report(result, session.checked, levels=read_environment(config).levels, stack="local")


def test_the_stack_passes_and_says_its_price(stack: Stack) -> None:
    done = stack.run(preview_session)
    assert (done.verdict, done.reasons) == (Verdict.PASSED, ()), render(done, Format.TERMINAL)
    assert done.count("create") > 20
    assert done.price is not None and done.price.rows[-1].title == "total"
    assert done.environment == "policies/config/local.json"
    assert render(done, Format.MARKDOWN).startswith("<!-- hpc-preview:local -->\n## ✅ local: passed\n")


def test_type_without_erdma_in_an_erdma_pool_is_refused_before_the_engine_runs(stack: Stack) -> None:
    stack.cluster["pools"][0] |= {"interconnect": "erdma", "instance_types": ["ecs.c7.2xlarge"]}
    stack.write()
    done = preview_stack(stack.file, hosts=False)
    assert done.verdict is Verdict.REFUSED
    comment = render(done, Format.MARKDOWN)
    assert "## ❌ local: refused, " in comment
    assert "**HPC305" in comment and "`pools[0].instance_types[0]`" in comment
    assert "**Fix:**" in comment


@pytest.mark.parametrize(
    ("body", "rules", "comment"),
    [
        (
            """
            alicloud.ecs.EcsLaunchTemplate("burst", instance_type="ecs.c7.2xlarge", key_pair_name="k",
                http_tokens="required", system_disk={"encrypted": True}, template_tags=tags,
                tags={**tags, "hpc:interconnect": "erdma"}, opts=cloud)
            """,
            {"hpc-erdma-capable-types"},
            "- **HPC730 Type without eRDMA where eRDMA is asked for** `burst`<br>"
            "ecs.c7.2xlarge has no elastic RDMA interface, so MPI would fall back to TCP; "
            "the nearest type with eRDMA is ecs.c8i.2xlarge<br>**Fix:** choose a type with eRDMA",
        ),
        (
            """
            group = alicloud.ecs.SecurityGroup("open", vpc_id="vpc-1", inner_access_policy="Drop",
                tags=tags, opts=cloud)
            alicloud.ecs.SecurityGroupRule("everything", type="ingress", ip_protocol="tcp", port_range="1/65535",
                security_group_id=group.id, source_security_group_id=group.id, opts=cloud)
            """,
            {"hpc-port-range-width"},
            "- **HPC733 Port range too wide** `everything`<br>portRange 1/65535 opens 65,535 ports, more than 1,001; "
            "MPI is pinned to 30000/31000 here<br>**Fix:** pin MPI to a range of at most 1,001 ports",
        ),
        (
            """
            key = alicloud.ecs.EcsKeyPair("k", tags=tags, opts=cloud)
            alicloud.ecs.SecurityGroupRule("late", type="ingress", ip_protocol="tcp",
                port_range=key.id.apply(lambda known: "1/65535"), security_group_id="sg-1",
                cidr_ip="10.98.0.0/16", opts=cloud)
            """,
            {"hpc-port-range-width", "hpc-ssh-sources", "hpc-sources-inside-cluster"},
            "could not be verified: \\`portRange\\` is known only after deployment",
        ),
    ],
)
def test_what_is_made_by_hand_is_refused(stack: Stack, body: str, rules: set[str], comment: str) -> None:
    done = preview_by_hand(stack, body)
    assert done.verdict is Verdict.REFUSED
    assert {issue.rule for issue in done.refusing} == rules, render(done, Format.TERMINAL)
    assert comment in render(done, Format.MARKDOWN)


def test_pool_beyond_the_budget_is_refused_with_the_price_before_and_after(stack: Stack) -> None:
    pool = stack.cluster["pools"][0]
    pool |= {"instance_types": ["ecs.c8i.16xlarge"], "max": 8}
    stack.write()
    before = check_stack_file(stack.file).estimate
    assert before is not None
    pool["max"] = 16

    def run(session: Session) -> Report:
        config = settings(stack, "dev")
        result = session.deployment.preview(policy_packs=[PACK_PROGRAM], policy_configs=[config])
        levels = read_environment(config).levels
        return report(result, session.checked, base_of(before, "main"), levels=levels, stack="local")

    done = stack.run(run)
    assert done.verdict is Verdict.REFUSED
    assert "hpc-budget-hour" in {issue.rule for issue in done.refusing}
    comment = render(done, Format.MARKDOWN)
    assert "**HPC756 Worst hour above the environment's cap**" in comment
    assert "above the cap of 150.00 CNY" in comment
    assert "lower max of a pool or choose smaller types" in comment
    assert done.price is not None
    row = next(row for row in done.price.rows if row.title == "pool mpi")
    assert row.before is not None and row.after is not None and row.delta is not None
    assert row.before.worst is not None and row.after.worst == 2 * row.before.worst == 2 * (row.delta.worst or 0)
    assert "| pool mpi | " in comment and "Before: main." in comment
    assert done.refusing and render(done, Format.TERMINAL).rstrip().endswith("local: refused")


def test_remediation_mends_what_is_made_by_hand(stack: Stack) -> None:
    body = """
    alicloud.ecs.SecurityGroup("untagged", vpc_id="vpc-1", inner_access_policy="Drop", opts=cloud)
    """
    assert preview_by_hand(stack, body).verdict is Verdict.PASSED
    strict = preview_by_hand(stack, body, "prod")
    assert "hpc-tags" in {issue.rule for issue in strict.refusing}


def test_what_is_deployed_keeps_the_rules(stack: Stack) -> None:
    stack.write()
    empty = preview_stack(stack.file, deployed=True, hosts=False)
    assert (empty.verdict, empty.issues[0].code) == (Verdict.COULD_NOT_RUN, "HPC785")

    def run(session: Session) -> None:
        made = session.deployment.up(policy_packs=[PACK_PROGRAM], policy_configs=[CONFIG_DIR / "local.json"])
        assert made.succeeded, made.first_error
        assert made.packs == ("hpc",)
        clean = analyze_session(session, drift=True)
        assert (clean.verdict, clean.reasons, clean.drift) == (Verdict.PASSED, (), ()), render(clean, Format.TERMINAL)

        # Against what is deployed, the same stack file costs the same.
        again = preview_session(session)
        assert again.price is not None and again.price.base == "deployed"
        assert again.price.rows[-1].delta is not None and abs(again.price.rows[-1].delta.worst or 0) < 1

    stack.run(run)
