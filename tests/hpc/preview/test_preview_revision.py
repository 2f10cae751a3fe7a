"""Comparing with a git revision, in repositories of the tests' own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hpc.checks import check_stack_file
from hpc.errors import RefusedError
from hpc.paths import PROJECT_ROOT
from hpc.preview import Verdict
from hpc.preview.model import base_of
from hpc.preview.revision import base_at, revision, rule_changes
from hpc.preview.run import preview_stack

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("HPC_CACHE_DIR", str(tmp_path / ".cache"))
    made = Repository(tmp_path.resolve())
    made.write(".gitignore", ".cache\n")
    made.write("Pulumi.dev.yaml", (PROJECT_ROOT / "Pulumi.dev.yaml").read_text())
    made.write("policies/config/dev.json", json.dumps({"hpc-size": {"maxNodes": 32}, "hpc-tags": "remediate"}))
    made.write("policies/config/prod.json", "{}")
    made.write("policies/waivers.yaml", "waivers: []\n")
    made.commit()
    return made


def test_price_of_a_revision(repository: Repository) -> None:
    file = repository.root / "Pulumi.dev.yaml"
    before = check_stack_file(file).estimate
    assert before is not None
    file.write_text(file.read_text().replace("max: 8", "max: 4"))
    for name in ("main", "HEAD", repository.git("rev-parse", "HEAD").strip()[:12]):
        assert base_at(revision(name, file), file) == (base_of(before, name), ())


def test_what_was_not_there_or_not_understood(repository: Repository) -> None:
    repository.write("Pulumi.broken.yaml", "config: [")
    repository.commit()
    new = repository.write("Pulumi.new.yaml", (PROJECT_ROOT / "Pulumi.dev.yaml").read_text())
    base, (note,) = base_at(revision("main", new), new)
    assert (base, "there is no Pulumi.new.yaml in main" in note) == (None, True)
    broken = repository.root / "Pulumi.broken.yaml"
    base, (note,) = base_at(revision("main", broken), broken)
    assert (base, "could not be understood" in note) == (None, True)


def test_revision_that_is_not_there(repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = repository.root / "Pulumi.dev.yaml"
    for name in ("nosuch", "--upload-pack=x", "main:Pulumi.dev.yaml", ""):
        with pytest.raises(RefusedError, match="no commit of the repository") as error:
            revision(name, file)
        assert error.value.code == "HPC786"
    alone = Path(shutil.copy(file, tmp_path_factory.mktemp("no-repository")))
    with pytest.raises(RefusedError, match="lies in no git repository"):
        revision("main", alone)
    done = preview_stack(file, revision="nosuch")
    assert (done.verdict, [issue.code for issue in done.issues]) == (Verdict.REFUSED, ["HPC786"])


def test_git_that_is_not_there(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RefusedError) as error:
        revision("main", repository.root / "Pulumi.dev.yaml")
    assert error.value.code == "HPC786"


def test_changes_of_the_rules_are_told(repository: Repository) -> None:
    file, config = repository.root / "Pulumi.dev.yaml", repository.root / "policies" / "config"
    assert rule_changes(revision("main", file), config / "dev.json") == ()
    repository.git("checkout", "--quiet", "-b", "change")
    repository.write("policies/config/dev.json", json.dumps({"hpc-size": {"maxNodes": 500, "maxVcpus": 7}}))
    repository.write("policies/config/prod.json", '{"hpc-tags": "advisory"}')
    repository.write("policies/waivers.yaml", "waivers: [x]\n")
    repository.commit()
    (note,) = rule_changes(revision("main", file), config / "dev.json")
    assert note == (
        "this also changes the rules themselves since main: policies/config/dev.json (hpc-size maxNodes 32 → 500, "
        'hpc-size maxVcpus (default) → 7, hpc-tags enforcementLevel "remediate" → (default)), policies/waivers.yaml'
    )


def test_many_changes_of_the_rules_leave_the_settings_in_sight(repository: Repository) -> None:
    file, config = repository.root / "Pulumi.dev.yaml", repository.root / "policies" / "config"
    for number in range(9):
        repository.write(f"policies/a{number}.py", "")
    repository.write("policies/config/dev.json", "{}")
    repository.git("add", "--all")
    (note,) = rule_changes(revision("main", file), config / "dev.json")
    assert "since main: policies/config/dev.json (hpc-size maxNodes 32 → (default)" in note
    assert note.endswith(", and 4 more")


def test_what_changed_elsewhere_meanwhile_is_not_told(repository: Repository) -> None:
    file, config = repository.root / "Pulumi.dev.yaml", repository.root / "policies" / "config"
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    repository.write("policies/waivers.yaml", "waivers: [x]\n")
    repository.commit()
    repository.git("checkout", "--quiet", "change")
    assert rule_changes(revision("main", file), config / "dev.json") == ()


def test_report_of_a_refused_file_has_price_and_notes(repository: Repository) -> None:
    file = repository.root / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("ecs.c8ae.4xlarge", "ecs.c7.4xlarge"))
    done = preview_stack(file, revision="main")
    assert done.verdict is Verdict.REFUSED
    assert done.price is not None and done.price.base == "main"


def estimate(repository: Repository, base: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from hpc.cli.main import main; main()", "estimate", "Pulumi.dev.yaml"]
    return subprocess.run(
        [*command, "--diff", base, *options],
        cwd=repository.root,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)},
        capture_output=True,
        text=True,
    )


def test_estimate_tells_the_difference_to_a_revision(repository: Repository) -> None:
    file = repository.root / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("max: 8", "max: 4"))
    done = estimate(repository, "main", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["difference"]["delta"]["worst"].startswith("-")
    assert "## Change of price" in estimate(repository, "HEAD", "--format", "markdown").stdout


@pytest.mark.parametrize(("base", "code"), [("no-such-branch", "HPC786"), ("Pulumi.gone.yaml", "HPC011")])
def test_estimate_says_what_it_cannot_compare_with(repository: Repository, base: str, code: str) -> None:
    done = estimate(repository, base)
    assert done.returncode == 1 and code in done.stderr


def test_estimate_of_a_stack_that_is_new_shows_its_price(repository: Repository) -> None:
    repository.write(".gitignore", ".cache\nPulumi.dev.yaml\n")
    repository.git("rm", "--quiet", "--cached", "Pulumi.dev.yaml")
    repository.commit()
    done = estimate(repository, "HEAD", "--format", "markdown")
    assert done.returncode == 0, done.stderr
    assert "there is no Pulumi.dev.yaml in HEAD" in done.stderr
    assert "## Price of dev" in done.stdout
