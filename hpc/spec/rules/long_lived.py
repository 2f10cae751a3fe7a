"""Rules on management and login nodes."""

from __future__ import annotations

from collections.abc import Iterator

from hpc.findings import Finding
from hpc.spec.codes import finding
from hpc.spec.nodes import NodeCharge
from hpc.spec.rules.context import Context, listed

#: Subscriptions that are sold, months (RunInstances, Period).
PERIODS = frozenset((*range(1, 10), 12, 24, 36, 48, 60))


def periods(context: Context) -> Iterator[Finding]:
    """HPC504, HPC505: subscriptions have a period that is sold; only subscriptions have one."""
    for section, node in (("management", context.spec.management), ("login", context.spec.login)):
        if node.charge is NodeCharge.PREPAID:
            if node.period_months not in PERIODS:
                text = f"subscriptions of {node.period_months} months are not sold"
                yield finding("HPC504", f"{section}.period_months", node.period_months, text)
            continue
        for key in ("period_months", "auto_renew"):
            if key in node.model_fields_set:
                text = f"{section} nodes are pay-as-you-go: {key} has no effect"
                yield finding("HPC505", f"{section}.{key}", getattr(node, key), text)


def login_there(context: Context) -> Iterator[Finding]:
    """HPC503: somebody can submit jobs."""
    if context.spec.login.count == 0:
        yield finding("HPC503", "login.count", 0, "the cluster has no login node")


def management_zone(context: Context) -> Iterator[Finding]:
    """HPC507: the management node's zone has a vSwitch."""
    zone = context.spec.management.zone
    if zone is not None and zone not in context.spec.zones:
        yield finding(
            "HPC507", "management.zone", zone, f"{zone} is not among the cluster's zones {listed(context.spec.zones)}"
        )


def backup_elsewhere(context: Context) -> Iterator[Finding]:
    """HPC502: the backup controller does not share the primary's zone."""
    if context.spec.management.backup and len(set(context.spec.zones)) == 1:
        text = f"both controllers would be in {context.spec.zones[0]}"
        yield finding("HPC502", "management.backup", True, text)


def long_lived_types_known(context: Context) -> Iterator[Finding]:
    """HPC508: the catalog knows the types."""
    for section, name, count in context.long_lived:
        if count and context.catalog.instance_type(name) is None:
            meant = context.similar_type(name)
            fix = f"write {meant} if that is meant, or run: hpc catalog refresh --region {context.spec.region}"
            text = f"{name} is not in the catalog: its architecture and price could not be verified"
            yield finding("HPC508", f"{section}.instance_type", name, text, fix if meant else None)


RULES = (periods, login_there, management_zone, backup_elsewhere, long_lived_types_known)
