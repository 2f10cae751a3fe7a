"""How tests are shared out when several processes run them (`make test` uses one for each processor)."""

from __future__ import annotations

import pytest


def _order(item: pytest.Item) -> int:
    """Long tests first, so that no process is left with them alone at the end."""
    return 0 if item.get_closest_marker("hosts") else 1 if item.get_closest_marker("engine") else 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file stay together, as they share servers; those with real hosts too, as they share addresses."""
    for item in items:
        group = "hosts" if item.get_closest_marker("hosts") else item.path.as_posix()
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_order)
