"""A refresh through the real SDK clients, against recorded-shape answers over HTTP."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from recorded_api import RecordedApi, RecordedError, serving

from hpc.catalog import Capability, load_catalog
from hpc.catalog.override import write_override
from hpc.catalog.refresh import connect, default_file, refresh, refresh_to_file
from hpc.errors import CannotRunError

NOW = datetime(2026, 12, 1, tzinfo=UTC)
REGION = "cn-hangzhou"


def instance_type(name, vcpus, memory, eri, cores=None, threads=2, arch="X86", gbps=10):
    return {
        "InstanceTypeId": name,
        "InstanceTypeFamily": name.rpartition(".")[0],
        "CpuCoreCount": vcpus,
        "MemorySize": float(memory),
        "EriQuantity": eri,
        "CpuArchitecture": arch,
        "CpuOptions": {"Core": cores or vcpus // threads, "ThreadsPerCore": threads},
        "InstanceBandwidthTx": int(gbps * 1_024_000),
        "JumboFrameSupport": True,
    }


C8AE = instance_type("ecs.c8ae.4xlarge", 16, 32, 1, gbps=12)
HPC = instance_type("ecs.hpc8ae.32xlarge", 64, 256, 1, threads=1, gbps=64)
C7 = instance_type("ecs.c7.2xlarge", 8, 16, 0)
GPU = instance_type("ecs.gn42.xlarge", 4, 16, 0)  # of a family that the shipped data do not know, and without eRDMA


def types_page(rows, token=""):
    return {"RequestId": "r", "NextToken": token, "InstanceTypes": {"InstanceType": rows}}


def describe_instance_types(parameters):
    if parameters.get("MinimumEriQuantity"):
        # One type a page, so that a client that does not follow NextToken loses one.
        return types_page([HPC]) if parameters.get("NextToken") == "2" else types_page([C8AE], token="2")
    return types_page([C7, {**C8AE, "EriQuantity": 0}, GPU])


def describe_available_resource(parameters):
    assert parameters["DestinationResource"] == "InstanceType"

    def zone(name, rows):
        resources = [{"Value": value, "Status": status, "StatusCategory": stock} for value, status, stock in rows]
        return {
            "ZoneId": name,
            "RegionId": REGION,
            "Status": "Available",
            "AvailableResources": {
                "AvailableResource": [{"Type": "InstanceType", "SupportedResources": {"SupportedResource": resources}}]
            },
        }

    return {
        "RequestId": "r",
        "AvailableZones": {
            "AvailableZone": [
                zone(
                    "cn-hangzhou-k",
                    [("ecs.c8ae.4xlarge", "Available", "WithStock"), ("ecs.c7.2xlarge", "Available", "WithStock")],
                ),
                zone(
                    "cn-hangzhou-j",
                    [
                        ("ecs.c8ae.4xlarge", "Available", "ClosedWithStock"),
                        ("ecs.c7.2xlarge", "SoldOut", "WithoutStock"),
                        ("ecs.hpc8ae.32xlarge", "Available", "WithoutStock"),
                    ],
                ),
            ]
        },
    }


HOURLY = {"ecs.c8ae.4xlarge": 5.1, "ecs.c7.2xlarge": 2.2}


def describe_price(parameters):
    factor = 1 if parameters["PriceUnit"] == "Hour" else 300
    own = HOURLY[parameters["InstanceType"]] * factor
    disk = 0.002 * int(parameters["SystemDisk.Size"]) * factor
    return {
        "RequestId": "r",
        "PriceInfo": {
            "Price": {
                "Currency": "CNY",
                "OriginalPrice": round(own + disk, 6),
                "DiscountPrice": 0.0,
                "TradePrice": round((own + disk) * 0.9, 6),
                "DetailInfos": {
                    "DetailInfo": [
                        {"Resource": "instanceType", "OriginalPrice": own, "TradePrice": round(own * 0.9, 6)},
                        {"Resource": "systemDisk", "OriginalPrice": round(disk, 6), "TradePrice": round(disk * 0.9, 6)},
                    ]
                },
            },
            "Rules": {"Rule": []},
        },
    }


def describe_spot_price_history(parameters):
    assert parameters["NetworkType"] == "vpc"
    rows = [
        ("cn-hangzhou-j", "2026-12-01T01:00:00Z", 9.9),
        ("cn-hangzhou-j", "2026-12-01T02:00:00Z", 1.4),
        ("cn-hangzhou-k", "2026-12-01T02:00:00Z", 1.6),
    ]
    return {
        "RequestId": "r",
        "Currency": "CNY",
        "NextOffset": 0,
        "SpotPrices": {
            "SpotPriceType": [
                {
                    "ZoneId": zone,
                    "Timestamp": when,
                    "SpotPrice": price,
                    "OriginPrice": 5.1,
                    "InstanceType": parameters["InstanceType"],
                }
                for zone, when, price in rows
            ]
        },
    }


def describe_pricing_module(parameters):
    extreme = parameters.get("ProductType") == "nas_extreme_post"
    classes = ["standard", "advance"] if extreme else ["capacity", "performance", "premium"]

    def attribute(code, values):
        return {
            "Code": code,
            "Name": code,
            "Unit": "",
            "Values": {"AttributeValue": [{"Name": v, "Value": v, "Type": "single", "Remark": ""} for v in values]},
        }

    return {
        "RequestId": "r",
        "Code": "Success",
        "Message": "Successful!",
        "Success": True,
        "Data": {
            "ModuleList": {
                "Module": [
                    {
                        "ModuleCode": "Request",
                        "ModuleName": "request count",
                        "PriceType": "Usage",
                        "Currency": "CNY",
                        "ConfigList": {"ConfigList": ["Request", "Region"]},
                    },
                    {
                        "ModuleCode": "VolumeSize",
                        "ModuleName": "volume",
                        "PriceType": "Hour",
                        "Currency": "CNY",
                        "ConfigList": {"ConfigList": ["Region", "StorageType", "VolumeSize"]},
                    },
                ]
            },
            "AttributeList": {
                "Attribute": [
                    attribute("Region", [REGION, "cn-beijing"]),
                    attribute("StorageType", [f"nas_{name}" for name in classes]),
                    attribute("VolumeSize", []),
                ]
            },
        },
    }


NAS_HOURLY = {"nas_capacity": 0.0005, "nas_performance": 0.0025, "nas_premium": 0.0015, "nas_standard": 0.0024}


def get_pay_as_you_go_price(parameters):
    config = dict(part.split(":") for part in parameters["ModuleList.1.Config"].split(","))
    assert config["Region"] == REGION and config["VolumeSize"] == "1"
    cost = NAS_HOURLY.get(config["StorageType"], 99.0)
    return {
        "RequestId": "r",
        "Code": "Success",
        "Message": "Successful!",
        "Success": True,
        "Data": {
            "Currency": "CNY",
            "ModuleDetails": {
                "ModuleDetail": [
                    {
                        "ModuleCode": "VolumeSize",
                        "OriginalCost": cost,
                        "CostAfterDiscount": cost,
                        "InvoiceDiscount": 0.0,
                    }
                ]
            },
            "PromotionDetails": {"PromotionDetail": []},
        },
    }


@pytest.fixture
def api():
    recorded = RecordedApi()
    recorded.handlers = {
        "DescribeInstanceTypes": describe_instance_types,
        "DescribeAvailableResource": describe_available_resource,
        "DescribePrice": describe_price,
        "DescribeSpotPriceHistory": describe_spot_price_history,
        "DescribePricingModule": describe_pricing_module,
        "GetPayAsYouGoPrice": get_pay_as_you_go_price,
    }
    with serving(recorded):
        yield recorded


@pytest.fixture
def waits():
    return []


@pytest.fixture
def clients(api, waits):
    return replace(connect(REGION, endpoint=api.address), sleep=waits.append)


def price(override, item, charge):
    return next(row for row in override.prices if (row.item, row.charge) == (item, charge))


def test_types_of_all_pages_with_their_eri_quantity(api, clients):
    got = refresh(REGION, clients, now=lambda: NOW)
    assert {kind.name: kind.eri_quantity for kind in got.types} == {
        "ecs.c7.2xlarge": 0,
        "ecs.c8ae.4xlarge": 1,
        "ecs.hpc8ae.32xlarge": 1,
    }
    assert got.problems == () or all("NAS" in problem.what for problem in got.problems)
    hpc = next(kind for kind in got.types if kind.name == "ecs.hpc8ae.32xlarge")
    assert (hpc.vcpus, hpc.physical_cores, hpc.threads_per_core, hpc.network_gbps) == (64, 64, 1, 64)
    asked = [p for action, p in api.requests if action == "DescribeInstanceTypes" and p.get("MinimumEriQuantity")]
    assert [p.get("NextToken") for p in asked] == [None, "2"]


def test_stock_by_zone(clients):
    got = refresh(REGION, clients, now=lambda: NOW)
    assert got.zones == ("cn-hangzhou-j", "cn-hangzhou-k")
    assert {kind.name: kind.zones for kind in got.types} == {
        "ecs.c8ae.4xlarge": ("cn-hangzhou-j", "cn-hangzhou-k"),
        "ecs.c7.2xlarge": ("cn-hangzhou-k",),
        "ecs.hpc8ae.32xlarge": (),
    }


def test_list_and_trade_price_are_kept_apart_and_disks_taken_out(clients):
    got = refresh(REGION, clients, now=lambda: NOW)
    hour = price(got, "ecs.c8ae.4xlarge", "payg")
    assert (hour.amount, hour.trade_amount, hour.unit) == (Decimal("5.1"), Decimal("4.59"), "hour")
    assert price(got, "ecs.c8ae.4xlarge", "prepaid").amount == Decimal("1530.0")
    disk = price(got, "disk/cloud_essd/PL1", "payg")
    assert (disk.amount, disk.unit) == (Decimal("0.002"), "GiB-hour")
    assert price(got, "disk/cloud_essd/PL3", "prepaid").unit == "GiB-month"
    # What is not in stock anywhere is not asked for.
    assert not any(row.item == "ecs.hpc8ae.32xlarge" for row in got.prices)


def test_spot_is_the_latest_price_of_the_dearest_zone(clients):
    got = refresh(REGION, clients, now=lambda: NOW)
    spot = price(got, "ecs.c8ae.4xlarge", "spot")
    assert spot.amount == Decimal("1.6") and "cn-hangzhou-k" in spot.source


def test_nas_prices_come_from_the_module_that_sells_capacity(clients):
    got = refresh(REGION, clients, now=lambda: NOW)
    performance = price(got, "nas/general/performance", "payg")
    assert (performance.amount, performance.unit) == (Decimal("0.0025") * 730, "GiB-month")
    assert price(got, "nas/extreme/standard", "payg").amount == Decimal("0.0024") * 730
    # 99 CNY per GiB and hour cannot be: the class keeps its shipped price and the report says why.
    assert not any(row.item == "nas/extreme/advance" for row in got.prices)
    (problem,) = got.problems
    assert problem.code == "HPC022" and "extreme advance" in problem.what and "Implausible" in problem.message


def test_an_ambiguous_module_is_not_guessed(api, clients):
    def ambiguous(parameters):
        answer = describe_pricing_module(parameters)
        for attribute in answer["Data"]["AttributeList"]["Attribute"]:
            for value in attribute["Values"]["AttributeValue"]:
                value["Value"] = value["Value"].replace("nas_", "type_").replace("performance", "p")
        return answer

    api.handlers["DescribePricingModule"] = ambiguous
    got = refresh(REGION, clients, now=lambda: NOW)
    assert not any(row.item == "nas/general/performance" for row in got.prices)
    assert any("NoModule" in problem.message and "general performance" in problem.what for problem in got.problems)


def test_throttled_calls_are_repeated_with_growing_waits(api, clients, waits):
    throttled = iter([RecordedError(429, "Throttling.User")] * 4)

    def sometimes(parameters):
        for error in throttled:
            raise error
        return describe_spot_price_history(parameters)

    api.handlers["DescribeSpotPriceHistory"] = sometimes
    got = refresh(REGION, clients, now=lambda: NOW)
    assert price(got, "ecs.c7.2xlarge", "spot").amount == Decimal("1.6")
    assert len(waits) == 4 and all(0 <= wait <= 30 for wait in waits)
    assert not any("spot" in problem.what for problem in got.problems)


def test_a_cloud_that_only_throttles_is_not_asked_for_ever(api, clients, waits):
    def never(_):
        raise RecordedError(429, "Throttling.User")

    api.handlers["DescribeSpotPriceHistory"] = never
    got = refresh(REGION, clients, now=lambda: NOW)
    assert api.calls["DescribeSpotPriceHistory"] == 8  # one type, eight attempts, then the part is given up
    (problem,) = [problem for problem in got.problems if "spot" in problem.what]
    assert "Throttling.User" in problem.message
    assert price(got, "ecs.c8ae.4xlarge", "payg").amount == Decimal("5.1")


def test_a_missing_permission_costs_one_call_and_its_part_only(api, clients):
    def forbidden(_):
        raise RecordedError(403, "Forbidden.RAM", "User not authorized")

    api.handlers["DescribePrice"] = forbidden
    lines = []
    got = refresh(REGION, clients, now=lambda: NOW, progress=lines.append)
    assert api.calls["DescribePrice"] == 1
    (problem,) = [problem for problem in got.problems if problem.what.startswith("prices")]
    assert "Forbidden.RAM" in problem.message and "ecs:DescribePrice" in problem.fix
    assert price(got, "ecs.c8ae.4xlarge", "spot").amount == Decimal("1.6")
    assert any("Forbidden.RAM" in line for line in lines)


def test_one_type_that_cannot_be_priced_does_not_stop_the_others(api, clients):
    def picky(parameters):
        if parameters["InstanceType"] == "ecs.c7.2xlarge":
            raise RecordedError(400, "InvalidInstanceType.ValueNotSupported")
        return describe_price(parameters)

    api.handlers["DescribePrice"] = picky
    got = refresh(REGION, clients, now=lambda: NOW)
    assert price(got, "ecs.c8ae.4xlarge", "payg").amount == Decimal("5.1")
    (problem,) = [problem for problem in got.problems if problem.what.startswith("prices")]
    assert "ecs.c7.2xlarge by the hour, ecs.c7.2xlarge by the month" in problem.what


def test_a_price_without_details_is_taken_with_its_disk_and_says_so(api, clients):
    def bare(parameters):
        answer = describe_price(parameters)
        del answer["PriceInfo"]["Price"]["DetailInfos"]
        return answer

    api.handlers["DescribePrice"] = bare
    got = refresh(REGION, clients, now=lambda: NOW)
    row = price(got, "ecs.c8ae.4xlarge", "payg")
    assert row.amount == Decimal("5.18") and "with a 40 GiB" in row.source
    assert not any(row.item.startswith("disk/") for row in got.prices)


def test_a_list_that_does_not_end_is_cut(api, clients):
    api.handlers["DescribeInstanceTypes"] = lambda _: types_page([C8AE], token="again")
    got = refresh(REGION, clients, now=lambda: NOW, names=[])
    assert [kind.name for kind in got.types] == ["ecs.c8ae.4xlarge"]
    assert any("RepeatedNextToken" in problem.message for problem in got.problems)


def test_wrong_credentials_end_it_and_leave_the_old_file(api, clients, tmp_path):
    def wrong(_):
        raise RecordedError(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")

    api.handlers["DescribeInstanceTypes"] = wrong
    path = tmp_path / "old.json"
    path.write_text("old")
    with pytest.raises(CannotRunError, match="InvalidAccessKeyId") as caught:
        refresh_to_file(REGION, clients, path=path)
    assert caught.value.code == "HPC021"
    assert path.read_text() == "old"
    assert api.calls["DescribeInstanceTypes"] == 1


def test_a_cloud_that_is_not_there(waits):
    gone = replace(connect(REGION, endpoint="127.0.0.1:9"), sleep=waits.append)
    with pytest.raises(CannotRunError, match="HPC021"):
        refresh(REGION, gone)


def test_the_file_is_used_by_the_next_look_up(clients, tmp_path, monkeypatch):
    monkeypatch.setenv("HPC_CACHE_DIR", str(tmp_path))
    written = refresh_to_file(REGION, replace(clients, endpoint=None))
    assert written == default_file(REGION) == tmp_path / "catalog" / "cn-hangzhou.json"
    catalog = load_catalog()
    assert catalog.price("ecs.c8ae.4xlarge", REGION, "payg").amount == Decimal("5.1")
    assert catalog.price("ecs.c8ae.4xlarge", REGION, "spot").amount == Decimal("1.6")
    assert catalog.instance_type("ecs.c8ae.4xlarge").zones == ("cn-hangzhou-j", "cn-hangzhou-k")
    assert catalog.instance_type("ecs.c7.2xlarge").erdma is Capability.NO


def test_what_another_server_says_is_not_taken_for_real(clients, tmp_path, monkeypatch):
    monkeypatch.setenv("HPC_CACHE_DIR", str(tmp_path))
    written = refresh_to_file(REGION, clients)
    assert load_catalog().price("ecs.c8ae.4xlarge", REGION, "payg").amount != Decimal("5.1")
    assert load_catalog(written).price("ecs.c8ae.4xlarge", REGION, "payg").amount == Decimal("5.1")


def test_a_dry_account_keeps_shipped_values(clients, tmp_path):
    path = tmp_path / "o.json"
    write_override(refresh(REGION, clients, names=[], now=lambda: NOW), path)
    assert load_catalog(path).price("ecs.c8i.xlarge", REGION, "payg").amount == Decimal("1.354")
