"""The gate, with nothing made up: `hpc preview` and `hpc up` as people type them, the real engine, a watched cloud.

Stacks other than `local` go to the local cloud here, so that the settings of their own environments count.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc.deploy.session import Session, open_session
from hpc.engine.project import Deployment
from hpc.engine.results import RunResult
from hpc.errors import RefusedError
from hpc.paths import PROJECT_ROOT, cache_dir
from hpc.preview import Format, Report, Verdict, render
from hpc.preview.environment import environment_of
from hpc.preview.run import Applied, preview_session, preview_stack, up_session
from localcloud.api.client import LocalCloud

pytestmark = [pytest.mark.engine, pytest.mark.slow]

#: Name of the worst hour in JSON.
HOUR = "worst"

Cluster = dict[str, Any]
Change = Callable[[Cluster], None]


@dataclasses.dataclass(frozen=True)
class Place:
    """A folder with stack files of the test's own, a state backend, and an empty local cloud (API only)."""

    folder: Path
    cloud: LocalCloud

    def file(self, stack: str, *changes: Change, name: str = "") -> Path:
        """The shipped file of a stack, changed."""
        document = yaml.safe_load((PROJECT_ROOT / f"Pulumi.{stack}.yaml").read_text())
        for change in changes:
            change(document["config"]["hpc:cluster"])
        file = self.folder / (name or f"Pulumi.{stack}.yaml")
        kept = (
            [line for line in file.read_text().splitlines() if line.startswith("encryption")] if file.exists() else []
        )
        file.write_text("\n".join([*kept, yaml.safe_dump(document, sort_keys=False)]))
        return file

    def hpc(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from hpc.cli.main import main; main()", *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300)

    def session(self, stack: ExitStack, file: Path) -> Session:
        return stack.enter_context(open_session(file, progress=lambda line: None, hosts=False))


@pytest.fixture(scope="module")
def place(engine: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    from hpc.deploy.local import cloud_dir, cloud_environment, ensure_cloud
    from localcloud.api.launch import stop

    folder = tmp_path_factory.mktemp("gate")
    (folder / "backend").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPC_CACHE_DIR", str(cache_dir()))
        patch.setenv("HPC_STATE_DIR", str(folder / "state"))
        patch.setenv("PYTHONPATH", str(PROJECT_ROOT))
        cloud = ensure_cloud(lambda line: None, hosts=False)
        for name, value in cloud_environment(cloud).items():
            patch.setenv(name, value)
        patch.setenv("PULUMI_BACKEND_URL", f"file://{folder / 'backend'}")
        patch.setenv("PULUMI_CONFIG_PASSPHRASE", "only for this test")
        yield Place(folder, cloud)
        stop(cloud_dir())


def pool(**values: Any) -> Change:
    return lambda cluster: cluster["pools"][0].update(values)


def budget(**values: Any) -> Change:
    return lambda cluster: cluster["budget"].update(values)


def network(**values: Any) -> Change:
    return lambda cluster: cluster["network"].update(values)


#: What somebody proposes, and what the comment has to say: the rule, where, what is wrong, what to do.
PROPOSED: dict[str, tuple[tuple[Change, ...], tuple[str, ...]]] = {
    "c7 in an eRDMA pool": (
        (pool(instance_types=["ecs.c8ae.4xlarge", "ecs.c7.4xlarge"]),),
        (
            "**HPC305 Type without eRDMA** `pools[0].instance_types[1]`",
            "ecs.c7.4xlarge has no elastic RDMA interface",
            "**Fix:** use ecs.c8i.4xlarge, or set interconnect: tcp for pool mpi",
        ),
    ),
    "all ports for MPI": (
        (network(mpi_ports="1-65535"),),
        (
            "**HPC215 MPI port range too wide** `network.mpi_ports`",
            "1-65535 has 65535 ports, more than 1001",
            "**Fix:** use at most 1,001 ports, for instance 30000-31000",
        ),
    ),
    "pool doubled beyond the team's budget": (
        (pool(max=32),),
        (
            "**HPC601 Worst hour above the cap** `budget.max_hourly`",
            " CNY, above the cap of 120 CNY; most of it is compute of mpi",
            "**Fix:** lower max of a pool, choose smaller types",
            "Before: before.yaml.",
        ),
    ),
    "pool doubled, and the team's budget with it": (
        (pool(max=32), budget(max_hourly=1000, expected_monthly=100000)),
        (
            "**HPC756 Worst hour above the environment's cap**",
            " CNY, above the cap of 150.00 CNY",
            "**Fix:** lower max of a pool or choose smaller types",
            "Before: before.yaml.",
        ),
    ),
}


@pytest.mark.parametrize("proposed", PROPOSED)
def test_bad_change_is_refused_by_preview_and_up_and_nothing_is_made(place: Place, proposed: str) -> None:
    changes, comment = PROPOSED[proposed]
    before = place.file("dev", pool(max=16), name="before.yaml")
    file = place.file("dev", pool(max=16), *changes)
    reports = place.folder / "reports"
    previewed = place.hpc("preview", file, "--base", before, "--reports", reports)
    assert previewed.returncode == 1, previewed.stdout + previewed.stderr
    text = (reports / "preview.md").read_text()
    assert text.startswith("<!-- hpc-preview:dev -->\n## ❌ dev: refused, ")
    assert [part for part in comment if part not in text] == [], text
    if "doubled" in proposed:
        rows = json.loads((reports / "preview.json").read_text())["price"]["rows"]
        (row,) = [row for row in rows if row["title"] == "pool mpi"]
        assert Decimal(row["after"][HOUR]) == 2 * Decimal(row["before"][HOUR]) == 2 * Decimal(row["delta"][HOUR])
    tried = place.hpc("up", file, "--yes")
    assert tried.returncode == 1, tried.stdout + tried.stderr
    code = comment[0].strip("*").split()[0]
    assert f"refuses {code} " in tried.stderr, "up says which rule"
    assert "nothing was deployed" in tried.stderr
    if code.startswith("HPC3"):  # the engine's part is in the last test
        document = json.loads(place.hpc("up", file, "--yes", "--json").stdout)
        assert (document["succeeded"], document["report"]["verdict"]) == (False, "refused")
        assert code in {issue["code"] for issue in document["report"]["issues"] if issue["refuses"]}
    assert place.cloud.counts() == {}


SHIPPED = sorted({file.name.split(".")[1] for file in PROJECT_ROOT.glob("Pulumi.*.yaml")} - {"yaml", "local"})


@pytest.mark.parametrize("stack", SHIPPED)
def test_shipped_stack_passes_by_the_settings_of_its_environment(place: Place, stack: str) -> None:
    file = place.file(stack)
    text = file.read_text(encoding="utf-8")
    done = place.hpc("preview", file, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert file.read_text(encoding="utf-8") == text, "a stack that is tried out keeps its file as it is"
    report = json.loads(done.stdout)
    assert (report["verdict"], report["reasons"], report["notes"]) == ("passed", [], [])
    assert report["environment"] == f"policies/config/{stack}.json"
    assert sum(change["operation"] == "create" for change in report["changes"]) > 30
    assert place.cloud.counts() == {}


def test_stack_file_that_has_its_encryption_already(place: Place) -> None:
    file = place.file("dev")
    assert place.hpc("preview", file).returncode == 0
    (copy,) = (place.folder / "state").rglob("Pulumi.dev.yaml")
    (salt,) = [line for line in copy.read_text().splitlines() if line.startswith("encryptionsalt")]
    file.write_text(f"{file.read_text()}\n{salt}\n")
    done = place.hpc("preview", file)
    assert done.returncode == 0, done.stdout + done.stderr


def test_name_that_the_engine_would_not_find_is_refused(place: Place) -> None:
    file = place.file("dev", name="mine.yaml")
    for command in (("preview", file), ("up", file, "--yes")):
        done = place.hpc(*command)
        assert (done.returncode, "HPC729" in done.stdout + done.stderr) == (1, True), done.stdout + done.stderr


#: Resources that somebody makes by hand, past the stack file.
BY_HAND = """
import os, pulumi, pulumi_alicloud as alicloud
from components.provider import local_cloud, local_provider
cloud = pulumi.ResourceOptions(provider=local_provider("by-hand", "cn-hangzhou", local_cloud("local", os.environ)))
tags = {"hpc:cluster": "c", "hpc:role": "login"}
vpc = alicloud.vpc.Network("v", vpc_name="v", cidr_block="10.16.0.0/16", tags=tags, opts=cloud)
group = alicloud.ecs.SecurityGroup("g", vpc_id=vpc.id, inner_access_policy="Drop", tags=tags, opts=cloud)
if WHEN:
    alicloud.ecs.SecurityGroupRule("open", type="ingress", ip_protocol="tcp", port_range="1/65535",
        security_group_id=group.id, source_security_group_id=group.id, opts=cloud)
"""


def by_hand(place: Place, exits: ExitStack, when: str) -> Session:
    """The local stack with another program."""
    session = place.session(exits, place.file("local"))
    program = place.folder / "program.py"
    program.write_text(BY_HAND.replace("WHEN", when))
    return dataclasses.replace(
        session, deployment=Deployment(dataclasses.replace(session.deployment.workspace, program=program))
    )


def test_rule_that_no_stack_file_shows_is_refused(place: Place) -> None:
    with ExitStack() as exits:
        session = by_hand(place, exits, "True")
        previewed = preview_session(session)
        applied = up_session(session)
    assert previewed.verdict is Verdict.REFUSED
    assert (applied.report.verdict, applied.done) == (Verdict.REFUSED, None)
    assert [issue.rule for issue in applied.report.refusing] == ["hpc-port-range-width"]
    assert (
        "- **HPC733 Port range too wide** `open`<br>portRange 1/65535 opens 65,535 ports, more than 1,001; "
        "MPI is pinned to 30000/31000 here<br>**Fix:** pin MPI to a range of at most 1,001 ports"
    ) in render(applied.report, Format.MARKDOWN)
    assert place.cloud.counts() == {}


def test_what_only_the_deployment_shows_is_stopped_there(place: Place) -> None:
    with ExitStack() as exits:
        session = by_hand(place, exits, "not pulumi.runtime.is_dry_run()")
        seen: list[Report] = []
        applied = up_session(session, agree=lambda report, planned: seen.append(report))
        made = [rule for rule in _documents(place.cloud, "security_group_rule") if "65535" in json.dumps(rule)]
        assert [report.verdict for report in seen] == [Verdict.PASSED]
        assert applied.done is not None and not applied.done.succeeded
        assert applied.report.verdict is Verdict.REFUSED, render(applied.report, Format.TERMINAL)
        assert [issue.code for issue in applied.report.refusing] == ["HPC733"]
        assert made == []
        assert session.deployment.destroy().succeeded
    assert place.cloud.counts() == {}


def _documents(cloud: LocalCloud, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cloud.snapshot()["resources"].get(kind, [])
    return found


def test_nobody_agreed(place: Place) -> None:
    def no(report: Report, planned: RunResult) -> None:
        raise RefusedError("you said no", code="HPC014", fix="nothing was changed")

    with ExitStack() as exits, pytest.raises(RefusedError):
        up_session(by_hand(place, exits, "False"), agree=no)
    assert place.cloud.counts() == {}


#: Packs that break, as programs that the engine starts in place of the pack.
PYTHON_PACK = """
#!{python}
import os, sys
from pulumi_policy import *
def resource(args, report): {resource}
def stack(args, report): {stack}
PolicyPack("{name}", [ResourceValidationPolicy("r", "d", resource), StackValidationPolicy("s", "d", stack)])
"""

BROKEN = {
    "is not there": None,
    "ends at once": "#!/bin/sh\necho 'the pack cannot start' >&2\nexit 3\n",
    "says no port": "#!/bin/sh\necho hello\nexec sleep 30\n",
    "has a mistake in it": "#!/bin/sh\nexec {python} -c 'import nosuchmodule'\n",
    "ends at a resource": PYTHON_PACK.format(python="{python}", name="hpc", resource="os._exit(3)", stack="pass"),
    "ends at the stack": PYTHON_PACK.format(python="{python}", name="hpc", resource="pass", stack="os._exit(3)"),
    "raises at a resource": PYTHON_PACK.format(python="{python}", name="hpc", resource="1 / 0", stack="pass"),
    "is somebody else's": PYTHON_PACK.format(python="{python}", name="other", resource="pass", stack="pass"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_pack_that_breaks_is_never_a_pass(place: Place, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    pack = place.folder / f"pack-{how.replace(' ', '-')}"
    if (text := BROKEN[how]) is not None:
        pack.write_text(textwrap.dedent(text).lstrip().replace("{python}", sys.executable))
        pack.chmod(0o755)
        (place.folder / "PulumiPolicy.yaml").write_text("name: broken\nversion: 0.0.1\nruntime: python\n")
    monkeypatch.setattr("hpc.preview.run.PACK_PROGRAM", pack)
    file = place.file("local")
    done = preview_stack(file, hosts=False)
    assert (done.verdict, int(done.verdict)) == (Verdict.COULD_NOT_RUN, 2), render(done, Format.TERMINAL)
    assert done.issues and all(issue.message and issue.fix for issue in done.issues)
    with ExitStack() as exits:
        applied = up_session(place.session(exits, file))
    assert (applied.report.verdict, applied.done) == (Verdict.COULD_NOT_RUN, None)
    assert place.cloud.counts() == {}


def test_settings_that_cannot_be_used_are_refused_by_both(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = place.folder / "config"
    folder.mkdir()
    (folder / "dev.json").write_text('{"hpc-no-such-rule": "advisory"}')
    monkeypatch.setattr("hpc.preview.surroundings.environment_of", lambda stack: environment_of(stack, folder))
    done = preview_stack(place.file("dev"), hosts=False)
    assert (done.verdict, [issue.code for issue in done.issues]) == (Verdict.REFUSED, ["HPC784"])
    with ExitStack() as exits, pytest.raises(RefusedError, match="there is no rule hpc-no-such-rule"):
        up_session(place.session(exits, place.file("dev")))
    assert place.cloud.counts() == {}


def test_good_stack_goes_up_and_a_bad_change_of_it_does_not(place: Place) -> None:
    """Last, as what it makes stays until the cloud of the module goes."""
    file = place.file("dev")
    done = place.hpc("up", file, "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert (document["succeeded"], document["packs"]) == (True, ["hpc"])
    assert (document["report"]["verdict"], document["report"]["reasons"]) == ("passed", [])
    assert place.cloud.counts()["instance"] == 2
    everything = place.cloud.snapshot()["resources"]

    place.file("dev", pool(max=32), budget(max_hourly=1000, expected_monthly=100000))
    refused = place.hpc("up", file, "--yes", "--json")
    assert refused.returncode == 1, refused.stdout + refused.stderr
    document = json.loads(refused.stdout)
    assert (document["succeeded"], document["changes"]) == (False, [])
    assert "HPC756" in {issue["code"] for issue in document["report"]["issues"] if issue["refuses"]}
    price = next(row for row in document["report"]["price"]["rows"] if row["title"] == "pool mpi")
    assert document["report"]["price"]["base"] == "deployed"
    assert float(price["after"][HOUR]) == pytest.approx(4 * float(price["before"][HOUR]), rel=1e-3)
    assert place.cloud.snapshot()["resources"] == everything

    place.file("dev")
    with ExitStack() as exits:
        again: Applied = up_session(place.session(exits, file))
    assert again.done is not None and again.done.packs == ("hpc",)
    assert (again.report.verdict, again.done.changed) == (Verdict.PASSED, ())
