"""Every check of a stack that needs no cloud: the rules of the spec, then the caps on its price."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hpc.catalog import Catalog, load_catalog
from hpc.cost import Estimate, check_caps, estimate
from hpc.findings import Finding
from hpc.spec.cluster import ClusterSpec
from hpc.spec.load import LoadedStack, load_stack_file, parse_cluster
from hpc.spec.rules import apply_checks, check


@dataclass(frozen=True, slots=True)
class Checked:
    """A stack and what the checks say of it.

    Attributes:
        spec: the cluster, or None where the file could not be understood.
        estimate: its price, or None where there is no spec.
        findings: all findings; an error among them refuses the stack.
    """

    spec: ClusterSpec | None
    estimate: Estimate | None
    findings: tuple[Finding, ...]


def check_stack_file(path: Path, catalog: Catalog | None = None) -> Checked:
    """Load a stack file and check it.

    Raises:
        HpcError: the file cannot be read at all.
    """
    return _check(load_stack_file(path), catalog or load_catalog())


def check_cluster(value: object, *, configured_region: str | None, catalog: Catalog | None = None) -> Checked:
    """Check the value of `hpc:cluster` as the Pulumi program gets it.

    Args:
        value: the plain mapping from the stack's configuration.
        configured_region: `alicloud:region` of the stack, or None.
    """
    return _check(parse_cluster(value, configured_region=configured_region), catalog or load_catalog())


def _check(loaded: LoadedStack, catalog: Catalog) -> Checked:
    if loaded.spec is None:
        return Checked(None, None, loaded.findings)
    price = estimate(loaded.spec, catalog)
    found = (*check(loaded.spec, catalog), *apply_checks(check_caps(loaded.spec, price), loaded.spec))
    return Checked(loaded.spec, price, (*loaded.findings, *loaded.relevant(found)))
