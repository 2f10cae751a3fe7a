"""Lets modules of a package be imported without running the package's own `__init__`, which imports all of them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pulumi_alicloud


def slim(name: str) -> None:
    """Put a package of the SDK that has not been loaded yet into `sys.modules` with nothing in it.

    Its modules can then be imported one by one. Whoever asks the package for anything else gets all of it, as before.

    Args:
        name: `ecs`, `vpc`, ...
    """
    qualified = f"pulumi_alicloud.{name}"
    lazy = sys.modules.get(qualified)
    # The SDK registers its packages as modules of a type that loads them at the first access. A plain module is loaded.
    if lazy is None or type(lazy) is ModuleType:
        return
    spec = lazy.__spec__
    if spec is None or spec.loader is None or not spec.submodule_search_locations:
        return
    loader, folder = spec.loader, Path(next(iter(spec.submodule_search_locations)))
    package = ModuleType(qualified, lazy.__doc__)
    package.__spec__, package.__path__, package.__package__ = spec, [str(folder)], qualified

    def missing(attribute: str) -> Any:
        # The import system asks for a module before it loads it.
        if attribute.startswith("__") or (folder / f"{attribute}.py").exists():
            raise AttributeError(attribute)
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = missing
    sys.modules[qualified] = package
    setattr(pulumi_alicloud, name, package)
