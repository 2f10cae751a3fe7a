from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcloud.api.errors import ApiError
from localcloud.api.params import Declared, Params, flatten

DECLARED = Declared(
    "RegionId Name! Amount InstanceIds Tag.N.{Key Value} SecurityGroupIds.N "
    "NetworkInterface.N.{VSwitchId SecurityGroupIds.N}"
)


def test_names_are_canonical_whatever_their_case() -> None:
    flat = DECLARED.canonical({"name": "x", "tag.1.key": "a", "NETWORKINTERFACE.2.securitygroupids.3": "sg"})
    assert flat == {"Name": "x", "Tag.1.Key": "a", "NetworkInterface.2.SecurityGroupIds.3": "sg"}


def test_undeclared_parameters_are_refused_by_name() -> None:
    with pytest.raises(ApiError, match="Unknown") as caught:
        DECLARED.canonical({"Name": "x", "Unknown": "y"})
    assert (caught.value.status, caught.value.code) == (400, "InvalidParameter")


def test_undeclared_parameters_without_a_value_are_ignored() -> None:
    assert DECLARED.canonical({"Name": "x", "Unknown": ""}) == {"Name": "x"}


def test_mandatory_parameters() -> None:
    for flat in ({}, {"Name": ""}):
        with pytest.raises(ApiError) as caught:
            DECLARED.canonical(flat)
        assert caught.value.code == "MissingParameter.Name"


def test_lists_may_come_as_json() -> None:
    flat = DECLARED.canonical({"Name": "x", "SecurityGroupIds": '["a","b"]', "Tag": '[{"Key":"k","Value":"v"}]'})
    params = Params(flat)
    assert params.texts("SecurityGroupIds") == ["a", "b"]
    assert params.tags() == {"k": "v"}


def test_lists_keep_their_order_by_number() -> None:
    params = Params({f"SecurityGroupIds.{number}": str(number) for number in (10, 2, 1)})
    assert params.texts("SecurityGroupIds") == ["1", "2", "10"]


def test_structs_of_structs() -> None:
    params = Params({"NetworkInterface.1.VSwitchId": "v", "NetworkInterface.1.SecurityGroupIds.1": "s"})
    (element,) = params.structs("NetworkInterface")
    assert element.text("VSwitchId") == "v"
    assert element.texts("SecurityGroupIds") == ["s"]


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("number", "x"),
        ("number", "1e3"),
        ("flag", "maybe"),
        ("real", "nan"),
        ("real", "x"),
        ("time", "yesterday"),
        ("json_texts", "[1"),
        ("json_texts", "[1]"),
        ("json_texts", '{"a":1}'),
    ],
)
def test_values_of_the_wrong_type(method: str, value: str) -> None:
    with pytest.raises(ApiError) as caught:
        getattr(Params({"A": value}), method)("A")
    assert caught.value.code == "InvalidParameter.A"


def test_numbers_have_bounds() -> None:
    assert Params({"A": "5"}).number("A", low=1, high=5) == 5
    for value in ("0", "6"):
        with pytest.raises(ApiError):
            Params({"A": value}).number("A", low=1, high=5)


def test_tags_are_checked() -> None:
    for tags in ({"Tag.1.Key": "acs:x"}, {"Tag.1.Key": "aliyunx"}, {"Tag.1.Value": "v"}, {"Tag.1.Key": "k" * 129}):
        with pytest.raises(ApiError, match="Tag"):
            Params(tags).tags()
    too_many = {f"Tag.{number}.Key": f"k{number}" for number in range(1, 22)}
    with pytest.raises(ApiError):
        Params(too_many).tags()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), JSON, max_size=4))
def test_any_json_body_flattens_to_text(document: dict[str, object]) -> None:
    for name, value in flatten(document):
        assert isinstance(name, str)
        assert isinstance(value, str)


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=12), max_size=6))
def test_any_parameters_are_accepted_or_refused_but_never_break(flat: dict[str, str]) -> None:
    try:
        DECLARED.canonical(flat)
    except ApiError as error:
        assert error.status == 400
