"""A whole refresh: types, stock and prices of one region into one override file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hpc.catalog import tables
from hpc.catalog.override import Override, PriceOverride, TypeOverride, write_override
from hpc.catalog.refresh.clients import Clients, Failures
from hpc.catalog.refresh.nas import read_nas_prices
from hpc.catalog.refresh.prices import read_disk_prices, read_instance_prices, read_spot_prices
from hpc.catalog.refresh.types import read_stock, read_types
from hpc.errors import CannotRunError
from hpc.paths import cache_dir

_PERMISSION = "allow the account {action} and refresh again; until then shipped values are used"


def _silent(_: str) -> None:
    pass


def refresh(
    region: str,
    clients: Clients,
    *,
    names: Sequence[str] | None = None,
    progress: Callable[[str], None] = _silent,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Override:
    """Read everything that an account can say about a region.

    A part that fails does not stop the others: it is in `Override.problems`, and shipped values stay in use for it.

    Args:
        region: region id.
        clients: from `connect`.
        names: types to ask prices for; unless given, those in stock whose family the shipped data know.
        progress: called with a line of text now and then.
        now: the clock.

    Raises:
        CannotRunError: HPC021, the cloud did not even list its instance types.
    """
    type_failures = Failures("instance types", _PERMISSION.format(action="ecs:DescribeInstanceTypes"))
    progress(f"instance types of {region}")
    types = read_types(clients, type_failures)
    if not types:
        problems = type_failures.problems()
        raise CannotRunError(
            f"the cloud lists no instance types in {region}: {problems[0].message if problems else 'empty answer'}",
            code="HPC021",
            fix="check the credentials, their permission for ecs:DescribeInstanceTypes, and the region",
        )
    progress(f"{len(types)} instance types, {sum(1 for kind in types if kind.eri_quantity)} of them with eRDMA")

    stock_failures = Failures("stock", _PERMISSION.format(action="ecs:DescribeAvailableResource"))
    zones, stock = read_stock(clients, region, stock_failures)
    if zones:
        progress(f"{len(zones)} zones, {len(stock)} instance types in stock")
        types = tuple(kind.model_copy(update={"zones": stock.get(kind.name, ())}) for kind in types)

    asked = list(names) if names is not None else _worth_a_price(types)
    price_failures = Failures("prices", _PERMISSION.format(action="ecs:DescribePrice"))
    spot_failures = Failures("spot prices", _PERMISSION.format(action="ecs:DescribeSpotPriceHistory"))
    nas_failures = Failures("NAS prices", "read them off the buy page; shipped values are used until then")
    prices: list[PriceOverride] = []
    progress(f"prices of {len(asked)} instance types")
    prices += read_instance_prices(clients, region, asked, price_failures, progress)
    priced = [price.item for price in prices]
    if priced:
        prices += read_disk_prices(clients, region, priced[0], price_failures)
    progress(f"spot prices of {len(asked)} instance types")
    prices += read_spot_prices(clients, region, asked, spot_failures, progress)
    progress("NAS prices")
    prices += read_nas_prices(clients, region, nas_failures)

    problems = (
        *type_failures.problems(),
        *stock_failures.problems(),
        *price_failures.problems(),
        *spot_failures.problems(),
        *nas_failures.problems(),
    )
    for problem in problems:
        progress(f"warning {problem.code} {problem.what}: {problem.message}")
    return Override(
        region=region,
        endpoint=clients.endpoint,
        read_at=now(),
        zones=zones,
        types=types,
        prices=tuple(prices),
        problems=problems,
    )


def _worth_a_price(types: Sequence[TypeOverride]) -> list[str]:
    """Types of known families that are in stock somewhere (all of them where stock could not be read)."""
    known = tables.families()
    return [kind.name for kind in types if kind.family in known and kind.zones != ()]


def default_file(region: str, endpoint: str | None = None) -> Path:
    """Where a refresh writes to, and `load_catalog` looks, unless told otherwise.

    What another API server said is kept apart, where `load_catalog` does not find it by itself: the local cloud's
    prices must not pass for the real ones.
    """
    folder = cache_dir() / "catalog"
    return (folder / "other" if endpoint else folder) / f"{region}.json"


def refresh_to_file(
    region: str,
    clients: Clients,
    *,
    path: Path | None = None,
    names: Sequence[str] | None = None,
    progress: Callable[[str], None] = _silent,
) -> Path:
    """Refresh a region into its override file, which `load_catalog` then uses; returns the file.

    Raises:
        CannotRunError: HPC021, see `refresh`; the old file stays as it is.
    """
    target = path or default_file(region, clients.endpoint)
    write_override(refresh(region, clients, names=names, progress=progress), target)
    return target
