"""Override files: what a refresh has read beats what is shipped, in its region only for prices."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from hpc.catalog import Capability, Catalog, Reliability, load_catalog
from hpc.catalog.catalog import default_override_files
from hpc.catalog.override import Override, PriceOverride, Problem, TypeOverride, read_override, write_override
from hpc.errors import CannotRunError

READ_AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def override(region="cn-hangzhou", **more) -> Override:
    return Override(region=region, read_at=READ_AT, **more)


def c7(**more) -> TypeOverride:
    return TypeOverride(name="ecs.c7.2xlarge", family="ecs.c7", vcpus=8, memory_gib=16, **more)


def test_a_file_survives_writing_and_reading(tmp_path):
    path = tmp_path / "deep" / "cn-hangzhou.json"
    written = override(
        zones=("cn-hangzhou-j",),
        types=(c7(eri_quantity=1, zones=("cn-hangzhou-j",)),),
        prices=(
            PriceOverride(item="ecs.c7.2xlarge", charge="payg", amount=Decimal("1.23"), trade_amount=Decimal("1.1")),
        ),
        problems=(Problem(code="HPC022", what="a", message="b", fix="c"),),
    )
    write_override(written, path)
    assert read_override(path) == written
    assert [file.name for file in path.parent.iterdir()] == ["cn-hangzhou.json"]


def test_eri_quantity_beats_the_shipped_capability(tmp_path):
    path = tmp_path / "o.json"
    write_override(override(types=(c7(eri_quantity=1),)), path)
    kind = load_catalog(path).instance_type("ecs.c7.2xlarge")
    assert (kind.erdma, kind.eri_quantity) == (Capability.YES, 1)
    assert (kind.reliability, kind.as_of) == (Reliability.LIVE, "2026-11-30")
    assert load_catalog(path).nearest_erdma("ecs.c7.2xlarge").name == "ecs.c7.2xlarge"

    write_override(
        override(
            types=(TypeOverride(name="ecs.c8ae.large", family="ecs.c8ae", vcpus=2, memory_gib=4, eri_quantity=0),)
        ),
        path,
    )
    assert load_catalog(path).instance_type("ecs.c8ae.large").erdma is Capability.NO


def test_what_a_refresh_does_not_say_stays(tmp_path):
    path = tmp_path / "o.json"
    write_override(override(types=(c7(),)), path)
    kind = load_catalog(path).instance_type("ecs.c7.2xlarge")
    assert (kind.erdma, kind.physical_cores, kind.zones) == (Capability.NO, 4, None)


def test_types_nobody_has_heard_of_are_added(tmp_path):
    path = tmp_path / "o.json"
    row = TypeOverride(
        name="ecs.c42z.xlarge", family="ecs.c42z", vcpus=4, memory_gib=8, eri_quantity=2, architecture="arm64"
    )
    write_override(override(types=(row,)), path)
    kind = load_catalog(path).instance_type("ecs.c42z.xlarge")
    assert (kind.erdma, kind.architecture, kind.vcpus) == (Capability.YES, "arm64", 4)


def test_refreshed_prices_hold_in_their_region_only(tmp_path):
    path = tmp_path / "o.json"
    price = PriceOverride(item="ecs.c8i.xlarge", charge="payg", amount=Decimal("1.5"), trade_amount=Decimal("1.2"))
    write_override(override(prices=(price,)), path)
    catalog = load_catalog(path)
    here = catalog.price("ecs.c8i.xlarge", "cn-hangzhou", "payg")
    assert (here.amount, here.trade_amount, here.reliability) == (Decimal("1.5"), Decimal("1.2"), Reliability.LIVE)
    assert catalog.price("ecs.c8i.xlarge", "cn-beijing", "payg").amount == Decimal("1.354")
    # The spot share is taken of the better base.
    assert catalog.price("ecs.c8i.xlarge", "cn-hangzhou", "spot").amount == Decimal("0.45")


def test_an_account_that_pays_in_dollars(tmp_path):
    path = tmp_path / "o.json"
    price = PriceOverride(item="ecs.c8i.xlarge", charge="payg", amount=Decimal("0.2"), currency="USD")
    write_override(override(region="us-east-1", prices=(price,)), path)
    got = load_catalog(path).price("ecs.c8i.xlarge", "us-east-1", "payg")
    assert (got.amount, got.currency) == ((Decimal("0.2") * Decimal("6.7153")).quantize(Decimal("0.0001")), "CNY")


def test_zones_of_a_refresh_beat_the_shipped_ones(tmp_path):
    path = tmp_path / "o.json"
    write_override(override(zones=("cn-hangzhou-j", "cn-hangzhou-z")), path)
    region = load_catalog(path).region("cn-hangzhou")
    assert region.zones == ("cn-hangzhou-j", "cn-hangzhou-z")
    assert region.reliability is Reliability.LIVE


def test_a_folder_of_files_is_read(tmp_path):
    for region in ("cn-hangzhou", "cn-beijing"):
        write_override(override(region=region, zones=(f"{region}-a",)), tmp_path / f"{region}.json")
    catalog = load_catalog(tmp_path)
    assert catalog.region("cn-beijing").zones == ("cn-beijing-a",)
    assert catalog.region("cn-hangzhou").zones == ("cn-hangzhou-a",)


def test_stock_of_several_regions_goes_side_by_side(tmp_path):
    for region in ("cn-hangzhou", "cn-beijing"):
        write_override(override(region=region, types=(c7(zones=(f"{region}-a",)),)), tmp_path / f"{region}.json")
    assert load_catalog(tmp_path).instance_type("ecs.c7.2xlarge").zones == ("cn-beijing-a", "cn-hangzhou-a")


def test_the_projects_file_comes_before_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HPC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("hpc.catalog.catalog.PROJECT_ROOT", tmp_path / "project")
    (tmp_path / "project").mkdir()
    write_override(override(), tmp_path / "cache" / "catalog" / "cn-hangzhou.json")
    write_override(override(region="cn-beijing"), tmp_path / "cache" / "catalog" / "cn-beijing.json")
    write_override(override(), tmp_path / "project" / "catalog.cn-hangzhou.json")
    assert [str(path.relative_to(tmp_path)) for path in default_override_files()] == [
        "project/catalog.cn-hangzhou.json",
        "cache/catalog/cn-beijing.json",
    ]
    assert {one.region for one in load_catalog().overrides} == {"cn-hangzhou", "cn-beijing"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"layout": 2, "region": "cn-hangzhou", "read_at": "2026-11-30T12:00:00Z"}',
        json.dumps({"layout": 1, "region": "r", "read_at": "2026-11-30T12:00:00Z", "prices": [{"item": "x"}]}),
        json.dumps({"layout": 1, "region": "r", "read_at": "2026-11-30T12:00:00Z", "surprise": 1}),
        "\x00\xff",
    ],
)
def test_a_damaged_file_is_told_and_not_a_traceback(tmp_path, text):
    path = tmp_path / "o.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(CannotRunError) as caught:
        load_catalog(path)
    assert caught.value.code == "HPC020"
    assert str(path) in caught.value.message


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(CannotRunError, match="HPC020"):
        load_catalog(tmp_path / "none.json")


def test_age_and_problems_become_warnings():
    one = override(problems=(Problem(code="HPC022", what="spot prices: a", message="Forbidden: no", fix="allow it"),))
    assert [finding.code for finding in one.findings(READ_AT + timedelta(days=1))] == ["HPC022"]
    late = one.findings(READ_AT + timedelta(days=40))
    assert [(finding.code, str(finding.severity)) for finding in late] == [("HPC022", "warning"), ("HPC023", "warning")]
    assert "40 days" in late[1].message
    assert Catalog((one, one)).findings(READ_AT) == one.findings(READ_AT) * 2
    assert Catalog().findings(READ_AT) == ()
