"""Rooms of `hpc` that the cluster needs and that may not be there yet."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from hpc.catalog import Catalog
from hpc.findings import Finding
from hpc.spec.cluster import ClusterSpec


def _optional(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name and (error.name == module or module.startswith(f"{error.name}.")):
            return None
        raise


ACTIONS: tuple[str, ...] = _optional("hpc.elastic.actions", "ACTIONS") or (
    "ecs:DeleteInstances",
    "ecs:DescribeInstances",
    "ecs:RunInstances",
    "ecs:TagResources",
)


def _no_rules(spec: ClusterSpec, catalog: Catalog) -> tuple[Finding, ...]:
    return ()


check: Callable[[ClusterSpec, Catalog], tuple[Finding, ...]] = _optional("hpc.spec.rules", "check") or _no_rules
