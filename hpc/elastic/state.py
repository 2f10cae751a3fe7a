"""The daemon's memory on disk: one SQLite file. Whatever moment it is killed at, a restart goes on from here."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from hpc.elastic.launch import Cooldowns, Key
from hpc.elastic.memory import Mark, Memory

_SCHEMA = """
CREATE TABLE IF NOT EXISTS mark (node TEXT PRIMARY KEY, reason TEXT NOT NULL, until REAL, held INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS requested (node TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS job (node TEXT PRIMARY KEY, job INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS awaited (node TEXT PRIMARY KEY, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS failure (pool TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS stopped (pool TEXT PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cooldown (
    type TEXT, zone TEXT, charge TEXT, amount INTEGER, until REAL NOT NULL, PRIMARY KEY (type, zone, charge, amount)
);
CREATE TABLE IF NOT EXISTS purchase (token TEXT PRIMARY KEY, call TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS binding (id TEXT PRIMARY KEY, node TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS spending (month TEXT PRIMARY KEY, amount TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Purchase:
    """A RunInstances call that was begun at a time: it is repeated with the same token after a restart."""

    token: str
    pool: str
    nodes: tuple[str, ...]
    key: Key
    minimum: int
    at: datetime


class State:
    """The file. Safe to be used from several threads.

    Args:
        path: of the SQLite file; its folder must exist.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def memory(self) -> Memory:
        """What is remembered; launches under way and misses begin anew."""
        with self._lock:
            return Memory(
                requested={node: _time(at) for node, at in self._db.execute("SELECT node, at FROM requested")},
                jobs=dict(self._db.execute("SELECT node, job FROM job").fetchall()),
                marks={
                    node: Mark(reason, None if until is None else _time(until), bool(held))
                    for node, reason, until, held in self._db.execute("SELECT node, reason, until, held FROM mark")
                },
                failures=dict(self._db.execute("SELECT pool, count FROM failure").fetchall()),
                stopped=dict(self._db.execute("SELECT pool, reason FROM stopped").fetchall()),
            )

    def keep(self, memory: Memory, before: Memory) -> None:
        """Write down what a look has changed in requests, jobs and marks.

        Only what the look knew of is removed: messages may have come in meanwhile.
        """
        jobs = [(node, job) for node, job in memory.jobs.items() if before.jobs.get(node) != job]
        with self._transaction():
            if memory.requested != before.requested:
                self._db.execute("DELETE FROM requested")
                self._db.executemany(
                    "INSERT INTO requested VALUES (?, ?)",
                    [(node, at.timestamp()) for node, at in memory.requested.items()],
                )
            self._db.executemany("DELETE FROM job WHERE node = ?", [(n,) for n in before.jobs if n not in memory.jobs])
            self._db.executemany("INSERT OR REPLACE INTO job VALUES (?, ?)", jobs)
            held = [(node,) for node, mark in memory.marks.items() if mark.held and not before.marks[node].held]
            self._db.executemany("UPDATE mark SET held = 1 WHERE node = ?", held)
            self._db.executemany(
                "DELETE FROM mark WHERE node = ?", [(n,) for n in before.marks if n not in memory.marks]
            )

    def add_jobs(self, jobs: Mapping[str, int]) -> None:
        """Remember for which job nodes were asked for, 0 for none."""
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO job VALUES (?, ?)", list(jobs.items()))

    def mark(self, nodes: Iterable[str], reason: str, until: datetime | None) -> None:
        """Remember that the daemon takes nodes out of use; call it before Slurm is told."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO mark VALUES (?, ?, ?, 0)",
                [(node, reason, None if until is None else until.timestamp()) for node in nodes],
            )

    def unmark(self, nodes: Iterable[str]) -> None:
        """Nodes are in use again."""
        with self._transaction():
            self._db.executemany("DELETE FROM mark WHERE node = ?", [(node,) for node in nodes])

    def wait_for(self, nodes: Iterable[str], until: datetime) -> None:
        """Nodes have been launched; the cloud may not show them before `until`."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO awaited VALUES (?, ?)", [(node, until.timestamp()) for node in nodes]
            )

    def awaited(self, now: datetime) -> frozenset[str]:
        """Nodes that were launched a short time ago; those whose time is over are forgotten."""
        with self._transaction():
            self._db.execute("DELETE FROM awaited WHERE until <= ?", (now.timestamp(),))
            return frozenset(node for (node,) in self._db.execute("SELECT node FROM awaited"))

    def forget_awaited(self, nodes: Iterable[str]) -> None:
        """The cloud shows these nodes, or they were let go."""
        with self._transaction():
            self._db.executemany("DELETE FROM awaited WHERE node = ?", [(node,) for node in nodes])

    def fail(self, pool: str, count: int = 1) -> int:
        """Count failed starts in a row; the new count."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO failure VALUES (?, ?) ON CONFLICT (pool) DO UPDATE SET count = count + excluded.count",
                (pool, count),
            )
            row = self._db.execute("SELECT count FROM failure WHERE pool = ?", (pool,)).fetchone()
            return int(row[0])

    def succeed(self, pool: str) -> None:
        """A node of the pool has started: its failures are forgotten."""
        with self._transaction():
            self._db.execute("DELETE FROM failure WHERE pool = ?", (pool,))

    def stop(self, pool: str, reason: str) -> None:
        """Buy nothing for a pool until `recover`."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO stopped VALUES (?, ?)", (pool, reason))

    def recover(self, pool: str) -> None:
        """Buy for a pool again."""
        with self._transaction():
            self._db.execute("DELETE FROM stopped WHERE pool = ?", (pool,))
            self._db.execute("DELETE FROM failure WHERE pool = ?", (pool,))

    def cool(self, key: Key, amount: int, until: datetime) -> None:
        """Do not ask for `amount` or more of a (type, zone, charge) before `until`."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO cooldown VALUES (?, ?, ?, ?, ?)", (*key, amount, until.timestamp())
            )

    def cooldowns(self, now: datetime) -> Cooldowns:
        """What is not tried at present; what is over is forgotten."""
        found: dict[Key, list[tuple[int, datetime]]] = {}
        with self._transaction():
            self._db.execute("DELETE FROM cooldown WHERE until <= ?", (now.timestamp(),))
            rows = self._db.execute("SELECT type, zone, charge, amount, until FROM cooldown").fetchall()
        for kind, zone, charge, amount, until in rows:
            found.setdefault((kind, zone, charge), []).append((amount, _time(until)))
        return found

    def begin(self, purchase: Purchase) -> None:
        """Remember a call before it is made."""
        call = [purchase.pool, list(purchase.nodes), list(purchase.key), purchase.minimum, purchase.at.timestamp()]
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO purchase VALUES (?, ?)", (purchase.token, json.dumps(call)))

    def end(self, token: str) -> None:
        """The outcome of a call is known."""
        with self._transaction():
            self._db.execute("DELETE FROM purchase WHERE token = ?", (token,))

    def unfinished(self) -> tuple[Purchase, ...]:
        """Calls of which nobody knows whether they were made: the daemon was killed meanwhile."""
        with self._lock:
            rows = self._db.execute("SELECT token, call FROM purchase").fetchall()
        found = []
        for token, call in rows:
            pool, nodes, key, minimum, at = json.loads(call)
            found.append(Purchase(token, pool, tuple(nodes), (key[0], key[1], key[2]), minimum, _time(at)))
        return tuple(found)

    def count(self, name: str, by: int = 1) -> int:
        """Add to a counter (`launched`, `wasted`, `attempt`, ...); the new value."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value",
                (name, by),
            )
            return int(self._db.execute("SELECT value FROM counter WHERE name = ?", (name,)).fetchone()[0])

    def bindings(self) -> dict[str, str]:
        """Instance -> its node."""
        with self._lock:
            return dict(self._db.execute("SELECT id, node FROM binding").fetchall())

    def bind(self, nodes: Mapping[str, str], gone: Iterable[str]) -> None:
        """Remember the nodes of new instances, and forget those that are gone."""
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO binding VALUES (?, ?)", list(nodes.items()))
            self._db.executemany("DELETE FROM binding WHERE id = ?", [(instance_id,) for instance_id in gone])

    def spending(self, month: str) -> tuple[Decimal, datetime | None]:
        """CNY for nodes in a month, and up to when; (0, None) where nothing is known."""
        with self._lock:
            row = self._db.execute("SELECT amount, at FROM spending WHERE month = ?", (month,)).fetchone()
        return (Decimal(row[0]), _time(row[1])) if row else (Decimal(0), None)

    def spend(self, month: str, amount: Decimal, at: datetime) -> None:
        """Remember what the nodes of a month have cost so far."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO spending VALUES (?, ?, ?)", (month, str(amount), at.timestamp()))

    def counters(self) -> dict[str, int]:
        """All counters."""
        with self._lock:
            return dict(self._db.execute("SELECT name, value FROM counter").fetchall())

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db, self._lock)


class _Transaction:
    """One transaction, alone."""

    def __init__(self, db: sqlite3.Connection, lock: threading.RLock) -> None:
        self._db, self._lock = db, lock

    def __enter__(self) -> None:
        self._lock.acquire()
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._db.execute("COMMIT" if kind is None else "ROLLBACK")
        finally:
            self._lock.release()


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
