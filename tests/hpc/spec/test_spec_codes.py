"""The registry of codes against the source, the page of codes, and the JSON schema."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml
from spec_cases import BASE, CASES, changed

from hpc.errors import CannotRunError
from hpc.findings import Severity
from hpc.paths import PROJECT_ROOT
from hpc.spec.cluster import ClusterSpec
from hpc.spec.codes import RANGES, code_files, page, read_codes, registry
from hpc.spec.load import parse_cluster
from hpc.spec.schema import cluster_schema

ROOMS = ("hpc", "components", "policies", "localcloud")
CODE = re.compile(r"HPC\d{3}")
TOLD = re.compile(r"(HPC\d{3}): ")


def raised() -> Iterator[tuple[str, Path]]:
    """Every code in the source that an error or a finding is given, as argument or by a constant, or that is told."""
    for room in ROOMS:
        for path in sorted((PROJECT_ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                given: list[ast.expr] = []
                if isinstance(node, ast.Call):
                    given = [*node.args, *(word.value for word in node.keywords if word.arg == "code")]
                elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                    given = [node.value]
                text = ast.unparse(node) if isinstance(node, ast.JoinedStr) else ""
                if told := TOLD.match(text[2:]):
                    yield told[1], path.relative_to(PROJECT_ROOT)
                for value in given:
                    if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
                        yield value.value, path.relative_to(PROJECT_ROOT)


def test_every_code_that_is_raised_is_declared_by_its_room() -> None:
    missing = []
    for code, path in raised():
        known = registry().get(code)
        if known is None:
            missing.append(f"{path} raises {code}, which no codes.toml declares")
        elif known.room != "hpc/spec" and not path.is_relative_to(known.room):
            missing.append(f"{path} raises {code}, which belongs to {known.room}")
    assert missing == []


def test_codes_that_are_raised_are_found_by_this_test() -> None:
    assert {"HPC001", "HPC207", "HPC601", "HPC020", "HPC931"} <= {code for code, _ in raised()}


def test_no_two_rooms_claim_one_code() -> None:
    claims = Counter(code.code for path in code_files() for code in read_codes(path))
    assert [code for code, count in claims.items() if count > 1] == []


def test_every_code_of_the_spec_is_raised() -> None:
    used = {code for code, _ in raised()} | {
        code for path in (PROJECT_ROOT / "hpc/spec").rglob("*.py") for code in CODE.findall(path.read_text())
    }
    assert {code.code for code in registry().values() if code.room == "hpc/spec"} <= used


@pytest.mark.parametrize("code", registry().values(), ids=lambda code: code.code)
def test_entries_are_whole(code: object) -> None:
    from hpc.spec.codes import Code

    assert isinstance(code, Code)
    assert CODE.fullmatch(code.code)
    assert int(code.code[3:]) // 100 in RANGES
    assert code.title and code.explanation and code.fix
    assert code.severity in Severity


def test_parts_that_codes_rely_on_exist() -> None:
    from hpc.spec.problems import model_at

    for code in registry().values():
        for part in code.needs:
            *where, last = part.split(".")
            model = model_at(tuple(where))
            assert model is not None, (code.code, part)
            assert last in model.model_fields, (code.code, part)


def test_page_of_codes_is_up_to_date() -> None:
    text = (PROJECT_ROOT / "docs/codes.md").read_text(encoding="utf-8")
    assert text == page(registry().values()), "run `make generate`"


def test_malformed_table_of_codes_is_a_typed_error(tmp_path: Path) -> None:
    for text in ("[HPC1", "[HPC100]\ntitle = 'x'", "HPC100 = 3"):
        (tmp_path / "codes.toml").write_text(text)
        with pytest.raises(CannotRunError) as error:
            read_codes(tmp_path / "codes.toml")
        assert error.value.code == "HPC015"


def test_schema_is_up_to_date() -> None:
    text = (PROJECT_ROOT / "hpc/spec/cluster.schema.json").read_text(encoding="utf-8")
    assert json.loads(text) == cluster_schema(), "run `make generate`"


def test_schema_is_valid_and_takes_the_shipped_stacks() -> None:
    schema = cluster_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for path in PROJECT_ROOT.glob("Pulumi.*.yaml"):
        cluster = yaml.safe_load(path.read_text())["config"]["hpc:cluster"]
        assert list(validator.iter_errors(cluster)) == []
    assert not validator.is_valid({**BASE, "polls": 1})
    assert not validator.is_valid(changed({"pools[0].max": "lots"}))
    assert not validator.is_valid(changed({"pools[0].name": "M"}))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_schema_takes_what_the_models_take(case: object) -> None:
    from spec_cases import Case

    assert isinstance(case, Case)
    validator = jsonschema.Draft202012Validator(cluster_schema())
    assert parse_cluster(changed(case.good)).findings == ()
    assert [error.message for error in validator.iter_errors(changed(case.good))] == []


def test_every_field_of_the_schema_is_explained() -> None:
    schema = ClusterSpec.model_json_schema()
    for name, model in [("cluster", schema), *schema["$defs"].items()]:
        for field, entry in model.get("properties", {}).items():
            assert entry.get("description"), f"{name}.{field}"
