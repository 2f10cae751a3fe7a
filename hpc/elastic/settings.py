"""Settings of the daemon: `pools.json`, written by the program from the stack file and what it made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any


class SettingsError(Exception):
    """The settings file is missing or wrong; the message says where."""


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


def _money(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def parse(text: str) -> Settings:
    """Read the JSON text of `pools.json`.

    Raises:
        SettingsError: a key is missing or has the wrong kind of value.
    """
    try:
        raw = json.loads(text)
        budget = raw.get("budget") or {}
        # A cap in another currency cannot be compared with prices in CNY here; the program has checked it.
        comparable = budget.get("currency", "CNY") == "CNY"
        pools = {entry["name"]: _pool(entry) for entry in raw["pools"]}
        tuning = raw.get("tuning") or {}
        return Settings(
            cluster=raw["cluster"],
            region=raw["region"],
            ram_role=raw["ram_role"],
            endpoints=dict(raw.get("endpoints") or {}),
            protocol=raw.get("protocol", "https"),
            hosts_file=Path(raw["hosts_file"]) if raw.get("hosts_file") else None,
            nodes_folder=Path(raw["nodes_folder"]) if raw.get("nodes_folder") else None,
            max_hourly=_money(budget.get("max_hourly")) if comparable else None,
            max_monthly=_money(budget.get("expected_monthly")) if comparable else None,
            fixed_hourly=_money(budget.get("fixed_hourly")) or Decimal(0),
            unwatched=() if comparable else tuple(key for key in _MONEY_CAPS if budget.get(key) is not None),
            max_nodes=budget.get("max_nodes"),
            max_vcpus=budget.get("max_vcpus"),
            pools=pools,
            **{key: tuning[key] for key in _TUNING if key in tuning},
        )
    except KeyError as error:
        raise SettingsError(f"the settings have no {error.args[0]}") from error
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise SettingsError(f"the settings cannot be read: {error}") from error


_MONEY_CAPS = ("max_hourly", "expected_monthly")
_TUNING = ("poll", "orphan_grace", "missing_limit", "missing_age", "cooldown", "failure_limit", "launch_rate")


def _pool(raw: Mapping[str, Any]) -> PoolSettings:
    if raw["charge"] not in ("spot", "payg", "spot-then-payg"):
        raise ValueError(f"pool {raw['name']}: charge {raw['charge']!r} is not known")
    if not raw["types"] or not raw["zones"]:
        raise ValueError(f"pool {raw['name']}: it needs a type and a zone")
    return PoolSettings(
        name=raw["name"],
        types=tuple(
            InstanceTypeSettings(
                name=kind["name"],
                vcpus=int(kind["vcpus"]),
                threads_per_core=kind.get("threads_per_core"),
                payg_price=_money(kind.get("payg_price")),
                spot_price=_money(kind.get("spot_price")),
            )
            for kind in raw["types"]
        ),
        zones=tuple(ZoneSettings(zone["zone"], zone["vswitch_id"]) for zone in raw["zones"]),
        charge=raw["charge"],
        spot_price_limit=_money(raw.get("spot_price_limit")),
        spot_duration=int(raw.get("spot_duration", 0)),
        min=int(raw["min"]),
        max=int(raw["max"]),
        idle=int(raw["idle"]),
        auto_release=int(raw["auto_release"]),
        max_lifetime=raw.get("max_lifetime"),
        resume_timeout=int(raw["resume_timeout"]),
        launch_template_id=raw["launch_template_id"],
        image_id=raw.get("image_id"),
        deployment_set_ids=dict(raw.get("deployment_set_ids") or {}),
        security_group_id=raw["security_group_id"],
        traffic_mode=raw["traffic_mode"],
        tags=dict(raw["tags"]),
    )


def load(path: Path) -> Settings:
    """Read a settings file.

    Raises:
        SettingsError: it cannot be opened or is wrong.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
