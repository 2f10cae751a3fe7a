"""Settings of the daemon: `pools.json`, written by the program from the stack file and what it made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from hpc.elastic.tables import SettingsError, Table


@dataclass(frozen=True, slots=True)
class InstanceTypeSettings:
    """One instance type of a pool.

    Attributes:
        name: e.g. `ecs.c8ae.16xlarge`.
        vcpus: vCPUs, for the cap on them.
        threads_per_core: of CpuOptions, where one of two threads is not wanted; None leaves the type's own.
        payg_price, spot_price: CNY per node and hour, None where unknown.
    """

    name: str
    vcpus: int
    threads_per_core: int | None
    payg_price: Decimal | None
    spot_price: Decimal | None

    def price(self, charge: str) -> Decimal | None:
        """Price per node and hour when paid as `spot` or `payg`."""
        return self.spot_price if charge == "spot" else self.payg_price


@dataclass(frozen=True, slots=True)
class ZoneSettings:
    """One zone of a pool: where its nodes get their addresses."""

    zone: str
    vswitch_id: str


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """One pool. Times are in seconds; see `hpc.spec.pool.PoolSpec` for the meaning."""

    name: str
    types: tuple[InstanceTypeSettings, ...]
    zones: tuple[ZoneSettings, ...]
    charge: str
    spot_price_limit: Decimal | None
    spot_duration: int
    min: int
    max: int
    idle: int
    auto_release: int
    max_lifetime: int | None
    resume_timeout: int
    launch_template_id: str
    image_id: str | None
    deployment_set_ids: Mapping[str, str]
    security_group_id: str
    traffic_mode: str
    tags: Mapping[str, str]

    @property
    def charges(self) -> tuple[str, ...]:
        """Ways of paying, in the order in which they are tried."""
        return {"spot": ("spot",), "payg": ("payg",), "spot-then-payg": ("spot", "payg")}[self.charge]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the daemon has to know.

    Attributes:
        cluster, region: as in the stack file.
        ram_role: role whose credentials the metadata service gives.
        endpoints: `host:port` by product, where it is not the cloud's own.
        protocol: `https`, or `http` for a local cloud.
        hosts_file: where `IP name` lines of living nodes are kept.
        nodes_folder: where nodes leave `<node>.failed`.
        max_hourly: cap on the price of an hour (CNY), None for none.
        max_nodes, max_vcpus: caps over all pools, None for none.
        max_monthly: cap on the price of a calendar month (CNY), None for none.
        fixed_hourly: CNY per hour of what always runs beside the pools and counts against the two caps on money.
        unwatched: caps that are set and cannot be watched, since they are in another currency than the prices.
        pools: by name.
        poll: seconds between two looks.
        orphan_grace: age in s below which an instance that no node asked for is left alone.
        missing_limit: looks in a row in which an instance must be missing.
        missing_age: age in s below which an instance is never called missing.
        cooldown: s for which a sold-out (type, zone, charge) is not tried again.
        failure_limit: failed starts in a row after which a pool stops buying.
        launch_rate: instances a minute that the account may ask for
            (https://help.aliyun.com/zh/ecs/developer-reference/api-throttling).
    """

    cluster: str
    region: str
    ram_role: str
    endpoints: Mapping[str, str]
    protocol: str
    hosts_file: Path | None
    nodes_folder: Path | None
    max_hourly: Decimal | None
    max_nodes: int | None
    max_vcpus: int | None
    pools: Mapping[str, PoolSettings]
    poll: float = 5.0
    orphan_grace: int = 120
    missing_limit: int = 3
    missing_age: int = 60
    cooldown: int = 600
    failure_limit: int = 10
    launch_rate: int = 5000
    max_monthly: Decimal | None = None
    fixed_hourly: Decimal = Decimal(0)
    unwatched: tuple[str, ...] = ()


_CHARGES = ("spot", "payg", "spot-then-payg")
_TRAFFIC_MODES = ("HighPerformance", "Standard")
_MONEY_CAPS = ("max_hourly", "expected_monthly")

#: Settings that can be left out, and the least that each may be.
_TUNING = {
    "poll": 0.1,
    "orphan_grace": 0,
    "missing_limit": 1,
    "missing_age": 0,
    "cooldown": 1,
    "failure_limit": 1,
    "launch_rate": 100,
}


def parse(text: str) -> Settings:
    """Read the JSON text of `pools.json`.

    Raises:
        SettingsError: a key is missing or has the wrong kind of value.
    """
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"the settings are no JSON: {error}") from error
    top = Table(raw, "the settings")
    budget = Table(top.value("budget") if top.has("budget") else {}, "budget")
    tuning = Table(top.value("tuning") if top.has("tuning") else {}, "tuning")
    # A cap in another currency cannot be compared with prices in CNY here; the program has checked it.
    comparable = not budget.has("currency") or budget.text("currency") == "CNY"
    pools: dict[str, PoolSettings] = {}
    for table in top.tables("pools", "pool"):
        pool = _pool(table)
        if pool.name in pools:
            raise SettingsError(f"the settings have two pools of the name {pool.name}")
        pools[pool.name] = pool
    return Settings(
        cluster=top.text("cluster"),
        region=top.text("region"),
        ram_role=top.text("ram_role") if top.value("ram_role") else "",
        endpoints=top.texts("endpoints"),
        protocol=top.text("protocol", ("https", "http")) if top.has("protocol") else "https",
        hosts_file=Path(top.text("hosts_file")) if top.has("hosts_file") else None,
        nodes_folder=Path(top.text("nodes_folder")) if top.has("nodes_folder") else None,
        max_hourly=budget.money("max_hourly") if comparable else None,
        max_monthly=budget.money("expected_monthly") if comparable else None,
        fixed_hourly=budget.money("fixed_hourly") or Decimal(0),
        unwatched=() if comparable else tuple(key for key in _MONEY_CAPS if budget.has(key)),
        max_nodes=budget.whole("max_nodes", 0) if budget.has("max_nodes") else None,
        max_vcpus=budget.whole("max_vcpus", 0) if budget.has("max_vcpus") else None,
        pools=pools,
        **{
            key: tuning.number(key, least) if key == "poll" else tuning.whole(key, int(least))
            for key, least in _TUNING.items()
            if tuning.has(key)
        },
    )


def _pool(raw: Table) -> PoolSettings:
    name = raw.text("name")
    raw.place = f"pool {name}"
    lowest, highest = raw.whole("min", 0), raw.whole("max", 1)
    if lowest > highest:
        raise raw.wrong("min", f"at most max, which is {highest}")
    return PoolSettings(
        name=name,
        types=tuple(_type(kind) for kind in raw.tables("types", "type")),
        zones=tuple(ZoneSettings(zone.text("zone"), zone.text("vswitch_id")) for zone in raw.tables("zones", "zone")),
        charge=raw.text("charge", _CHARGES),
        spot_price_limit=raw.money("spot_price_limit"),
        spot_duration=raw.whole("spot_duration", 0) if raw.has("spot_duration") else 0,
        min=lowest,
        max=highest,
        idle=raw.whole("idle", 0),
        auto_release=raw.whole("auto_release", 1),
        max_lifetime=raw.whole("max_lifetime", 1) if raw.has("max_lifetime") else None,
        resume_timeout=raw.whole("resume_timeout", 1),
        launch_template_id=raw.text("launch_template_id"),
        image_id=raw.text("image_id") if raw.has("image_id") else None,
        deployment_set_ids=raw.texts("deployment_set_ids"),
        security_group_id=raw.text("security_group_id"),
        traffic_mode=raw.text("traffic_mode", _TRAFFIC_MODES),
        tags=raw.texts("tags"),
    )


def _type(raw: Table) -> InstanceTypeSettings:
    return InstanceTypeSettings(
        name=raw.text("name"),
        vcpus=raw.whole("vcpus", 1),
        threads_per_core=raw.whole("threads_per_core", 1) if raw.has("threads_per_core") else None,
        payg_price=raw.money("payg_price"),
        spot_price=raw.money("spot_price"),
    )


def load(path: Path) -> Settings:
    """Read a settings file.

    Raises:
        SettingsError: it cannot be opened or is wrong.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
