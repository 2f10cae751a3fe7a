"""Reading of stack files: every finding at once, in the terms of the file, without what merely follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from spec_cases import BASE, SHIPPED, changed

from hpc.errors import CannotRunError
from hpc.findings import Finding, FindingsError
from hpc.paths import PROJECT_ROOT
from hpc.spec.cluster import ClusterSpec
from hpc.spec.load import _STAND_INS, LoadedStack, load_stack_file, parse_cluster, require
from hpc.spec.rules import check

STACKS = sorted(path for path in PROJECT_ROOT.glob("Pulumi.*.yaml"))


def loaded_text(tmp_path: Path, text: str | bytes) -> LoadedStack:
    path = tmp_path / "Pulumi.some.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_stack_file(path)


def everything(loaded: LoadedStack) -> tuple[Finding, ...]:
    checked = loaded.relevant(check(loaded.spec, SHIPPED)) if loaded.spec else ()
    return (*loaded.findings, *checked)


def spots(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(found.code, found.path) for found in findings]


def stack(cluster: Any = BASE, **config: Any) -> str:
    return yaml.safe_dump({"config": {"hpc:cluster": cluster, **config}})


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.name)
def test_shipped_stacks_have_no_errors(path: Path) -> None:
    loaded = load_stack_file(path)
    assert loaded.spec is not None
    assert require(loaded, everything(loaded)) is loaded.spec
    assert loaded.stack == path.name.split(".")[1]
    assert loaded.configured_region == loaded.spec.region


def test_there_are_three_shipped_stacks() -> None:
    assert {"Pulumi.dev.yaml", "Pulumi.local.yaml", "Pulumi.prod.yaml"} <= {path.name for path in STACKS}


def test_every_default_validates() -> None:
    """Only the four required keys given: no findings except that nobody may log in yet."""
    least = {key: value for key, value in BASE.items() if key != "network"}
    assert spots(everything(parse_cluster(least))) == [("HPC221", "network.ssh_from")]


def test_every_default_written_out_says_the_same() -> None:
    spec = ClusterSpec.model_validate(BASE)
    loaded = parse_cluster(spec.model_dump(mode="json", exclude_none=True))
    assert loaded.findings == ()
    # What is written out although it has no effect is said to have none.
    assert {found.code for found in everything(loaded)} == {"HPC505"}
    assert loaded.spec == spec


def test_every_required_field_has_a_stand_in() -> None:
    from hpc.spec.problems import model_at

    def required(prefix: tuple[str, ...]) -> list[str]:
        model = model_at(prefix)
        assert model is not None
        out = []
        for name, field in model.model_fields.items():
            if field.is_required():
                out.append(".".join((*prefix, name)))
            if model_at((*prefix, name)) is not None and getattr(field.annotation, "__origin__", None) is not dict:
                out += required((*prefix, name))
        return out

    assert set(required(())) == set(_STAND_INS)
    assert ClusterSpec.model_validate({key: value for key, value in _STAND_INS.items() if "." not in key})


@pytest.mark.parametrize(
    ("changes", "code", "path", "value", "said", "fix"),
    [
        ({"polls": 1}, "HPC030", "polls", 1, "polls is not known", "write pools"),
        ({"pools[0].maxx": 3}, "HPC030", "pools[0].maxx", 3, "maxx", "write max"),
        ({"network.mpi-ports": "1"}, "HPC030", "network.mpi-ports", "1", "mpi-ports", "write mpi_ports"),
        ({"zzz": 1}, "HPC030", "zzz", 1, "zzz", "the keys here are: name, region"),
        ({"usage": {"mpi": {"hours": 3}}}, "HPC030", "usage.mpi.hours", 3, "hours", "node_hours_per_month"),
        ({"pools[0].max": "lots"}, "HPC032", "pools[0].max", "lots", "a whole number, not text", "form"),
        ({"pools[0].max": True}, "HPC032", "pools[0].max", True, "a whole number, not true or false", "form"),
        ({"pools[0].max": 8.5}, "HPC032", "pools[0].max", 8.5, "not a number with a fraction", "form"),
        ({"network.nat": "perhaps"}, "HPC032", "network.nat", "perhaps", "must be true or false", "form"),
        ({"zones": "cn-hangzhou-j"}, "HPC032", "zones", "cn-hangzhou-j", "must be a list", "form"),
        ({"storage": {"mount": "/home"}}, "HPC032", "storage", None, "must be a list, not a section", "form"),
        ({"management": None}, "HPC032", "management", None, "a section of keys and values, not empty", "form"),
        ({"pools[0].charge": "sport"}, "HPC033", "pools[0].charge", "sport", "is none of: spot, payg", "write spot"),
        ({"budget.currency": "EUR"}, "HPC033", "budget.currency", "EUR", "is none of: CNY, USD", "use one of"),
        ({"pools[0].max": 0}, "HPC034", "pools[0].max", 0, "below 1", "range"),
        ({"login.count": 11}, "HPC034", "login.count", 11, "above 10", "range"),
        ({"name": "T"}, "HPC035", "name", "T", "is not a name", "form"),
        ({"name": "t-"}, "HPC035", "name", "t-", "is not a name", "form"),
        ({"pools[0].name": "x" * 25}, "HPC035", "pools[0].name", "x" * 25, "at most 24", "form"),
        ({"tags": {"aliyun-x": "v"}}, "HPC035", "tags.aliyun-x", "aliyun-x", "keeps for itself", "form"),
        ({"usage": {"A B": {}}}, "HPC035", 'usage["A B"]', "A B", "is not a name", "form"),
        ({"zones": []}, "HPC036", "zones", None, "0 entries instead of at least 1", "entries"),
        ({"pools[0].idle": "10 min"}, "HPC037", "pools[0].idle", "10 min", "is not a duration", "90s"),
        ({"network.cidr": "10.0.0.1/16"}, "HPC037", "network.cidr", "10.0.0.1/16", "10.0.0.0/16 is the network", ""),
        ({"network.cidr": "fd00::/64"}, "HPC037", "network.cidr", "fd00::/64", "must be an IPv4 network", ""),
        ({"network.mpi_ports": "9-1"}, "HPC037", "network.mpi_ports", "9-1", "from a lower to a higher port", ""),
        ({"budget.max_hourly": -1}, "HPC037", "budget.max_hourly", -1, "is not an amount of money", "900"),
    ],
)
def test_form_of_a_value(changes: dict[str, Any], code: str, path: str, value: Any, said: str, fix: str) -> None:
    (found,) = parse_cluster(changed(changes)).findings
    assert (found.code, found.path, found.value) == (code, path, value)
    assert said in found.message
    assert fix in found.fix


def test_missing_key_says_what_belongs_there() -> None:
    cluster = {key: value for key, value in BASE.items() if key != "zones"}
    (found,) = everything(parse_cluster(cluster))
    assert (found.code, found.path) == ("HPC031", "zones")
    assert "Zones in order of preference" in found.fix


def test_all_findings_of_form_and_rules_come_together() -> None:
    loaded = parse_cluster(
        changed({"name": "T", "pools[0].max": "x", "pools[0].auto_release": "1m", "storage": [{"mount": "/etc"}]})
    )
    found = spots(everything(loaded))
    assert ("HPC035", "name") in found
    assert ("HPC032", "pools[0].max") in found
    assert ("HPC324", "pools[0].auto_release") in found
    assert ("HPC405", "storage[0].mount") in found


@pytest.mark.parametrize(
    ("changes", "only"),
    [
        # A pool whose name is bad is not missing in usage and slurm.
        (
            {"pools[0].name": "M P I", "usage": {"mpi": {}}, "slurm.default_partition": "mpi"},
            [("HPC035", "pools[0].name")],
        ),
        # A maximum that could not be read is neither above a cap nor below a minimum.
        ({"pools[0].max": "x", "pools[0].min": 20, "budget.max_nodes": 3}, [("HPC032", "pools[0].max")]),
        # A misspelt key is not a missing one.
        ({"pools[0].maximum": 100, "pools[0].min": 20}, [("HPC030", "pools[0].maximum")]),
        # Zones that could not be read say nothing of the region or of zones elsewhere.
        ({"zones": ["X"], "management.zone": "cn-hangzhou-k"}, [("HPC035", "zones[0]")]),
        ({"zones": 3, "storage": [{"mount": "/a", "zone": "cn-hangzhou-k"}]}, [("HPC032", "zones")]),
        # A region that could not be read has no wrong zones.
        ({"region": 3, "zones": ["cn-beijing-a"]}, [("HPC035", "region")]),
        # Types that could not be read are not unknown.
        ({"pools[0].instance_types": ["c8ae"], "budget.max_vcpus": 1}, [("HPC035", "pools[0].instance_types[0]")]),
        ({"mpi.stacks": ["lam"], "mpi.default": "mpich"}, [("HPC033", "mpi.stacks[0]")]),
        ({"storage": [{"kind": "general"}]}, [("HPC031", "storage[0].mount")]),
        ({"pools": [7]}, [("HPC032", "pools[0]")]),
        ({"pools": 7}, [("HPC032", "pools")]),
        ({"tags": {"aliyun": "x"}}, [("HPC035", "tags.aliyun")]),
    ],
)
def test_no_finding_merely_follows_from_another(changes: dict[str, Any], only: list[tuple[str, str]]) -> None:
    assert spots(everything(parse_cluster(changed(changes)))) == only


def test_positions_are_those_of_the_file() -> None:
    good = BASE["pools"][0]
    cluster = {
        **BASE,
        "pools": [
            "what",
            {**good, "name": "a", "min": 9},
            5,
            {**good, "name": "b", "instance_types": [1, "ecs.c7.4xlarge"]},
        ],
    }
    assert sorted(spots(everything(parse_cluster(cluster)))) == [
        ("HPC032", "pools[0]"),
        ("HPC032", "pools[2]"),
        ("HPC035", "pools[3].instance_types[0]"),
        ("HPC305", "pools[3].instance_types[1]"),
        ("HPC322", "pools[1].min"),
    ]


def test_values_are_shown_as_they_were_written() -> None:
    (found,) = everything(parse_cluster(changed({"pools[0].auto_release": "1740s"})))
    assert (found.code, found.value) == ("HPC324", "1740s")


def test_regions_must_agree(tmp_path: Path) -> None:
    assert spots(loaded_text(tmp_path, stack(**{"alicloud:region": "cn-beijing"})).findings) == [("HPC104", "region")]
    assert loaded_text(tmp_path, stack(**{"alicloud:region": "cn-hangzhou"})).findings == ()
    assert spots(parse_cluster(BASE, configured_region="cn-beijing").findings) == [("HPC104", "region")]


def test_many_findings_are_cut_and_counted() -> None:
    loaded = parse_cluster({**BASE, **{f"key-{n}": n for n in range(250)}})
    assert len(loaded.findings) == 101
    assert loaded.findings[-1].code == "HPC038"
    assert "150 more" in loaded.findings[-1].message


def test_require_raises_with_all_findings() -> None:
    loaded = parse_cluster({**BASE, "one": 1, "two": 2})
    with pytest.raises(FindingsError) as refused:
        require(loaded)
    assert len(refused.value.findings) == 2
    assert refused.value.code == "HPC030"


def test_text_as_the_engine_hands_it_over_is_read() -> None:
    import json

    assert parse_cluster(json.dumps(BASE)).spec == ClusterSpec.model_validate(BASE)


@pytest.mark.parametrize("value", [None, 3, [], "", "text", True, b"x", {1, 2}, object()])
def test_no_cluster_at_all(value: object) -> None:
    loaded = parse_cluster(value)
    assert loaded.spec is None
    assert spots(loaded.findings) == [("HPC009", "")]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ""),
        ("[]", ""),
        ("x: 1", "config"),
        ("config: 3", "config"),
        ("config: {}", "config"),
        ("config: {hpc:cluster: }", "config"),
    ],
)
def test_file_without_a_cluster(tmp_path: Path, text: str, path: str) -> None:
    loaded = loaded_text(tmp_path, text)
    assert loaded.spec is None
    assert spots(loaded.findings) == [("HPC009", path)]


def test_misspelt_cluster_key_is_guessed(tmp_path: Path) -> None:
    (found,) = loaded_text(tmp_path, "config: {hpc:clusters: {}}").findings
    assert found.fix == "rename hpc:clusters to hpc:cluster"


@pytest.mark.parametrize("make", ["missing", "folder"])
def test_unreadable_file_is_a_typed_error(tmp_path: Path, make: str) -> None:
    path = tmp_path / "Pulumi.x.yaml"
    if make == "folder":
        path.mkdir()
    with pytest.raises(CannotRunError) as error:
        load_stack_file(path)
    assert error.value.code == "HPC001"


def test_values_that_are_no_plain_data_are_findings() -> None:
    import datetime

    loop: dict[str, Any] = {}
    loop["again"] = loop
    assert [found.code for found in parse_cluster({**BASE, "tags": loop}).findings] == ["HPC006"]
    odd = {
        **BASE,
        "protect": datetime.date(2026, 1, 1),
        "quota": {"payg_vcpus": float("nan")},
        5: 1,
        "budget": {"max_nodes": 10**400},
    }
    assert [found.code for found in parse_cluster(odd).findings] == ["HPC032", "HPC032", "HPC007", "HPC032"]
