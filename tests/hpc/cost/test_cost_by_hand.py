"""Estimates worked out by hand, to the last digit."""

from decimal import Decimal

import pytest
from round_prices import REGION, catalog, cluster

from hpc.catalog import Catalog, Reliability
from hpc.cost import Amounts, Item, estimate, node_hour

D = Decimal

#: Management: 1 CNY for the instance, 100 GiB x 0.001 for its disk.
MANAGEMENT = D("1.1")


def test_a_spot_pool_at_zero_minimum_and_worst():
    spec = cluster({"charge": "spot", "min": 2, "max": 10}, usage={"p": {"node_hours_per_month": 2000}})
    got = estimate(spec, catalog())
    # A node: 0.25 as spot or 1.00 at worst, and 40 GiB x 0.001 = 0.04 for its disk.
    assert got.totals.zero == MANAGEMENT
    assert got.totals.minimum == MANAGEMENT + 2 * D("0.29")
    assert got.totals.worst == MANAGEMENT + 10 * D("1.04")
    assert got.totals.month == MANAGEMENT * 730 + 2000 * D("0.29")
    assert got.by_scope("p") == Amounts(D(0), D("0.58"), D("10.4"), D(580))
    assert got.complete and got.weak_month_share() == 0


@pytest.mark.parametrize(
    ("charge", "expected"),
    [
        ("payg", D(1)),
        ("spot", D("0.25")),
        ("spot-then-payg", D("0.7") * D("0.25") + D("0.3")),
    ],
)
def test_the_month_follows_the_charge(charge, expected):
    spec = cluster({"charge": charge}, usage={"p": {"node_hours_per_month": 1000}})
    got = estimate(spec, catalog())
    assert got.by_scope("p").month == 1000 * (expected + D("0.04"))
    assert got.by_scope("p").worst == 8 * D("1.04")


def test_the_users_spot_share_counts_where_there_is_a_choice():
    usage = {"p": {"node_hours_per_month": 1000, "spot_share": 0.5}}
    got = estimate(cluster({"charge": "spot-then-payg"}, usage=usage), catalog())
    assert got.by_scope("p").month == 1000 * (D("0.625") + D("0.04"))
    pure = estimate(cluster({"charge": "spot"}, usage=usage), catalog())
    assert pure.by_scope("p").month == 1000 * D("0.29")
    assert any("spot_share" in note for note in pure.notes)


def test_a_price_limit_bounds_a_pure_spot_pool_only():
    limited = estimate(cluster({"charge": "spot", "spot_price_limit": "0.4", "max": 10}), catalog())
    assert limited.by_scope("p").worst == 10 * D("0.44")
    falling_back = estimate(cluster({"charge": "spot-then-payg", "spot_price_limit": "0.4", "max": 10}), catalog())
    assert falling_back.by_scope("p").worst == 10 * D("1.04")
    # A limit above pay-as-you-go changes nothing: the market never goes there.
    high = estimate(cluster({"charge": "spot", "spot_price_limit": "5", "max": 10}), catalog())
    assert high.by_scope("p").worst == 10 * D("1.04")


def test_expected_spot_never_exceeds_pay_as_you_go_or_the_limit():
    usage = {"p": {"node_hours_per_month": 100}}
    pool = {"instance_types": ["ecs.c8i.4xlarge"], "charge": "spot"}
    assert estimate(cluster(pool, usage=usage), catalog()).by_scope("p").month == 100 * D("10.04")
    capped = estimate(cluster({**pool, "spot_price_limit": "3"}, usage=usage), catalog())
    assert capped.by_scope("p").month == 100 * D("3.04")


def test_the_worst_case_takes_the_dearest_type_and_the_month_the_first():
    pool = {"instance_types": ["ecs.c8i.large", "ecs.c8i.4xlarge", "ecs.c8i.xlarge"], "charge": "payg", "max": 3}
    got = estimate(cluster(pool, usage={"p": {"node_hours_per_month": 10}}), catalog())
    assert got.by_item(Item.COMPUTE).worst == D(1) + 3 * 10
    assert got.by_scope("p").month == 10 * D("1.04")
    line = next(line for line in got.lines if line.item is Item.COMPUTE and line.scope == "p")
    assert line.name == "ecs.c8i.4xlarge" and "expected: ecs.c8i.large" in line.note


def test_nodes_that_are_always_kept_are_in_the_month():
    got = estimate(cluster({"charge": "payg", "min": 2}), catalog())
    assert got.by_scope("p").month == 2 * 730 * D("1.04")
    less = estimate(cluster({"charge": "payg", "min": 2}, usage={"p": {"node_hours_per_month": 5}}), catalog())
    assert less.by_scope("p").month == got.by_scope("p").month


def test_long_lived_nodes_by_the_hour_and_by_subscription():
    spec = cluster(
        management={"instance_type": "ecs.c7.large", "charge": "prepaid", "backup": True},
        login={"instance_type": "ecs.c8i.xlarge", "count": 3, "public_ip": False},
    )
    got = estimate(spec, catalog())
    # Two subscriptions of 365 and two disks of 100 GiB x 0.5.
    assert got.by_scope("management").month == 2 * (365 + 50)
    assert got.by_scope("management").worst == D(1) + (D(100) / 730).quantize(D("0.0001"))
    assert got.by_scope("login").worst == 3 * (2 + D("0.06"))


def test_storage_by_capacity_or_expected_size():
    spec = cluster(
        storage=[
            {"mount": "/home", "expected_gib": 1000},
            {"mount": "/scratch", "kind": "extreme", "capacity_gib": 500},
            {"mount": "/old", "file_system_id": "abcdef123", "expected_gib": 9999},
        ]
    )
    got = estimate(spec, catalog())
    assert got.by_item(Item.NAS) == Amounts(D(2), D(2), D(2), D(1460))
    assert any("exists already" in note for note in got.notes)


def test_a_general_nas_without_a_size_is_counted_as_empty_and_said():
    got = estimate(cluster(), catalog())
    assert got.by_item(Item.NAS).month == 0
    assert any("/home" in note and "expected_gib" in note for note in got.notes)


def test_network_parts():
    spec = cluster(network={"nat": True}, login={"count": 2, "instance_type": "ecs.c7.large", "bandwidth_mbps": 100})
    got = estimate(spec, catalog())
    assert got.by_item(Item.NAT) == Amounts(D("0.25"), D("0.25"), D("0.25"), D("182.5"))
    assert got.by_item(Item.EIP).worst == D("0.02")
    # 2 x 100 Mbit/s are 90 GB in an hour.
    assert got.by_item(Item.TRAFFIC) == Amounts(D(0), D(0), D(45), D(0))


def test_the_saving_is_against_all_nodes_day_and_night():
    spec = cluster({"charge": "spot", "max": 10}, usage={"p": {"node_hours_per_month": 2000}})
    got = estimate(spec, catalog())
    always = 730 * (MANAGEMENT + 10 * D("1.04"))
    month = 730 * MANAGEMENT + 2000 * D("0.29")
    assert got.saving.always_on_month == always
    assert got.saving.share == (1 - month / always).quantize(D("0.0001"))


def test_break_even_of_a_subscription():
    spec = cluster(
        {"charge": "spot", "max": 10},
        login={"instance_type": "ecs.c8i.xlarge"},
        usage={"p": {"node_hours_per_month": 3650}},
    )
    rows = {(row.scope, row.charge): row for row in estimate(spec, catalog()).break_even}
    assert rows["p", "payg"].utilisation == D("0.4")  # 292 / (1 x 730)
    assert rows["p", "payg"].expected == D("0.5")  # 3650 of 10 x 730 hours
    assert rows["p", "payg"].subscription_pays is True
    assert rows["p", "spot"].utilisation == D("1.6")
    assert rows["p", "spot"].subscription_pays is False
    assert rows["management", "payg"].utilisation == D("0.5")
    assert rows["management", "payg"].subscription_pays is True
    assert rows["login", "payg"].utilisation == D("0.4")


def test_other_ways_of_paying_for_the_same_use():
    spec = cluster({"charge": "payg", "max": 4}, usage={"p": {"node_hours_per_month": 100}})
    rows = {row.charge: row for row in estimate(spec, catalog()).alternatives}
    assert {charge: row.month for charge, row in rows.items()} == {
        "spot": D(29),
        "spot-then-payg": D("51.5"),
        "payg": D(104),
        "prepaid": 4 * D(292 + 20),
    }
    assert [charge for charge, row in rows.items() if row.chosen] == ["payg"]
    assert rows["payg"].worst == rows["spot"].worst == 4 * D("1.04")


def test_an_unknown_price_stays_out_of_the_totals_and_is_named():
    pools = ({"charge": "payg", "max": 2}, {"name": "q", "instance_types": ["ecs.c8i.2xlarge"], "max": 5})
    got = estimate(cluster(*pools, usage={"q": {"node_hours_per_month": 1}}), catalog())
    assert not got.complete
    assert [(line.scope, line.name) for line in got.unknown] == [("q", "ecs.c8i.2xlarge")]
    assert got.totals.worst == MANAGEMENT + 2 * D("1.04") + 5 * D("0.04")
    assert got.by_reliability()[Reliability.UNKNOWN].lines == 1
    assert got.saving.share is None
    assert {row.charge: row.month for row in got.alternatives if row.pool == "q"} == dict.fromkeys(
        ("spot", "spot-then-payg", "payg", "prepaid")
    )


def test_one_unknown_type_makes_the_worst_case_of_its_pool_unknown():
    pool = {"instance_types": ["ecs.c8i.large", "ecs.c8i.2xlarge"], "charge": "payg"}
    got = estimate(cluster(pool), catalog())
    assert [(line.name, line.amounts.worst) for line in got.unknown] == [("ecs.c8i.2xlarge", None)]
    # With a limit there is a bound after all.
    bounded = estimate(cluster({**pool, "charge": "spot", "spot_price_limit": "3", "max": 2}), catalog())
    assert bounded.complete and bounded.by_scope("p").worst == 2 * D("3.04")


def test_nothing_known_at_all_is_not_free():
    spec = cluster(usage={"p": {"node_hours_per_month": 1}}).model_copy(update={"region": "us-east-1"})
    got = estimate(spec, Catalog())
    assert got.totals == Amounts(D(0), D(0), D(0), D(0))
    assert {line.item for line in got.unknown} == {Item.COMPUTE, Item.SYSTEM_DISK, Item.MONITORING}
    assert got.weak_worst_share() is None


def test_reliability_of_hour_and_month_are_told_apart():
    spec = cluster({"charge": "spot", "max": 1}, usage={"p": {"node_hours_per_month": 10}})
    shipped = spec.model_copy(update={"region": "cn-hangzhou"})
    line = estimate(shipped, Catalog()).lines[0]
    # The worst case of c8i.large rests on a published price, its expected spot price on an assumption.
    assert (line.reliability, line.month_reliability) == (Reliability.THIRD_PARTY, Reliability.DERIVED)
    shares = estimate(shipped, Catalog()).by_reliability()
    assert shares[Reliability.THIRD_PARTY].worst == D("0.677")
    assert sum(share.month for share in shares.values()) == estimate(shipped, Catalog()).totals.month


def test_price_of_a_node_hour():
    spec = cluster(
        {"charge": "spot", "spot_price_limit": "0.2", "system_disk": {"size_gib": 40, "performance_level": "PL1"}}
    )
    pool = spec.pools[0]
    assert node_hour(spec, catalog(), pool, "ecs.c8i.xlarge", "payg").amount == D("2.08")
    assert node_hour(spec, catalog(), pool, "ecs.c8i.xlarge", "spot").amount == D("0.28")
    assert node_hour(spec, catalog(), pool, "ecs.c8i.2xlarge", "payg").amount is None
    no_disk = cluster({"system_disk": {"performance_level": "PL3"}})
    price = node_hour(no_disk, catalog(), no_disk.pools[0], "ecs.c8i.large", "payg")
    assert price.amount is None and price.reliability is Reliability.UNKNOWN
    assert REGION in price.source


def test_money_is_never_a_float():
    got = estimate(cluster({"min": 1}, usage={"p": {"node_hours_per_month": 0.1}}), catalog())
    for line in got.lines:
        for value in (line.amounts.zero, line.amounts.minimum, line.amounts.worst, line.amounts.month):
            assert isinstance(value, D)
