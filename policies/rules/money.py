"""Caps on the whole stack: the worst hour, the expected month, nodes and vCPUs. What is not known counts as above."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hpc.catalog import Catalog, load_catalog
from policies import kinds
from policies.model import Config, Resource, Rule, Setting, Severity, Stack, Violation
from policies.props import Props, UnverifiedError

#: Hours of a month, as in hpc.cost.model (which loads more than the pack needs; a test holds the two together).
HOURS_PER_MONTH = 730

_CAP = {"type": "number", "minimum": 0}


@dataclass
class _Sum:
    """A total, its parts for the message, and what could not be counted."""

    total: float = 0.0
    parts: list[tuple[float, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, name: str, read: Callable[[], float]) -> None:
        try:
            amount = read()
        except UnverifiedError as error:
            self.missing.append(f"{name}: {error}")
            return
        self.total += amount
        self.parts.append((amount, name))


def _needed(props: Props, key: str) -> float:
    value = props.number(key)
    if value is None:
        raise UnverifiedError(key, "is not known")
    return value


def _by_hand(stack: Stack) -> Iterator[Resource]:
    """Instances and groups of them that no cluster component has counted."""
    for resource in stack.of(kinds.INSTANCE, kinds.SCALING_GROUP, kinds.PROVISIONING):
        if not any(above.type == kinds.CLUSTER for above in stack.above(resource)):
            yield resource


def _lone_pools(stack: Stack) -> Iterator[Resource]:
    """Pools outside of any cluster component."""
    for pool in stack.of(kinds.POOL):
        if not any(above.type == kinds.CLUSTER for above in stack.above(pool)):
            yield pool


def _count(resource: Resource) -> float:
    """Most instances that a resource starts."""
    if resource.type == kinds.SCALING_GROUP:
        return _needed(resource.props, "maxSize")
    if resource.type == kinds.PROVISIONING:
        return _needed(resource.props, "totalTargetCapacity")
    return 1.0


def _types(stack: Stack, resource: Resource) -> list[str]:
    names = list(kinds.instance_types(resource))
    if resource.type == kinds.SCALING_GROUP:
        for scaling in stack.of(kinds.SCALING):
            key = "scalingGroupId"
            given = scaling.props.values.get(key)
            if resource.urn in scaling.sources.get(key, ()) or (given and given == resource.props.values.get("id")):
                names += kinds.instance_types(scaling)
    if not names:
        raise UnverifiedError("instanceType", "is not known, so neither is its price")
    return names


def _dearest(names: list[str], catalog: Catalog, region: str) -> float:
    """Pay-as-you-go price of the dearest type, CNY per hour; spot never costs more."""
    prices = []
    for name in names:
        amount = catalog.price(name, region or "cn-hangzhou", "payg").amount
        if amount is None:
            raise UnverifiedError("instanceType", f"{name} has no known price")
        prices.append(float(amount))
    return max(prices)


def _largest(names: list[str], catalog: Catalog) -> float:
    sizes = []
    for name in names:
        kind = catalog.instance_type(name)
        if kind is None:
            raise UnverifiedError("instanceType", f"{name} is not in the catalog")
        sizes.append(float(kind.vcpus))
    return max(sizes)


def _money(stack: Stack, key: str, hours: float) -> _Sum:
    """Sum of what the components say, and of what was made by hand at list price for some hours."""
    total = _Sum()
    catalog = load_catalog()
    for cluster in stack.of(kinds.CLUSTER):

        def read(cluster: Resource = cluster) -> float:
            if not cluster.props.flag("priceKnown", False):
                raise UnverifiedError("priceKnown", "is false: a price of the cluster is not known")
            if (currency := cluster.props.text("currency", "CNY")) != "CNY":
                raise UnverifiedError("currency", f"is {currency}; caps are in CNY")
            return _needed(cluster.props, key)

        counted = len(total.parts)
        total.add(f"cluster {cluster.name}", read)
        if len(total.parts) > counted:
            total.parts[counted:] = _shares(stack, cluster, total.parts[counted][0], key)
    for pool in _lone_pools(stack):
        total.add(f"pool {pool.name}", lambda pool=pool: _needed(pool.props, key))  # type: ignore[misc]
    for resource in _by_hand(stack):
        total.add(
            resource.name,
            lambda resource=resource: (  # type: ignore[misc]
                hours * _count(resource) * _dearest(_types(stack, resource), catalog, resource.region)
            ),
        )
    return total


def _shares(stack: Stack, cluster: Resource, amount: float, key: str) -> list[tuple[float, str]]:
    """The pools that a cluster's sum comes from, and the rest of it: what a person may turn down."""
    pools = []
    for pool in stack.of(kinds.POOL):
        share, most = pool.props.values.get(key), pool.props.values.get("max")
        if isinstance(share, int | float) and any(above is cluster for above in stack.above(pool)):
            pools.append((float(share), f"{pool.name} (max {most:g})" if isinstance(most, int | float) else pool.name))
    return [*pools, (amount - sum(share for share, _ in pools), f"the rest of {cluster.name}")]


def _judge(total: _Sum, cap: float | None, what: str, unit: str) -> Iterator[Violation]:
    if cap is None:
        return
    if total.total > cap:
        parts = ", ".join(f"{name} {amount:,.2f}".replace(".00", "") for amount, name in sorted(total.parts)[::-1][:3])
        yield Violation(f"{what} is {total.total:,.2f} {unit}, above the cap of {cap:,.2f} {unit}; {parts}")
    if total.missing:
        missing = "; ".join(total.missing[:3])
        known = f"the rest is {total.total:,.2f} {unit} of {cap:,.2f}"
        yield Violation(
            f"could not be verified: {what} has a part that is not known ({missing}); {known}", unverified=True
        )


def worst_hour(stack: Stack, config: Config) -> Iterator[Violation]:
    """The price of an hour with everything at its maximum."""
    yield from _judge(_money(stack, "worstHourly", 1.0), config["maxHourly"], "the worst hour", "CNY")


def expected_month(stack: Stack, config: Config) -> Iterator[Violation]:
    """The price of a month of the expected use; what was made by hand counts as always on."""
    total = _money(stack, "expectedMonthly", HOURS_PER_MONTH)
    yield from _judge(total, config["maxMonthly"], "the expected month", "CNY")


def sizes(stack: Stack, config: Config) -> Iterator[Violation]:
    """Nodes and vCPUs of all pools and of what was made by hand."""
    catalog = load_catalog()
    nodes, vcpus = _Sum(), _Sum()
    for pool in stack.of(kinds.POOL):
        nodes.add(f"pool {pool.name}", lambda pool=pool: _needed(pool.props, "max"))  # type: ignore[misc]
        vcpus.add(
            f"pool {pool.name}",
            lambda pool=pool: _needed(pool.props, "max") * _needed(pool.props, "vcpusPerNode"),  # type: ignore[misc]
        )
    for resource in _by_hand(stack):
        nodes.add(resource.name, lambda resource=resource: _count(resource))  # type: ignore[misc]
        vcpus.add(
            resource.name,
            lambda resource=resource: _count(resource) * _largest(_types(stack, resource), catalog),  # type: ignore[misc]
        )
    yield from _judge(nodes, config["maxNodes"], "the number of compute nodes", "nodes")
    yield from _judge(vcpus, config["maxVcpus"], "the number of vCPUs", "vCPUs")


RULES = (
    Rule(
        name="hpc-budget-hour",
        code="HPC756",
        severity=Severity.HIGH,
        types=(kinds.CLUSTER, kinds.POOL, kinds.INSTANCE, kinds.SCALING_GROUP, kinds.PROVISIONING),
        settings={"maxHourly": Setting(_CAP, None, "Highest price of an hour with every pool at its maximum, CNY.")},
        stack_check=worst_hour,
    ),
    Rule(
        name="hpc-budget-month",
        code="HPC757",
        severity=Severity.HIGH,
        types=(kinds.CLUSTER, kinds.POOL, kinds.INSTANCE, kinds.SCALING_GROUP, kinds.PROVISIONING),
        settings={"maxMonthly": Setting(_CAP, None, "Highest price of a month of the expected use, CNY.")},
        stack_check=expected_month,
    ),
    Rule(
        name="hpc-size",
        code="HPC758",
        severity=Severity.MEDIUM,
        types=(kinds.POOL, kinds.INSTANCE, kinds.SCALING_GROUP, kinds.PROVISIONING),
        settings={
            "maxNodes": Setting({"type": "integer", "minimum": 0}, 1000, "Most compute nodes at once."),
            "maxVcpus": Setting({"type": "integer", "minimum": 0}, 100_000, "Most vCPUs of compute nodes at once."),
        },
        stack_check=sizes,
    ),
)
