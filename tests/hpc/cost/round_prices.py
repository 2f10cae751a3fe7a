"""A catalog with round prices in a region of its own, so that estimates can be worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hpc.catalog import Catalog
from hpc.catalog.override import Override, PriceOverride
from hpc.spec.cluster import ClusterSpec

REGION = "xx-test-1"

#: (item, charge) -> CNY per hour, GiB-hour, GB or month. Nothing is known of `ecs.c8i.2xlarge`.
PRICES = {
    ("ecs.c8i.large", "payg"): ("1", "hour"),
    ("ecs.c8i.large", "spot"): ("0.25", "hour"),
    ("ecs.c8i.large", "prepaid"): ("292", "month"),
    ("ecs.c8i.xlarge", "payg"): ("2", "hour"),
    ("ecs.c8i.xlarge", "spot"): ("0.5", "hour"),
    ("ecs.c8i.xlarge", "prepaid"): ("584", "month"),
    ("ecs.c8i.4xlarge", "payg"): ("10", "hour"),
    ("ecs.c8i.4xlarge", "spot"): ("12", "hour"),  # a market gone mad: never paid, pay-as-you-go is the limit
    ("ecs.c7.large", "payg"): ("1", "hour"),
    ("ecs.c7.large", "prepaid"): ("365", "month"),
    ("disk/cloud_essd/PL0", "payg"): ("0.001", "GiB-hour"),
    ("disk/cloud_essd/PL0", "prepaid"): ("0.5", "GiB-month"),
    ("disk/cloud_essd/PL1", "payg"): ("0.002", "GiB-hour"),
    ("nas/general/performance", "payg"): ("0.73", "GiB-month"),
    ("nas/extreme/standard", "payg"): ("1.46", "GiB-month"),
    ("eip/hour", "payg"): ("0", "hour"),
    ("eip/nat-hour", "payg"): ("0.02", "hour"),
    ("nat/hour", "payg"): ("0.25", "hour"),
    ("traffic/gib", "payg"): ("0.5", "GB"),
    ("monitor/basic", "payg"): ("0", "month"),
}


def catalog(**changed: str) -> Catalog:
    """The round prices; `changed` replaces pay-as-you-go prices by item, with `_` for `.` (`ecs_c8i_large="3"`)."""
    table = dict(PRICES)
    for item, amount in changed.items():
        table[item.replace("_", "."), "payg"] = (amount, "hour")
    rows = tuple(
        PriceOverride(item=item, charge=charge, amount=Decimal(amount), unit=unit)
        for (item, charge), (amount, unit) in table.items()
    )
    return Catalog((Override(region=REGION, read_at=datetime(2026, 12, 1, tzinfo=UTC), prices=rows),))


def cluster(*pools: dict[str, Any], **more: Any) -> ClusterSpec:
    """A cluster in the region of the round prices, with small long-lived nodes and no login node unless given."""
    values: dict[str, Any] = {
        "name": "t",
        "region": REGION,
        "zones": [f"{REGION}a"],
        "management": {"instance_type": "ecs.c7.large"},
        "login": {"count": 0, "instance_type": "ecs.c7.large"},
        "pools": [{"name": "p", "instance_types": ["ecs.c8i.large"], **pool} for pool in pools or ({},)],
        **more,
    }
    return ClusterSpec.model_validate(values)
