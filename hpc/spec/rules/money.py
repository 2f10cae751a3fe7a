"""Rules on caps of size, quota and expected use. Caps on the price are checked with the price (`hpc.cost`)."""

from __future__ import annotations

from collections.abc import Iterator

from hpc.catalog.pricing import billable_vcpus
from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.nodes import NodeCharge
from hpc.spec.pool import PoolCharge, PoolSpec
from hpc.spec.problems import closest
from hpc.spec.rules.context import Context, listed

#: Hours of the longest month.
HOURS_PER_MONTH = 744


def pool_vcpus(context: Context, pool: PoolSpec) -> int:
    """Most vCPUs of a pool: its largest known type at its maximum."""
    return pool.max * max((billable_vcpus(kind) for kind in context.types_of(pool)), default=0)


def node_cap(context: Context) -> Iterator[Finding]:
    """HPC604: the maxima stay below `budget.max_nodes`."""
    cap, nodes = context.spec.budget.max_nodes, sum(pool.max for pool in context.spec.pools)
    if cap is not None and nodes > cap:
        yield finding("HPC604", "budget.max_nodes", cap, f"the maxima of all pools are {nodes} nodes, above {cap}")


def vcpu_cap(context: Context) -> Iterator[Finding]:
    """HPC605: the vCPUs at the maxima stay below `budget.max_vcpus`."""
    cap = context.spec.budget.max_vcpus
    total = sum(pool_vcpus(context, pool) for pool in context.spec.pools)
    if cap is not None and total > cap:
        yield finding("HPC605", "budget.max_vcpus", cap, f"the pools at their maxima have {total} vCPUs, above {cap}")


def quotas(context: Context) -> Iterator[Finding]:
    """HPC606, HPC607: the account's quota covers the maxima; pools that fall back count against both."""
    spec = context.spec
    payg_nodes = {"management": spec.management.charge, "login": spec.login.charge}
    long_lived = sum(
        count * billable_vcpus(kind)
        for section, name, count in context.long_lived
        if payg_nodes[section] is NodeCharge.PAYG and (kind := context.catalog.instance_type(name)) is not None
    )
    payg = long_lived + sum(
        pool_vcpus(context, pool) for pool in spec.pools if pool.charge in (PoolCharge.PAYG, PoolCharge.SPOT_THEN_PAYG)
    )
    spot = sum(pool_vcpus(context, pool) for pool in spec.pools if pool.uses_spot)
    for code, key, quota, total in (
        ("HPC606", "payg_vcpus", spec.quota.payg_vcpus, payg),
        ("HPC607", "spot_vcpus", spec.quota.spot_vcpus, spot),
    ):
        if quota is not None and total > quota:
            text = f"{total} vCPUs are needed at the maxima, but the quota is {quota}"
            yield finding(code, f"quota.{key}", quota, text)


def vcpus_known(context: Context) -> Iterator[Finding]:
    """HPC611: the vCPUs that caps and quota need can be counted."""
    spec = context.spec
    given = {
        "budget.max_vcpus": spec.budget.max_vcpus,
        "quota.payg_vcpus": spec.quota.payg_vcpus,
        "quota.spot_vcpus": spec.quota.spot_vcpus,
    }
    names = [name for pool in spec.pools for name in pool.instance_types]
    if spec.quota.payg_vcpus is not None:
        names += [name for _, name, count in context.long_lived if count]
    unknown = [name for name in dict.fromkeys(names) if context.catalog.instance_type(name) is None]
    if not unknown:
        return
    for path, value in given.items():
        if value is not None:
            text = f"the vCPUs of {listed(unknown)} are not known, so that {path} could not be verified"
            yield finding("HPC611", path, value, text)


def usage_of_pools(context: Context) -> Iterator[Finding]:
    """HPC608, HPC609, HPC610: expected use is of pools there are, and possible."""
    for name, usage in context.spec.usage.items():
        pool, path = context.spec.pool(name), f"usage.{name}"
        if pool is None:
            names = [known.name for known in context.spec.pools]
            meant = closest(name, names)
            fix = f"write {meant}" if meant else f"use one of: {listed(names)}"
            yield finding("HPC608", path, None, f"there is no pool {name}", fix)
            continue
        most = pool.max * HOURS_PER_MONTH
        if usage.node_hours_per_month > most:
            text = f"pool {name} has at most {pool.max} nodes, {most} node hours a month"
            yield finding("HPC609", f"{path}.node_hours_per_month", usage.node_hours_per_month, text)
        share = usage.spot_share
        fits = {PoolCharge.SPOT: share == 1, PoolCharge.SPOT_THEN_PAYG: True}.get(pool.charge, share == 0)
        if share is not None and not fits:
            text = f"pool {name} with charge: {pool.charge} cannot have a spot share of {share:g}"
            yield finding("HPC610", f"{path}.spot_share", share, text)


RULES = (node_cap, vcpu_cap, quotas, vcpus_known, usage_of_pools)
