"""What holds for every cluster."""

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from round_prices import catalog, cluster

from hpc.cost import HOURS_PER_MONTH, Item, ScopeKind, check_caps, diff, estimate
from hpc.cost.model import known_sum

CATALOG = catalog()
TYPES = ["ecs.c8i.large", "ecs.c8i.xlarge", "ecs.c8i.4xlarge"]


@st.composite
def pools(draw):
    least = draw(st.integers(0, 20))
    return {
        "instance_types": draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)),
        "charge": draw(st.sampled_from(["spot", "payg", "spot-then-payg"])),
        "min": least,
        "max": draw(st.integers(max(1, least), 50)),
        "spot_price_limit": draw(st.sampled_from([None, "0.1", "0.45", "7", "100"])),
        "system_disk": {"size_gib": draw(st.integers(20, 500))},
    }


@st.composite
def clusters(draw):
    chosen = draw(st.lists(pools(), min_size=1, max_size=3))
    named = [{**pool, "name": f"p{index}"} for index, pool in enumerate(chosen)]
    usage = {
        pool["name"]: {
            "node_hours_per_month": draw(st.floats(0, float(pool["max"] * HOURS_PER_MONTH))),
            "spot_share": draw(st.sampled_from([None, 0, 0.3, 1])),
        }
        for pool in named
        if draw(st.booleans())
    }
    return cluster(
        *named,
        usage=usage,
        network={"nat": draw(st.booleans())},
        management={
            "instance_type": "ecs.c7.large",
            "charge": draw(st.sampled_from(["payg", "prepaid"])),
            "backup": draw(st.booleans()),
        },
        login={"instance_type": "ecs.c7.large", "count": draw(st.integers(0, 3))},
        storage=[{"mount": "/home", "expected_gib": draw(st.integers(0, 5000))}],
    )


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_worst_is_not_below_minimum_nor_minimum_below_zero(spec):
    got = estimate(spec, CATALOG)
    assert got.complete
    for amounts in (got.totals, *(line.amounts for line in got.lines)):
        assert Decimal(0) <= amounts.zero <= amounts.minimum <= amounts.worst
        # Each amount of a line is rounded for itself, to a tenth of a per mille of a yuan an hour.
        assert amounts.month <= (amounts.worst + Decimal("0.002")) * HOURS_PER_MONTH


@settings(max_examples=100, deadline=None)
@given(clusters(), st.integers(1, 30))
def test_more_nodes_never_cost_less(spec, more):
    first = spec.pools[0]
    larger = first.model_copy(update={"max": first.max + more})
    grown = spec.model_copy(update={"pools": (larger, *spec.pools[1:])})
    before, after = estimate(spec, CATALOG), estimate(grown, CATALOG)
    assert after.totals.worst > before.totals.worst
    assert (after.totals.zero, after.totals.minimum, after.totals.month) == (
        before.totals.zero,
        before.totals.minimum,
        before.totals.month,
    )


@settings(max_examples=100, deadline=None)
@given(clusters())
def test_parts_items_and_reliabilities_each_add_up_to_the_total(spec):
    got = estimate(spec, CATALOG)
    kinds = {(line.kind, line.scope) for line in got.lines}
    for field in ("zero", "minimum", "worst", "month"):
        whole = getattr(got.totals, field)
        assert known_sum(getattr(got.by_scope(scope, kind), field) for kind, scope in kinds) == whole
        assert known_sum(getattr(got.by_item(item), field) for item in Item) == whole
    assert known_sum(share.month for share in got.by_reliability().values()) == got.totals.month
    assert known_sum(share.worst for share in got.by_reliability().values()) == got.totals.worst
    assert got.pools == tuple(pool.name for pool in spec.pools)


@settings(max_examples=60, deadline=None)
@given(clusters(), clusters())
def test_a_difference_leads_from_one_to_the_other(first, second):
    before, after = estimate(first, CATALOG), estimate(second, CATALOG)
    change = diff(before, after)
    for field in ("zero", "minimum", "worst", "month"):
        moved = known_sum(getattr(row.delta, field) for row in change.changes)
        assert getattr(before.totals, field) + moved == getattr(after.totals, field)
        assert getattr(change.delta, field) == moved
    assert diff(before, before).changes == ()


@settings(max_examples=60, deadline=None)
@given(clusters(), st.sampled_from(["max_hourly", "expected_monthly"]))
def test_a_cap_is_broken_exactly_above_it(spec, which):
    got = estimate(spec, CATALOG)
    value = got.totals.worst if which == "max_hourly" else got.totals.month
    code = "HPC601" if which == "max_hourly" else "HPC602"
    for cap, broken in ((value, False), (value + 1, False), (value - Decimal("0.0001"), True)):
        budget = spec.budget.model_copy(update={which: cap})
        findings = check_caps(spec.model_copy(update={"budget": budget}), got)
        assert [finding.code for finding in findings] == ([code] if broken else [])


def test_a_pool_may_be_called_like_a_fixed_part():
    spec = cluster({"name": "login", "max": 2}, {"name": "storage", "max": 1}, login={"instance_type": "ecs.c7.large"})
    got = estimate(spec, CATALOG)
    assert got.by_scope("login", ScopeKind.POOL).worst == 2 * Decimal("1.04")
    assert got.by_scope("login", ScopeKind.FIXED).worst == Decimal("1.06")
    assert got.pools == ("login", "storage")
