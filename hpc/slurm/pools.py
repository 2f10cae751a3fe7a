"""pools.json: what the elastic daemon knows of each pool, from the stack file, the catalog and the run-time facts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hpc.catalog import Catalog
from hpc.slurm import layout
from hpc.slurm.facts import Facts
from hpc.slurm.shape import pool_types
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags
from hpc.spec.pool import Interconnect, PoolSpec


def elastic_settings(spec: ClusterSpec, catalog: Catalog, facts: Facts) -> str:
    """The settings as JSON text; equal input gives equal text. Times are in seconds, prices in CNY per node and hour.

    Raises:
        RefusedError: HPC803, an instance type is not in the catalog.
    """
    budget = spec.budget
    settings = {
        "cluster": spec.name,
        "region": spec.region,
        "ram_role": facts.ram_role,
        "endpoints": dict(facts.endpoints),
        "protocol": facts.protocol,
        "hosts_file": layout.HOSTS_OF_NODES,
        "nodes_folder": layout.NODES,
        "budget": {
            "currency": budget.currency,
            "max_hourly": _number(budget.max_hourly),
            "expected_monthly": _number(budget.expected_monthly),
            "max_nodes": budget.max_nodes,
            "max_vcpus": budget.max_vcpus,
        },
        "pools": [_pool(spec, pool, catalog, facts) for pool in spec.pools],
    }
    return json.dumps(settings, indent=1) + "\n"


def _pool(spec: ClusterSpec, pool: PoolSpec, catalog: Catalog, facts: Facts) -> dict[str, Any]:
    made = facts.pools[pool.name]
    return {
        "name": pool.name,
        "types": [
            {
                "name": kind.name,
                "vcpus": kind.vcpus,
                # CpuOptions of RunInstances are for types whose cores have two threads, of which one is not wanted.
                "threads_per_core": 1 if kind.threads_per_core > 1 and not pool.hyperthreading else None,
                "payg_price": _number(catalog.price(kind.name, spec.region, "payg").amount),
                "spot_price": _number(catalog.price(kind.name, spec.region, "spot").amount),
            }
            for kind in pool_types(pool, catalog)
        ],
        "zones": [{"zone": zone, "vswitch_id": facts.vswitches[zone]} for zone in spec.pool_zones(pool)],
        "charge": pool.charge.value,
        "spot_price_limit": _number(pool.spot_price_limit),
        "spot_duration": pool.spot_duration,
        "min": pool.min,
        "max": pool.max,
        "idle": int(pool.idle.total_seconds()),
        "auto_release": int(pool.auto_release.total_seconds()),
        "max_lifetime": int(pool.max_lifetime.total_seconds()) if pool.max_lifetime else None,
        "resume_timeout": int(pool.resume_timeout.total_seconds()),
        "launch_template_id": made.launch_template_id,
        "image_id": made.image_id,
        "deployment_set_ids": dict(made.deployment_set_ids),
        "security_group_id": facts.security_group_id,
        "traffic_mode": "HighPerformance" if pool.interconnect is Interconnect.ERDMA else "Standard",
        "tags": cluster_tags(spec, "compute", pool.name),
    }


def _number(value: Decimal | None) -> str | None:
    """Money as text: a binary fraction would not be the same amount."""
    return None if value is None else str(value)
