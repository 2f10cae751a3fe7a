"""YAML that is malformed, misleading or hostile."""

from __future__ import annotations

from typing import Any

import pytest

from hpc.spec.yaml_reader import MAX_BYTES, MAX_DEPTH, read_yaml


def codes(text: str | bytes) -> list[str]:
    _, findings = read_yaml(text if isinstance(text, bytes) else text.encode())
    return [found.code for found in findings]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1", {"a": 1}),
        ("a: [1, -2, 0x1F, 0o17, 1.5, -.5, 1e3]", {"a": [1, -2, 31, 15, 1.5, -0.5, 1000.0]}),
        ("a: [true, False, null, ~, ]", {"a": [True, False, None, None]}),
        # YAML 1.1 would make a bool, a number of base 60, an octal number and a date of these.
        ("a: [yes, off, 10:30, 010, 2026-01-01, 1_000]", {"a": ["yes", "off", "10:30", "010", "2026-01-01", "1_000"]}),
        ("a: ['1', \"true\", !!str 3]", {"a": ["1", "true", "3"]}),
        ("a: .nan\nb: .inf", {"a": ".nan", "b": ".inf"}),
        ("a: " + "9" * 5000, {"a": "9" * 5000}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("<<: 1", {"<<": 1}),
        ("a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}", {"a": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}}),
        ("d: {<<: [{b: 1}, {b: 2, c: 3}], e: 4}", {"d": {"b": 1, "c": 3, "e": 4}}),
        ("- a\n- {b: c}", ["a", {"b": "c"}]),
    ],
)
def test_values(text: str, value: Any) -> None:
    read, findings = read_yaml(text.encode())
    assert findings == ()
    assert read == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"a" * (MAX_BYTES + 1), "HPC002"),
        (b"a: \xff", "HPC003"),
        ("a: [", "HPC004"),
        ("a: b: c", "HPC004"),
        ("\ta: 1", "HPC004"),
        ("a: \x00", "HPC004"),
        ("a: *nowhere", "HPC004"),
        ("a: &x [*x]", "HPC004"),
        ("a: 1\n---\nb: 2", "HPC004"),
        ("a: 1\na: 2", "HPC005"),
        ("a: {b: 1, 'b': 2}", "HPC005"),
        ("[" * 100, "HPC006"),
        ("a: " * 1 + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "HPC006"),
        ("[" + "a," * 60_000 + "]", "HPC006"),
        ("1: a", "HPC007"),
        ("true: a", "HPC007"),
        ("? [a]\n: b", "HPC007"),
        ("? {a: b}\n: b", "HPC007"),
        ("a: !!python/object/apply:os.system ['true']", "HPC008"),
        ("a: !include /etc/passwd", "HPC008"),
        ("a: !!binary aGk=", "HPC008"),
        ("a: !x {b: c}", "HPC008"),
    ],
)
def test_oddities_are_findings(text: str | bytes, code: str) -> None:
    assert codes(text)[0] == code


def test_repeated_key_names_its_place_and_the_first_value_counts() -> None:
    value, (found,) = read_yaml(b"a:\n  b: 1\n  b: 2\n")
    assert value == {"a": {"b": 1}}
    assert found.path == "a.b"
    assert "line 3" in found.message


def test_syntax_error_names_line_and_column() -> None:
    _, (found,) = read_yaml(b"a: 1\nb: [1, 2\nc: 3\n")
    assert "line 3" in found.message


def test_several_oddities_are_all_reported() -> None:
    assert codes("a: !x 1\na: 2\n3: 4\n") == ["HPC008", "HPC005", "HPC007"]


def test_deepest_nesting_that_is_allowed_is_read() -> None:
    assert codes("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []
