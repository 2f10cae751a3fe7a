"""Caps: what is above is refused, what cannot be verified is a warning and neither a pass nor a crash."""

from decimal import Decimal

import pytest
from round_prices import catalog, cluster

from hpc.catalog import Catalog
from hpc.cost import check_caps, estimate
from hpc.findings import Severity

POOL = {"charge": "payg", "max": 10}
USAGE = {"p": {"node_hours_per_month": 1000}}


def findings(prices: Catalog | None = None, pools=(POOL,), **budget):
    spec = cluster(*pools, budget=budget, usage=USAGE)
    return check_caps(spec, estimate(spec, prices or catalog()))


def test_no_cap_no_finding():
    assert findings() == ()


def test_within_the_caps():
    # 1.1 + 10 x 1.04 = 11.5 an hour; 1.1 x 730 + 1000 x 1.04 = 1843 a month.
    assert findings(max_hourly="11.5", expected_monthly="1843") == ()


def test_above_both_caps_both_are_told():
    hour, month = findings(max_hourly="11.49", expected_monthly="1842.99")
    assert (hour.code, hour.severity, hour.path, hour.value) == ("HPC601", Severity.ERROR, "budget.max_hourly", "11.49")
    assert "11.50 CNY" in hour.message and "11.49 CNY" in hour.message
    assert "compute of p (ecs.c8i.large): 10.00 CNY" in hour.message
    assert (month.code, month.severity, month.path) == ("HPC602", Severity.ERROR, "budget.expected_monthly")
    assert "1843.00 CNY" in month.message


def test_a_cap_of_zero_is_a_cap():
    (finding,) = findings(max_hourly="0")
    assert finding.code == "HPC601"


def test_a_budget_in_dollars_is_converted_at_the_marked_rate():
    # 11.5 CNY are 1.7125 USD at 6.7153.
    assert findings(max_hourly="1.72", currency="USD") == ()
    (finding,) = findings(max_hourly="1.71", currency="USD")
    assert finding.code == "HPC601"
    assert "1.71 USD (11.48 CNY at 6.7153 of 2026-10-09, third-party)" in finding.message


UNKNOWN_POOL = {"name": "q", "instance_types": ["ecs.c8i.2xlarge"], "charge": "payg", "max": 3}


def test_an_unknown_price_makes_the_cap_unverified():
    (finding,) = findings(pools=(POOL, UNKNOWN_POOL), max_hourly="100")
    assert (finding.code, finding.severity, finding.path) == ("HPC603", Severity.WARNING, "budget.max_hourly")
    assert "q ecs.c8i.2xlarge" in finding.message and "refresh" in finding.fix


def test_what_is_known_alone_may_break_the_cap():
    (finding,) = findings(pools=(POOL, UNKNOWN_POOL), max_hourly="5")
    assert (finding.code, finding.severity) == ("HPC601", Severity.ERROR)


def test_a_month_without_use_of_the_unknown_is_verified():
    (finding,) = findings(pools=({**POOL, "max": 1}, UNKNOWN_POOL), expected_monthly="1")
    assert finding.code == "HPC602"
    assert findings(pools=(POOL, UNKNOWN_POOL), expected_monthly="2000") == ()


def test_no_exchange_rate_no_verdict():
    spec = cluster(POOL, budget={"max_hourly": "1", "currency": "USD"})
    got = estimate(spec, catalog())
    without = type(got)(
        **{
            **{name: getattr(got, name) for name in got.__dataclass_fields__},
            "usd_rate": Catalog().price("fx/none", "cn-hangzhou", "payg"),
        }
    )
    (finding,) = check_caps(spec, without)
    assert finding.code == "HPC603" and "exchange rate" in finding.message


@pytest.mark.parametrize("cap", ["0.000001", "999999999999"])
def test_extreme_caps(cap):
    assert len(findings(max_hourly=cap)) == (1 if Decimal(cap) < 1 else 0)
