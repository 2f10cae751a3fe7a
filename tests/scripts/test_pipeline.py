"""The pipelines: their files are valid, and their steps run here as they run there."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc.paths import PROJECT_ROOT, cache_dir

STEPS = PROJECT_ROOT / "scripts" / "pipeline"
WORKFLOWS = sorted((PROJECT_ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=PROJECT_ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def actionlint() -> Path:
    """The linter: installed, kept from an earlier run, or built from its Go module."""
    if found := shutil.which("actionlint"):
        return Path(found)
    kept = cache_dir() / "tools" / "actionlint"
    if not kept.exists():
        go = shutil.which("go")
        if go is None:
            pytest.skip("no actionlint, and no Go to build it with")
        built = run(go, "install", ACTIONLINT, GOBIN=str(kept.parent), GOFLAGS="")
        if built.returncode:
            pytest.skip(f"no actionlint, and it cannot be built: {built.stderr[-300:]}")
    return kept


def test_github_workflows() -> None:
    done = run(str(actionlint()), "-no-color", *(str(file) for file in WORKFLOWS))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", [*WORKFLOWS, PROJECT_ROOT / ".gitlab-ci.yml"], ids=lambda file: file.name)
def test_pipelines_are_yaml_and_their_steps_exist(file: Path) -> None:
    text = file.read_text()
    assert isinstance(yaml.safe_load(text), dict)
    named = set(re.findall(r"scripts/pipeline/[\w.-]+", text))
    assert named
    for step in named:
        assert (PROJECT_ROOT / step).is_file(), step
        if step.endswith(".sh"):
            assert (PROJECT_ROOT / step).stat().st_mode & stat.S_IXUSR, step


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_have_no_long_lived_keys_and_few_rights(file: Path) -> None:
    text = file.read_text()
    document = yaml.safe_load(text)
    assert document["permissions"] == {"contents": "read"}
    assert not re.search(r"secrets\.\w*(ACCESS_KEY|SECRET_KEY)", text)
    secrets = set(re.findall(r"secrets\.(\w+)", text))
    assert secrets <= {"PULUMI_CONFIG_PASSPHRASE", "GITHUB_TOKEN"}
    for job in document["jobs"].values():
        assert job["timeout-minutes"] <= 120
        # Names of branches and titles of requests are written by strangers: they are no part of a command.
        for step in job["steps"]:
            assert "${{ github" not in step.get("run", ""), step


def test_gitlab_has_the_same_steps() -> None:
    document = yaml.safe_load((PROJECT_ROOT / ".gitlab-ci.yml").read_text())
    steps = set(re.findall(r"scripts/pipeline/[\w.-]+", json.dumps(document)))
    github = {step for file in WORKFLOWS for step in re.findall(r"scripts/pipeline/[\w.-]+", file.read_text())}
    assert steps == github - {"scripts/pipeline/stacks.sh"}
    assert document["up prod"]["rules"][0]["when"] == "manual"
    assert document["up prod"]["rules"][0]["allow_failure"] is False
    stacks = json.loads(run(str(STEPS / "stacks.sh")).stdout)
    for job in ("preview", "drift"):
        assert document[job]["parallel"]["matrix"] == [{"STACK": stacks}]
    assert {f"up {stack}" for stack in stacks} <= set(document)


def test_stacks_in_the_order_of_promotion() -> None:
    assert json.loads(run(str(STEPS / "stacks.sh")).stdout) == ["dev", "staging", "prod"]


def test_scripts_are_clean() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = run(str(shellcheck), "-x", *(str(file) for file in sorted(STEPS.glob("*.sh"))))
    assert done.returncode == 0, done.stdout


def test_step_without_a_stack_says_how_it_is_called() -> None:
    for arguments in ([], ["nosuch"], ["dev", "prod"]):
        done = run(str(STEPS / "preview.sh"), *arguments)
        assert done.returncode == 2
        assert "usage:" in done.stderr and "dev staging prod local" in done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with a commit of its own, in which stack files can be changed."""
    root = tmp_path / "project"
    root.mkdir()
    for name in ("hpc", "components", "policies", "scripts", "localcloud", "Pulumi.yaml", "__main__.py"):
        target = root / name
        if name == "scripts":
            shutil.copytree(PROJECT_ROOT / name, target)
        else:
            target.symlink_to(PROJECT_ROOT / name)
    (root / ".venv" / "bin").mkdir(parents=True)
    for tool in ("python", "hpc"):
        (root / ".venv" / "bin" / tool).symlink_to(Path(sys.executable).with_name(tool))
    for file in PROJECT_ROOT.glob("Pulumi.*.yaml"):
        shutil.copy(file, root / file.name)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    for command in (("init", "-q"), ("add", "--", "Pulumi.dev.yaml"), ("commit", "-q", "-m", "base")):
        subprocess.run([*git, *command], cwd=root, check=True, capture_output=True)
    return root


def step(project: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(project / "scripts" / "pipeline" / command[0]), *command[1:]],
        cwd=project,
        env={**os.environ, "REPORTS": str(project / "reports"), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_check_says_the_difference_to_the_base(project: Path) -> None:
    stack = project / "Pulumi.dev.yaml"
    stack.write_text(stack.read_text().replace("max: 8", "max: 9"))
    done = step(project, "check.sh", BASE="HEAD")
    assert done.returncode == 0, done.stderr
    assert "## Change of price: dev to dev" in done.stdout
    assert "## Price of prod" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("max: 8", "max: 32", "HPC601"),
        ("ecs.c8ae.4xlarge", "ecs.c7.2xlarge", "HPC305"),
        ("ssh_from:", "mpi_ports: 1-65535, ssh_from:", "HPC215"),
    ],
)
def test_refused_changes_are_refused_with_a_comment(project: Path, old: str, new: str, code: str) -> None:
    stack = project / "Pulumi.dev.yaml"
    text = stack.read_text()
    assert old in text
    stack.write_text(text.replace(old, new))
    assert step(project, "check.sh", BASE="HEAD").returncode == 1
    done = step(project, "preview.sh", "dev", BASE="HEAD")
    assert done.returncode == 1, done.stderr
    comment = (project / "reports" / "dev" / "preview.md").read_text()
    assert comment.startswith("<!-- hpc-preview:dev -->\n## ❌ dev: refused, ")
    assert f"**{code} " in comment and "**Fix:** " in comment
    sarif = json.loads((project / "reports" / "dev" / "preview.sarif").read_text())
    assert code in {result["ruleId"] for result in sarif["runs"][0]["results"]}
    if code == "HPC601":
        row = next(line for line in comment.splitlines() if line.startswith("| pool mpi | "))
        before, after, change = (float(cell.strip(" +").replace(",", "")) for cell in row.split("|")[2:5])
        assert after == pytest.approx(4 * before, abs=0.05) and change == pytest.approx(after - before, abs=0.02)


class Sites(http.server.ThreadingHTTPServer):
    """A code hosting site and an STS on this machine: keeps comments, hands out keys."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str, dict[str, str], str]] = []
        self.refuse = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Sites

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.calls.append((self.command, self.path, dict(self.headers), body))
        path = urllib.parse.urlsplit(self.path)
        answer: Any = {}
        status = 200
        if "token-request" in path.path:
            answer = {"value": "github-token"}
        elif path.path == "/":
            status = 403 if self.server.refuse else 200
            keys = {"AccessKeyId": "STS.id", "AccessKeySecret": "hush", "SecurityToken": "hush-token"}
            answer = {"Message": "trust policy"} if self.server.refuse else {"Credentials": keys}
        elif self.command == "GET":
            page = int(urllib.parse.parse_qs(path.query)["page"][0])
            answer = self.server.comments[(page - 1) * 100 : page * 100]
        elif self.command == "POST":
            self.server.comments.append({"id": len(self.server.comments) + 1, **json.loads(body)})
        else:
            self.server.comments[int(path.path.rpartition("/")[2]) - 1].update(json.loads(body))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    do_GET = do_POST = do_PATCH = do_PUT = _serve  # noqa: N815

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def sites() -> Iterator[Sites]:
    server = Sites()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_comment_is_edited_in_place(sites: Sites, tmp_path: Path, kind: str) -> None:
    environment = {
        "github": {
            "PULL_REQUEST": "7",
            "GITHUB_API_URL": sites.address,
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_TOKEN": "secret",
        },
        "gitlab": {
            "PULL_REQUEST": "",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_API_V4_URL": sites.address,
            "CI_PROJECT_ID": "3",
            "GITLAB_COMMENT_TOKEN": "secret",
        },
    }[kind]
    file = tmp_path / "preview.md"

    def post(text: str) -> str:
        file.write_text(text)
        done = run(sys.executable, str(STEPS / "comment.py"), str(file), **environment)
        assert done.returncode == 0, done.stderr
        assert "secret" not in done.stdout + done.stderr
        return done.stderr

    sites.comments += [{"id": index + 1, "body": "hello"} for index in range(120)]
    assert "written" in post("<!-- hpc-preview:dev -->\nfirst")
    assert "written" in post("<!-- hpc-preview:prod -->\nother")
    assert "edited" in post("<!-- hpc-preview:dev -->\nsecond")
    bodies = [comment["body"] for comment in sites.comments[120:]]
    assert bodies == ["<!-- hpc-preview:dev -->\nsecond", "<!-- hpc-preview:prod -->\nother"]


def test_no_request_no_comment(tmp_path: Path) -> None:
    done = run(sys.executable, str(STEPS / "comment.py"), str(tmp_path / "x"), PULL_REQUEST="", CI_MERGE_REQUEST_IID="")
    assert (done.returncode, done.stdout) == (0, "")


def oidc(sites: Sites, **more: str) -> dict[str, str]:
    return {
        "ALIBABA_CLOUD_ROLE_ARN": "acs:ram::1:role/hpc",
        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": "acs:ram::1:oidc-provider/ci",
        "ALIBABA_CLOUD_STS_ENDPOINT": sites.address,
        **more,
    }


def test_role_is_assumed_with_the_token_of_the_job(sites: Sites, tmp_path: Path) -> None:
    github = {
        "GITHUB_ACTIONS": "true",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{sites.address}/token-request?x=1",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request",
    }
    for name, environment in (("github", github), ("gitlab", {"ALIBABA_CLOUD_OIDC_TOKEN": "gitlab-token"})):
        file = tmp_path / name
        done = run(sys.executable, str(STEPS / "assume_role.py"), str(file), **oidc(sites, **environment))
        assert done.returncode == 0, done.stderr
        verb, path, _, body = sites.calls[-1]
        form = urllib.parse.parse_qs(body)
        assert (verb, path, form["OIDCToken"]) == ("POST", "/", [f"{name}-token"])
        assert form["Action"] == ["AssumeRoleWithOIDC"] and form["DurationSeconds"] == ["3600"]
        lines = dict(line.split("=", 1) for line in file.read_text().splitlines())
        assert lines["ALIBABA_CLOUD_ACCESS_KEY_ID"] == lines["ALICLOUD_ACCESS_KEY"] == "STS.id"
        assert lines["ALICLOUD_SECURITY_TOKEN"] == "hush-token"
        assert file.stat().st_mode & 0o077 == 0
        assert ("::add-mask::hush\n" in done.stdout) == (name == "github")
        assert name == "github" or "hush" not in done.stdout + done.stderr


def test_role_that_cannot_be_assumed_is_a_clear_failure(sites: Sites, tmp_path: Path) -> None:
    sites.refuse = True
    environment = oidc(sites, ALIBABA_CLOUD_OIDC_TOKEN="t")
    done = run(sys.executable, str(STEPS / "assume_role.py"), str(tmp_path / "keys"), **environment)
    assert done.returncode == 2
    assert "trust policy" in done.stderr and not (tmp_path / "keys").exists()
    environment["ALIBABA_CLOUD_ROLE_ARN"] = ""
    del environment["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"]
    done = run(sys.executable, str(STEPS / "assume_role.py"), str(tmp_path / "keys"), **environment)
    assert done.returncode == 2 and "ALIBABA_CLOUD_OIDC_PROVIDER_ARN is not there" in done.stderr
