"""Prices: quotes stay quotes, formulas say what they are, the unknown stays unknown."""

from decimal import Decimal

import pytest

from hpc.catalog import Catalog, Reliability

CATALOG = Catalog()
REGION = "cn-hangzhou"


def test_a_quote_is_returned_as_it_stands():
    price = CATALOG.price("ecs.c8i.xlarge", REGION, "payg")
    assert (price.amount, price.unit, price.currency) == (Decimal("1.354"), "hour", "CNY")
    assert price.reliability is Reliability.THIRD_PARTY


def test_an_unquoted_size_is_scaled_from_its_family():
    price = CATALOG.price("ecs.c8i.3xlarge", REGION, "payg")
    assert price.amount == Decimal("2.708") * 12 / 8
    assert price.reliability is Reliability.DERIVED
    assert "ecs.c8i.2xlarge" in price.source


def test_a_size_whose_memory_breaks_the_rule_is_not_scaled():
    price = CATALOG.price("ecs.c8i.48xlarge", REGION, "payg")  # 512 GiB, where the rule gives 384
    assert price.amount == 192 * Decimal("0.2835") + 512 * Decimal("0.0303")


def test_an_unquoted_family_is_priced_by_the_rates():
    price = CATALOG.price("ecs.c8ae.4xlarge", REGION, "payg")
    assert price.amount == 16 * Decimal("0.2835") + 32 * Decimal("0.0303")
    assert price.reliability is Reliability.DERIVED
    assert "16 vCPU x 0.2835 + 32 GiB x 0.0303" in price.source


def test_whole_cores_count_as_two_vcpus():
    price = CATALOG.price("ecs.hpc8ae.32xlarge", REGION, "payg")
    assert price.amount == 128 * Decimal("0.2835") + 256 * Decimal("0.0303")


def test_the_rates_fit_the_quotes_they_are_fitted_to():
    # Least squares over the price per vCPU against GiB per vCPU, as the rows claim.
    points = [(2, Decimal("0.3385")), (4, Decimal("0.827") / 2), (8, Decimal("8.375") / 16)]
    mean_x, mean_y = sum(x for x, _ in points) / Decimal(3), sum(y for _, y in points) / Decimal(3)
    gib = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    vcpu = mean_y - gib * mean_x
    assert CATALOG.price("rate/gib", REGION, "payg").amount == gib.quantize(Decimal("0.0001"))
    assert CATALOG.price("rate/vcpu", REGION, "payg").amount == vcpu.quantize(Decimal("0.0001"))
    errors = [(vcpu + x * gib) / y - 1 for x, y in points]
    assert [round(float(error) * 100, 1) for error in errors] == pytest.approx([1.7, -2.1, 0.5], abs=0.1)


def test_spot_is_a_share_of_pay_as_you_go_and_says_so():
    price = CATALOG.price("ecs.c8i.xlarge", REGION, "spot")
    assert price.amount == Decimal("0.4062")
    assert price.reliability is Reliability.DERIVED
    assert "assumption" in price.source


def test_a_subscription_is_quoted_derived_or_scaled():
    assert CATALOG.price("ecs.c9i.xlarge", REGION, "prepaid").amount == Decimal("391.82") - 40 * Decimal("0.5")
    scaled = CATALOG.price("ecs.c9i.4xlarge", REGION, "prepaid")
    assert (scaled.amount, scaled.unit) == (2 * Decimal("743.64"), "month")
    derived = CATALOG.price("ecs.c8i.xlarge", REGION, "prepaid")
    assert (derived.amount, derived.unit) == (270 * Decimal("1.354"), "month")


def test_hong_kong_costs_a_multiple_of_the_mainland():
    price = CATALOG.price("ecs.c8i.xlarge", "cn-hongkong", "payg")
    assert price.amount == (Decimal("1.354") * Decimal("1.9")).quantize(Decimal("0.0001"))
    assert price.reliability is Reliability.DERIVED
    disk = CATALOG.price("disk/cloud_essd/PL0", "cn-hongkong", "payg")
    assert disk.amount == Decimal("0.00105") * Decimal("1.9")  # small prices keep their digits


@pytest.mark.parametrize(
    ("item", "region"),
    [
        ("ecs.c8i.xlarge", "us-east-1"),
        ("nas/general/performance", "eu-central-1"),
        ("nas/extreme/advance", REGION),
        ("nas/general/premium", REGION),
        ("ecs.bogus.large", REGION),
        ("no such thing", REGION),
    ],
)
@pytest.mark.parametrize("charge", ["payg", "spot", "prepaid"])
def test_the_unknown_stays_unknown(item, region, charge):
    price = CATALOG.price(item, region, charge)
    assert price.amount is None
    assert price.reliability is Reliability.UNKNOWN
    assert price.source


def test_a_price_in_dollars_is_converted_and_marked():
    price = CATALOG.price("nat/hour", REGION, "payg")
    assert price.amount == (Decimal("0.034") * Decimal("6.7153")).quantize(Decimal("0.0001"))
    assert (price.currency, price.reliability) == ("CNY", Reliability.DERIVED)
    assert "USD" in price.source


def test_every_mainland_type_has_every_price():
    for kind in CATALOG.instance_types():
        payg, spot, month = (CATALOG.price(kind.name, "cn-beijing", how) for how in ("payg", "spot", "prepaid"))
        assert payg.unit == spot.unit == "hour" and month.unit == "month"
        assert 0 < spot.amount < payg.amount < month.amount, kind.name
        assert payg.source and spot.source and month.source


def test_larger_types_of_a_family_cost_more():
    for family in CATALOG.families():
        kinds = sorted(
            (kind for kind in CATALOG.instance_types() if kind.family == family.name), key=lambda kind: kind.vcpus
        )
        amounts = [CATALOG.price(kind.name, REGION, "payg").amount for kind in kinds]
        assert amounts == sorted(amounts), family.name
