"""What the README says can be done, and which files it names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from hpc.paths import PROJECT_ROOT
from hpc.spec.load import load_stack_file


def test_files_that_the_documentation_links_to_exist() -> None:
    for page in (PROJECT_ROOT / "README.md", *(PROJECT_ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["local"]]
    page = (PROJECT_ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for requirement in wanted:
        name = re.split(r"[<>=\[ ]", requirement)[0].removeprefix("alibabacloud")
        assert name in page, f"docs/dependencies.md does not say why {requirement} is here"


def test_the_cluster_of_the_readme_is_valid(tmp_path: Path) -> None:
    text = (PROJECT_ROOT / "README.md").read_text(encoding="utf-8")
    block = text.split("# Pulumi.mycluster.yaml\n")[1].split("\n\n")[0]
    file = tmp_path / "Pulumi.mycluster.yaml"
    file.write_text("\n".join(line.removeprefix("    ") for line in block.splitlines()) + "\n")
    loaded = load_stack_file(file)
    assert loaded.findings == ()
    assert loaded.spec is not None
    assert loaded.spec.pools[0].max == 64
