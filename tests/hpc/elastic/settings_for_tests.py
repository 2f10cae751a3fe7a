"""Settings of a cluster with a pool or two, as `pools.json` would give them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpc.elastic.settings import Settings, parse

TYPES = ("ecs.c8ae.4xlarge", "ecs.c8a.4xlarge")
ZONES = ("cn-hangzhou-j", "cn-hangzhou-k")


def pool(name: str = "mpi", **changes: Any) -> dict[str, Any]:
    """One pool's entry of `pools.json`."""
    entry: dict[str, Any] = {
        "name": name,
        "types": [
            {"name": kind, "vcpus": 16, "threads_per_core": None, "payg_price": "4", "spot_price": "1"}
            for kind in TYPES[:1]
        ],
        "zones": [{"zone": zone, "vswitch_id": f"vsw-{zone[-1]}"} for zone in ZONES[:1]],
        "charge": "payg",
        "spot_price_limit": None,
        "spot_duration": 0,
        "min": 0,
        "max": 1000,
        "idle": 60,
        "auto_release": 3600,
        "max_lifetime": None,
        "resume_timeout": 600,
        "launch_template_id": "lt-1",
        "image_id": None,
        "deployment_set_ids": {},
        "security_group_id": "sg-1",
        "traffic_mode": "Standard",
        "tags": {"hpc:cluster": "cfd", "hpc:role": "compute", "hpc:pool": name},
    }
    return entry | changes


def all_types() -> list[dict[str, Any]]:
    """Every type of these tests, in order."""
    return [
        {"name": kind, "vcpus": 16, "threads_per_core": None, "payg_price": "4", "spot_price": "1"} for kind in TYPES
    ]


def all_zones() -> list[dict[str, str]]:
    """Every zone of these tests, in order."""
    return [{"zone": zone, "vswitch_id": f"vsw-{zone[-1]}"} for zone in ZONES]


def settings(
    *pools: Mapping[str, Any],
    tuning: Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    nodes_folder: Path | None = None,
) -> Settings:
    """Settings of a cluster."""
    document = {
        "cluster": "cfd",
        "region": "cn-hangzhou",
        "ram_role": "role",
        "hosts_file": str(nodes_folder / "hosts") if nodes_folder else None,
        "nodes_folder": str(nodes_folder) if nodes_folder else None,
        "budget": dict(budget or {}),
        "pools": list(pools) or [pool()],
        "tuning": dict(tuning or {}),
    }
    return parse(json.dumps(document))
