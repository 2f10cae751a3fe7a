"""The database: what is indexed follows what is stored, whichever way a document is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from direct_cloud import Direct

from localcloud.api.store import Store
from localcloud.api.store.index import attributes


def index_of(store: Store, kind: str) -> set[tuple[str, str, str]]:
    """Rows of the index of a kind as (id, key, value)."""
    rows = store._db.execute(
        "SELECT r.id, a.key, a.value FROM attr a JOIN resource r ON r.seq = a.seq WHERE a.kind=?", (kind,)
    )
    return {tuple(row) for row in rows}


def wanted(store: Store, kind: str) -> set[tuple[str, str, str]]:
    return {(doc["id"], key, value) for doc in store.find(kind) for key, value in attributes(kind, doc)}


def document(number: int, **members: Any) -> dict[str, Any]:
    return {"id": f"i-{number}", "region": "r", "status": "Pending", "security_group_ids": ["a", "b"], **members}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cloud.db")


def test_every_way_of_changing_keeps_the_index_right(store: Store) -> None:
    with store.transaction():
        store.insert("instance", *(document(number, tags={"pool": "x"}) for number in range(5)))
        store.insert("instance", document(7))
    assert index_of(store, "instance") == wanted(store, "instance")
    assert [doc["id"] for doc in store.find("instance")] == ["i-0", "i-1", "i-2", "i-3", "i-4", "i-7"]
    with store.transaction():
        docs = store.get_many("instance", ["i-1", "i-3", "i-none"])
        store.change("instance", docs, {"status": "Running", "security_group_ids": ["b", "c"], "started": 5.0})
        store.update("instance", document(2, tags={"pool": "y"}))
        store.delete("instance", "i-0")
    assert index_of(store, "instance") == wanted(store, "instance")
    assert [doc["id"] for doc in store.find("instance", {"status": "Running"})] == ["i-1", "i-3"]
    assert [doc["id"] for doc in store.find("instance", {"security_group_ids": "c"})] == ["i-1", "i-3"]
    assert [doc["id"] for doc in store.find("instance", {"tag:pool": "y"})] == ["i-2"]
    assert all(doc["started"] == 5.0 for doc in store.get_many("instance", ["i-1", "i-3"]))


def test_members_that_are_indexed_together_cannot_be_changed_alone(store: Store) -> None:
    with pytest.raises(ValueError, match="combinations"):
        store.change("eni", [], {"private_ip": "10.0.0.1"})


def test_numbers_of_deleted_resources_are_not_given_out_again(store: Store) -> None:
    with store.transaction():
        store.insert("instance", document(1), document(2))
    first = store.page("instance", {}, ids=None, size=1)
    with store.transaction():
        store.delete("instance", "i-2")
        store.insert("instance", document(3))
    assert [doc["id"] for doc in store.page("instance", {}, ids=None, size=9, token=first.next_token).items] == ["i-3"]


def test_timers_come_in_batches_and_in_order(store: Store) -> None:
    with store.transaction():
        store.set_timers("instance", [(f"i-{number}", "started", 1000.0 - number) for number in range(150)])
        assert store.next_timer == 851.0
        due = store.due(990.0)
        rest = store.due(990.0)
        assert store.due(990.0) == []
    times = [at for _, _, _, at in [*due, *rest]]
    assert len(due) == 100
    assert times == sorted(times)
    assert times == [float(at) for at in range(851, 991)]
    assert store.next_timer == 991.0


def test_hundreds_of_instances_are_all_up_when_the_clock_says_so(direct: Direct) -> None:
    _, vswitch, group = direct.network()
    for _ in range(3):
        direct.run(vswitch, group, Amount=100)
    direct.server.advance(60)
    assert direct.server.store.count("instance", {"status": "Running"}) == 300
    assert index_of(direct.server.store, "instance") == wanted(direct.server.store, "instance")
    assert index_of(direct.server.store, "eni") == wanted(direct.server.store, "eni")
