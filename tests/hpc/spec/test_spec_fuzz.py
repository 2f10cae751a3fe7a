"""Malformed and hostile input: nothing but findings, and bounded effort."""

from __future__ import annotations

import json
import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spec_cases import BASE, CASES, SHIPPED, changed
from typer.testing import CliRunner

from hpc.checks import check_cluster
from hpc.cli.main import app
from hpc.findings import Finding, Severity, has_errors
from hpc.spec.cluster import ClusterSpec
from hpc.spec.codes import registry
from hpc.spec.load import LoadedStack, load_stack_file, parse_cluster
from hpc.spec.problems import model_at
from hpc.spec.rules import check

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def all_findings(loaded: LoadedStack) -> tuple[Finding, ...]:
    checked = loaded.relevant(check(loaded.spec, SHIPPED)) if loaded.spec else ()
    return (*loaded.findings, *checked)


def sound(loaded: LoadedStack) -> None:
    """Typed findings with registered codes; without errors there is a spec; no rule fell over."""
    findings = all_findings(loaded)
    for found in findings:
        assert found.code in registry()
        assert found.message
        assert found.fix
        assert isinstance(found.severity, Severity)
        found.as_dict()
        found.message.encode()
        found.path.encode()
    assert "HPC109" not in {found.code for found in findings}
    assert loaded.spec is not None or has_errors(findings)


def read_file(data: bytes) -> LoadedStack:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Pulumi.fuzz.yaml"
        path.write_bytes(data)
        return load_stack_file(path)


def keys_of_models() -> list[str]:
    places = [(), *((name,) for name in ClusterSpec.model_fields), ("pools", 0, "image"), ("pools", 0, "system_disk")]
    return sorted({key for place in places if (model := model_at(place)) for key in model.model_fields})


#: Values of all sorts, among them those that cases use: near the valid ones, where the interesting mistakes are.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-5, 100_000),
    st.floats(),
    st.text(max_size=12),
    st.text(string.printable, max_size=12),
    st.sampled_from(
        [
            "10m",
            "0s",
            "999999d999999d999999d",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/32",
            "255.255.255.255/32",
            "1-65535",
            "65535",
            "cn-hangzhou",
            "cn-hangzhou-j",
            "ecs.c8ae.4xlarge",
            "ecs.c7.large",
            "ecs.zz.large",
            "spot",
            "prepaid",
            "extreme",
            "erdma",
            "/",
            "//",
            "/..",
            "/home/../..",
            "mpi",
            "login",
            "999999999999.999999",
            "1TiB",
            "alinux-3",
            "vpc-a",
            "HPC207",
            "off",
        ]
    ),
)
KEYS = st.one_of(
    st.sampled_from(keys_of_models()), st.text(max_size=8), st.sampled_from(["mpi", "cn-hangzhou-j", "HPC207"])
)
STRUCTURES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=40,
)


@FUZZ
@given(st.dictionaries(KEYS, STRUCTURES, max_size=10))
def test_any_structure_gives_findings_only(value: dict[str, Any]) -> None:
    sound(parse_cluster(value, configured_region="cn-hangzhou"))


@FUZZ
@given(st.sampled_from(sorted(ClusterSpec.model_fields)), STRUCTURES)
def test_any_value_of_a_section_gives_findings_only(section: str, value: Any) -> None:
    sound(parse_cluster({**BASE, section: value}))


PLACES = [
    f"{place}.{key}" if place else key
    for place, where in (
        ("", ()),
        *(
            (name, (name,))
            for name in ("network", "image", "management", "login", "slurm", "mpi", "access", "budget", "quota")
        ),
        ("pools[0]", ("pools", 0)),
        ("pools[0].image", ("pools", 0, "image")),
        ("pools[0].system_disk", ("pools", 0, "system_disk")),
        ("storage[0]", ("storage", 0)),
        ("usage.mpi", ("usage", "mpi")),
    )
    for key in (model_at(where) or ClusterSpec).model_fields
]


def shallow(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes without those of places inside of what another one replaces."""
    return {
        place: value
        for place, value in changes.items()
        if not any(place.startswith((f"{other}.", f"{other}[")) for other in changes)
    }


@FUZZ
@given(st.dictionaries(st.sampled_from(PLACES), SCALARS | st.lists(SCALARS, max_size=3), max_size=6))
def test_any_values_at_real_places_give_findings_only(changes: dict[str, Any]) -> None:
    base = {**BASE, "storage": [{"mount": "/home"}]}
    sound(parse_cluster(changed(shallow(changes), base)))


@FUZZ
@given(st.dictionaries(st.sampled_from(PLACES), SCALARS, max_size=4))
def test_price_of_what_is_left_can_be_told(changes: dict[str, Any]) -> None:
    deep = shallow({place: value for place, value in changes.items() if "." in place or "[" in place})
    result = check_cluster(
        changed(deep, {**BASE, "storage": [{"mount": "/home"}]}), configured_region=None, catalog=SHIPPED
    )
    assert (result.spec is None) == (result.estimate is None)
    assert "HPC109" not in {found.code for found in result.findings}


@FUZZ
@given(st.lists(st.sampled_from(CASES), min_size=2, max_size=5))
def test_rules_broken_together_give_findings_only(cases: list[Any]) -> None:
    changes: dict[str, Any] = {}
    for case in cases:
        clash = any(a.startswith(b) or b.startswith(a) for a in case.bad for b in changes)
        changes |= {} if clash else case.bad
    sound(parse_cluster(changed(changes)))


@FUZZ
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_findings(data: bytes) -> None:
    sound(read_file(data))


@FUZZ
@given(
    st.text(
        st.sampled_from([*"abc:-?[]{},&*!|>'\"%@`#~ \n\t01.\u2028\x85é"]),
        max_size=120,
    )
)
def test_any_yaml_like_text_gives_findings_only(text: str) -> None:
    sound(read_file(text.encode()))
    sound(read_file(b"config:\n  hpc:cluster: " + text.replace("\n", "\n    ").encode()))


@FUZZ
@given(st.integers(0, 2000), st.integers(0, 40), st.binary(max_size=6))
def test_damaged_stack_files_give_findings_only(at: int, length: int, instead: bytes) -> None:
    text = yaml.safe_dump({"config": {"hpc:cluster": changed({"tags": {"a": "b"}, "login.count": 2})}}).encode()
    at %= len(text)
    sound(read_file(text[:at] + instead + text[at + length :]))


MANY_ALIASES = ", ".join(f"k{n}: *a" for n in range(5_000))
THREE_KEYS = "config: {hpc:cluster: {name: a, region: cn-hangzhou, zones: [cn-hangzhou-j]"
MANY_TYPES = [
    f"{{name: p{n}, interconnect: tcp, instance_types: [{', '.join(f'ecs.c8ae{n}.{k}xlarge' for k in range(10))}]}}"
    for n in range(100)
]
LAUGHS = "config:\n  a: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"  b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
HOSTILE = {
    "billion laughs": LAUGHS + "  hpc:cluster: {name: *a11}\n",
    "billion laughs in keys": LAUGHS + "  hpc:cluster: {*a11 : 1}\n",
    "laughs elsewhere are harmless": LAUGHS + "  hpc:cluster: {}\n",
    "long text many times": "config:\n  a: &a '" + "x" * 500_000 + "'\n  hpc:cluster: {tags: {" + MANY_ALIASES + "}}\n",
    "open lists": "config: " + "[" * 1_000_000,
    "open sections": "config: " + "{" * 1_000_000,
    "question marks": "? " * 300_000,
    "dashes": "- " * 300_000,
    "colons": "a: " * 300_000,
    "anchors": "".join(f"- &a{n} x\n" for n in range(60_000)),
    "one long key": "x" * 1_000_000 + ": 1",
    "one long quoted text": "config: {hpc:cluster: '" + "x" * 1_000_000 + "'}",
    "one long number": "config: {hpc:cluster: {name: " + "9" * 1_000_000 + "}}",
    "unknown keys": "config: {hpc:cluster: {" + ", ".join(f"key{n}: 1" for n in range(9_000)) + "}}",
    "long unknown keys": "config: {hpc:cluster: {" + ", ".join(f"{'k' * 400}{n}: 1" for n in range(2_000)) + "}}",
    "wrong entries": "config: {hpc:cluster: {name: a, region: cn-hangzhou, zones: [" + "1, " * 19_000 + "]}}",
    "wrong pools": THREE_KEYS + ", pools: [" + "{}, " * 19_000 + "]}}",
    "wrong networks": "config: {hpc:cluster: {network: {ssh_from: [" + "1.2.3.4/8, " * 19_000 + "]}}}",
    "tags in the cluster": THREE_KEYS + ", tags: {" + ", ".join(f"k{n}: !x v" for n in range(9_000)) + "}}}",
    "unknown types": THREE_KEYS + ", pools: [" + ", ".join(MANY_TYPES) + "]}}",
    "comments": "#" * 1_000_000,
    "tags": "- !x y\n" * 19_000,
    "directives": "%TAG ! x\n" * 100_000,
    "repeated keys": "a: 1\n" * 9_000,
    "blank lines": "\n" * 1_000_000,
    "line folding": "a: >\n" + "  x\n" * 250_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(30)
def test_hostile_files_are_refused(name: str) -> None:
    loaded = read_file(HOSTILE[name].encode())
    sound(loaded)
    assert loaded.spec is None or has_errors(loaded.findings) or name == "unknown types"
    assert len(loaded.findings) < 400


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(30)
def test_hostile_files_end_the_command_with_exit_code_1(name: str, tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.hostile.yaml"
    path.write_text(HOSTILE[name])
    done = CliRunner().invoke(app, ["validate", "--json", str(path)])
    assert done.exit_code == (0 if name == "unknown types" else 1), done.exception
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert json.loads(done.stdout)["findings"]


def test_alias_bomb_is_named_as_such() -> None:
    for name in ("billion laughs", "long text many times"):
        assert "HPC006" in {found.code for found in read_file(HOSTILE[name].encode()).findings}
