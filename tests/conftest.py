"""How tests are shared out when several processes run them (`make test` uses one for each processor)."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Parts of the tree whose tests have to run one after the other: they boot hosts at fixed addresses, or run MPI
#: programs that listen on pinned ports.
ALONE = {
    "hosts": ("tests/localcloud/hosts/", "tests/hosts/", "tests/scripts/test_real_hosts.py"),
    "mpi": ("tests/scripts/test_mpi",),
}


def group_of(file: str) -> str:
    """What one process runs as a whole: a file, whose tests share servers, or several that must not run at once."""
    return next((group for group, starts in ALONE.items() if file.startswith(starts)), file)


class _Files(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.split("::")[0])


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _Files:
    """Share out files rather than tests."""
    return _Files(config, log)


def _order(item: pytest.Item) -> tuple[int, str]:
    """Long ones first, so that no process is left with them alone at the end; a group's files behind each other."""
    kind = 0 if item.get_closest_marker("hosts") else 1 if item.get_closest_marker("engine") else 2
    return kind, group_of(item.nodeid.split("::")[0])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_order)
