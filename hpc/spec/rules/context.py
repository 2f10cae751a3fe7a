"""What rules have in common: the spec, the catalog, and look-ups that several rules need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from hpc.catalog.model import Charge, Image, InstanceType, Price, Region
from hpc.findings import Finding
from hpc.spec.cluster import ClusterSpec
from hpc.spec.pool import PoolSpec
from hpc.spec.problems import closest


class CatalogView(Protocol):
    """The part of `hpc.catalog.Catalog` that rules use."""

    def instance_type(self, name: str) -> InstanceType | None: ...  # noqa: D102
    def instance_types(self) -> tuple[InstanceType, ...]: ...  # noqa: D102
    def nearest_erdma(self, name: str) -> InstanceType | None: ...  # noqa: D102
    def region(self, region_id: str) -> Region | None: ...  # noqa: D102
    def regions(self) -> tuple[Region, ...]: ...  # noqa: D102
    def image(self, os: str, architecture: str) -> Image | None: ...  # noqa: D102
    def price(self, item: str, region: str, charge: Charge) -> Price: ...  # noqa: D102


#: Most names for which the similar one is looked for: comparing with all types takes milliseconds for each.
MOST_GUESSES = 20


@dataclass(frozen=True)
class Context:
    """What a rule is given.

    Attributes:
        spec: the cluster.
        catalog: what is known of regions, types, images and prices.
    """

    spec: ClusterSpec
    catalog: CatalogView

    @cached_property
    def pools(self) -> tuple[tuple[str, PoolSpec], ...]:
        """The pools with their paths."""
        return tuple((f"pools[{index}]", pool) for index, pool in enumerate(self.spec.pools))

    @cached_property
    def pool_types(self) -> tuple[tuple[str, PoolSpec, InstanceType], ...]:
        """Every known instance type of every pool, with its path."""
        return tuple(
            (f"{path}.instance_types[{index}]", pool, kind)
            for path, pool in self.pools
            for index, name in enumerate(pool.instance_types)
            if (kind := self.catalog.instance_type(name)) is not None
        )

    @cached_property
    def long_lived(self) -> tuple[tuple[str, str, int], ...]:
        """Section, instance type and number of the long-lived nodes."""
        return (
            ("management", self.spec.management.instance_type, 2 if self.spec.management.backup else 1),
            ("login", self.spec.login.instance_type, self.spec.login.count),
        )

    @cached_property
    def _similar(self) -> dict[str, str | None]:
        return {}

    def similar_type(self, name: str) -> str | None:
        """The known instance type that was probably meant; looked for in the first few unknown ones only."""
        if name not in self._similar:
            if len(self._similar) >= MOST_GUESSES:
                return None
            self._similar[name] = closest(name, (kind.name for kind in self.catalog.instance_types()))
        return self._similar[name]

    def types_of(self, pool: PoolSpec) -> tuple[InstanceType, ...]:
        """The known instance types of a pool."""
        found = (self.catalog.instance_type(name) for name in pool.instance_types)
        return tuple(kind for kind in found if kind is not None)


Rule = Callable[[Context], Iterator[Finding]]


def cpus(kind: InstanceType, *, hyperthreading: bool) -> int:
    """CPUs that Slurm hands out on a node of the type."""
    return kind.vcpus if hyperthreading else kind.physical_cores


def listed(words: object) -> str:
    """Words as a comma separated list."""
    return ", ".join(str(word) for word in words) if isinstance(words, list | tuple | set | frozenset) else str(words)
