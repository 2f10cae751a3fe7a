"""Input properties of components that policies judge: plain values, known at every preview. Pure.

Durations are seconds, money is CNY. A price is missing where it is not known; a policy has to take that as the worst.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hpc.catalog import Catalog
from hpc.cost import Estimate, ScopeKind
from hpc.spec.cluster import ClusterSpec
from hpc.spec.names import cluster_tags
from hpc.spec.pool import Interconnect, PoolSpec

#: Traffic mode of the primary interface: https://www.alibabacloud.com/help/en/ecs/developer-reference/api-runinstances
TRAFFIC_MODE = {Interconnect.ERDMA: "HighPerformance", Interconnect.TCP: "Standard"}


def cluster_properties(spec: ClusterSpec, estimate: Estimate, catalog: Catalog) -> dict[str, Any]:
    """What a policy judges the cluster by as a whole.

    Keys: `cluster`, `region`, `zones`, `sshFrom`, `mpiPorts`, `maxNodes`, `maxVcpus` (missing where a type is not in
    the catalog), `zeroHourly`, `minimumHourly`, `worstHourly`, `expectedMonthly` (sums of what is known), `priceKnown`,
    `currency`, `budget` (the caps that the stack file has), `protect`, `tags`.
    """
    totals = estimate.totals
    caps = {
        "maxHourly": _number(spec.budget.max_hourly),
        "expectedMonthly": _number(spec.budget.expected_monthly),
        "maxNodes": spec.budget.max_nodes,
        "maxVcpus": spec.budget.max_vcpus,
        "currency": spec.budget.currency,
    }
    return _known(
        {
            "cluster": spec.name,
            "region": spec.region,
            "zones": list(spec.zones),
            "sshFrom": [str(cidr) for cidr in spec.network.ssh_from],
            "mpiPorts": spec.network.mpi_ports.as_rule(),
            "maxNodes": sum(pool.max for pool in spec.pools),
            "maxVcpus": _vcpus(spec, catalog),
            "zeroHourly": _number(totals.zero),
            "minimumHourly": _number(totals.minimum),
            "worstHourly": _number(totals.worst),
            "expectedMonthly": _number(totals.month),
            "priceKnown": estimate.complete,
            "currency": estimate.currency,
            "budget": _known(caps),
            "protect": spec.protect,
            "tags": dict(spec.tags),
        }
    )


def pool_properties(spec: ClusterSpec, pool: PoolSpec, estimate: Estimate, catalog: Catalog) -> dict[str, Any]:
    """What a policy judges a pool by.

    Keys: `cluster`, `pool`, `region`, `zones`, `instanceTypes`, `charge`, `min`, `max`, `vcpusPerNode`, `idleSeconds`,
    `autoReleaseSeconds`, `maxLifetimeSeconds` (missing where there is no limit), `interconnect`, `trafficMode`,
    `placement`, `mpiPorts`, `publicIp`, `encrypted`, `nodeHourly`, `worstHourly`, `expectedMonthly`, `priceKnown`,
    `tags`.
    """
    amounts = estimate.by_scope(pool.name, ScopeKind.POOL)
    known = not any(line.scope == pool.name and line.kind is ScopeKind.POOL for line in estimate.unknown)
    worst = amounts.worst if known else None
    return _known(
        {
            "cluster": spec.name,
            "pool": pool.name,
            "region": spec.region,
            "zones": list(spec.pool_zones(pool)),
            "instanceTypes": list(pool.instance_types),
            "charge": pool.charge.value,
            "min": pool.min,
            "max": pool.max,
            "vcpusPerNode": _node_vcpus(pool, catalog),
            "idleSeconds": int(pool.idle.total_seconds()),
            "autoReleaseSeconds": int(pool.auto_release.total_seconds()),
            "maxLifetimeSeconds": int(pool.max_lifetime.total_seconds()) if pool.max_lifetime is not None else None,
            "interconnect": pool.interconnect.value,
            "trafficMode": TRAFFIC_MODE[pool.interconnect],
            "placement": pool.placement.value,
            "mpiPorts": spec.network.mpi_ports.as_rule(),
            "publicIp": False,
            "encrypted": pool.system_disk.encrypted,
            "nodeHourly": _number(worst / pool.max if worst is not None else None),
            "worstHourly": _number(worst),
            "expectedMonthly": _number(amounts.month if known else None),
            "priceKnown": known,
            "tags": cluster_tags(spec, "compute", pool.name),
        }
    )


def _node_vcpus(pool: PoolSpec, catalog: Catalog) -> int | None:
    kinds = [catalog.instance_type(name) for name in pool.instance_types]
    known = [kind.vcpus for kind in kinds if kind]
    return max(known) if len(known) == len(kinds) else None


def _vcpus(spec: ClusterSpec, catalog: Catalog) -> int | None:
    total = 0
    for pool in spec.pools:
        vcpus = _node_vcpus(pool, catalog)
        if vcpus is None:
            return None
        total += vcpus * pool.max
    return total


def _number(amount: Decimal | None) -> float | None:
    return None if amount is None else round(float(amount), 4)


def _known(properties: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in properties.items() if value is not None}
