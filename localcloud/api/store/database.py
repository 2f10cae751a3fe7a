"""Resources as JSON documents in SQLite, with an attribute index that filters and pages use.

One connection under one lock: the API server handles a request in milliseconds and one at a time, so more would only
add conflicts. Write-ahead logging keeps every committed transaction over a kill of the process.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.api.errors import ApiError
from localcloud.api.store.index import ANY, COMBINED, attributes

Doc = dict[str, Any]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS resource (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT NOT NULL, doc TEXT NOT NULL,
    created REAL NOT NULL, UNIQUE (kind, id));
CREATE TABLE IF NOT EXISTS attr (
    kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY (kind, key, value, seq)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timer (
    kind TEXT NOT NULL, id TEXT NOT NULL, event TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (kind, id, event)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS timer_at ON timer (at);
CREATE TABLE IF NOT EXISTS idempotency (
    action TEXT NOT NULL, token TEXT NOT NULL, digest TEXT NOT NULL, answer TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (action, token)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS credential (
    access_key_id TEXT PRIMARY KEY, secret TEXT NOT NULL, token TEXT NOT NULL, role TEXT NOT NULL,
    session TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blob (digest TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

#: Timers that are handed out at once: a request that comes between two such rounds waits for one of them only.
_DUE = 100
#: How often answers that are too old are forgotten, seconds.
_PURGE = 3600.0
#: Size of the log that is worth a checkpoint.
_LOG_BYTES = 4 << 20

#: Row numbers beyond this are not looked for.
_FAR = 1 << 40
Filters = Mapping[str, str | Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list: its documents, how many match in all, and the token of the next page (empty: last one)."""

    items: list[Doc]
    total: int
    next_token: str


#: One encoder for all: `json.dumps` makes a new one at every call that has options.
_dump: Callable[[Doc], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def _after(token: str, query: str) -> int:
    """The number of the last row of the page that a token follows."""
    try:
        made_for, _, number = base64.urlsafe_b64decode(token.encode()).decode("ascii").partition(":")
        if made_for == query and number.isdecimal() and int(number) <= _FAR:
            return int(number)
    except ValueError:
        pass
    raise ApiError(400, "InvalidParameter.NextToken", "The specified parameter NextToken is not valid.")


class Store:
    """The database. Documents have their id under `id`; one handed out may be changed and put back by `update`."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        self._path = path
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        # Checkpoints write to the disk and wait for it: `checkpoint` does that beside the requests.
        self._db.execute("PRAGMA wal_autocheckpoint=0")
        self._db.execute("PRAGMA cache_size=-32000")
        self._db.execute("PRAGMA temp_store=MEMORY")
        self._db.executescript(_SCHEMA)
        #: Earliest timer, so that the usual "nothing is due" costs nothing.
        self.next_timer: float | None = None
        self._refresh_timer()
        #: When answers that are too old were last forgotten.
        self._purged = 0.0

    def checkpoint(self) -> None:
        """Move what the log has gathered into the database; holds nobody up when called from another thread."""
        log = self._path.with_name(self._path.name + "-wal")
        if not log.exists() or log.stat().st_size < _LOG_BYTES:
            return
        other = sqlite3.connect(self._path, timeout=5)
        try:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            other.close()

    def close(self) -> None:
        """Write everything back and close."""
        with self.lock:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; nested use joins the outer transaction."""
        with self.lock:
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                self._refresh_timer()
                raise
            self._db.execute("COMMIT")

    # -- settings ----------------------------------------------------------------------------------------------

    def setting(self, name: str, default: Callable[[], str]) -> str:
        """A setting of this cloud; made by `default` and kept the first time."""
        with self.transaction():
            row = self._db.execute("SELECT value FROM setting WHERE name=?", (name,)).fetchone()
            if row is not None:
                return str(row[0])
            value = default()
            self.set_setting(name, value)
            return value

    def set_setting(self, name: str, value: str) -> None:
        """Keep a setting."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))

    # -- long texts --------------------------------------------------------------------------------------------

    def keep_text(self, text: str) -> str:
        """Keep a long text that many resources may share, apart from them; answers the name to find it by."""
        if not text:
            return ""
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._db.execute("INSERT OR IGNORE INTO blob VALUES (?, ?)", (digest, text))
        return digest

    def text(self, digest: str) -> str:
        """A text that was kept, or nothing."""
        with self.lock:
            row = self._db.execute("SELECT data FROM blob WHERE digest=?", (digest,)).fetchone()
        return row[0] if row else ""

    # -- resources ---------------------------------------------------------------------------------------------

    def insert(self, kind: str, *docs: Doc) -> None:
        """Add resources; their order is the order of lists."""
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name='resource'").fetchone()
        numbered = list(enumerate(docs, (row[0] if row else 0) + 1))
        self._db.executemany(
            "INSERT INTO resource (seq, kind, id, doc, created) VALUES (?, ?, ?, ?, ?)",
            [(seq, kind, doc["id"], _dump(doc), doc.get("created", 0.0)) for seq, doc in numbered],
        )
        # Sorted, so that neighbours in the index are written one after the other.
        rows = sorted((kind, key, value, seq) for seq, doc in numbered for key, value in attributes(kind, doc))
        self._db.executemany("INSERT INTO attr VALUES (?, ?, ?, ?)", rows)

    def _row(self, kind: str, resource_id: str) -> tuple[int, Doc] | None:
        row = self._db.execute("SELECT seq, doc FROM resource WHERE kind=? AND id=?", (kind, resource_id)).fetchone()
        return None if row is None else (row[0], json.loads(row[1]))

    def get(self, kind: str, resource_id: str) -> Doc | None:
        """The resource, or None."""
        with self.lock:
            row = self._row(kind, resource_id)
        return None if row is None else row[1]

    def get_many(self, kind: str, ids: Sequence[str]) -> list[Doc]:
        """The resources among these that exist."""
        marks = ",".join("?" * len(ids))
        query = f"SELECT doc FROM resource WHERE kind=? AND id IN ({marks})"  # noqa: S608
        with self.lock:
            return [json.loads(row[0]) for row in self._db.execute(query, [kind, *ids])]

    def need(self, kind: str, resource_id: str, error: ApiError) -> Doc:
        """The resource, or raise `error`."""
        doc = self.get(kind, resource_id)
        if doc is None:
            raise error
        return doc

    def update(self, kind: str, doc: Doc) -> None:
        """Put back a changed document."""
        row = self._row(kind, doc["id"])
        if row is None:
            raise KeyError(doc["id"])
        seq, old = row
        self._db.execute("UPDATE resource SET doc=? WHERE seq=?", (_dump(doc), seq))
        before, after = set(attributes(kind, old)), set(attributes(kind, doc))
        self._unindex(kind, seq, before - after)
        self._db.executemany(
            "INSERT INTO attr VALUES (?, ?, ?, ?)", [(kind, key, value, seq) for key, value in after - before]
        )

    def change(self, kind: str, docs: Sequence[Doc], members: Doc) -> None:
        """Set the same members of documents that are otherwise as they were handed out.

        Cheaper than `update`, which first looks up what a document was.

        Raises:
            ValueError: the kind is indexed by combinations of members.
        """
        if kind in COMBINED:
            raise ValueError(f"{kind} is indexed by combinations of members")
        marks = ",".join("?" * len(docs))
        rows = self._db.execute(
            f"SELECT id, seq FROM resource WHERE kind=? AND id IN ({marks})",  # noqa: S608
            [kind, *(doc["id"] for doc in docs)],
        )
        numbers: dict[str, int] = dict(rows.fetchall())
        gone: list[tuple[str, str, str, int]] = []
        new: list[tuple[str, str, str, int]] = []
        after = set(attributes(kind, members))
        for doc in docs:
            before = set(attributes(kind, {key: doc.get(key) for key in members}))
            seq = numbers[doc["id"]]
            gone += [(kind, key, value, seq) for key, value in before - after]
            new += [(kind, key, value, seq) for key, value in after - before]
            doc.update(members)
        self._db.executemany(
            "UPDATE resource SET doc=? WHERE seq=?", [(_dump(doc), numbers[doc["id"]]) for doc in docs]
        )
        self._db.executemany("DELETE FROM attr WHERE kind=? AND key=? AND value=? AND seq=?", sorted(gone))
        self._db.executemany("INSERT INTO attr VALUES (?, ?, ?, ?)", sorted(new))

    def _unindex(self, kind: str, seq: int, attrs: Iterable[tuple[str, str]]) -> None:
        self._db.executemany(
            "DELETE FROM attr WHERE kind=? AND key=? AND value=? AND seq=?",
            [(kind, key, value, seq) for key, value in attrs],
        )

    def delete(self, kind: str, resource_id: str) -> None:
        """Remove a resource with its timers; unknown ids are not an error."""
        row = self._row(kind, resource_id)
        if row is None:
            return
        seq, old = row
        self._db.execute("DELETE FROM resource WHERE seq=?", (seq,))
        self._unindex(kind, seq, attributes(kind, old))
        self._db.execute("DELETE FROM timer WHERE kind=? AND id=?", (kind, resource_id))

    def _only(self, kind: str, region: str) -> bool:
        """Whether all resources of a kind are in one region (the usual case): filtering by it is then needless work."""
        row = self._db.execute(
            "SELECT MIN(value), MAX(value) FROM attr WHERE kind=? AND key='region'", (kind,)
        ).fetchone()
        return bool(row[0] == region == row[1])

    def _where(
        self, kind: str, filters: Filters, ids: Sequence[str] | None, after: int, visible: float | None = None
    ) -> tuple[str, str, list[Any]]:
        """FROM and WHERE of a list: the first single-valued filter drives, the others are probed by primary key."""
        values: list[Any] = []
        driver = ""
        probes: list[str] = []
        for key, wanted in filters.items():
            if wanted is None or wanted == "" or wanted == []:
                continue
            if wanted == ANY:
                probes.append(" AND EXISTS (SELECT 1 FROM attr b WHERE b.kind=? AND b.key=? AND b.seq=s.seq)")
                values += [kind, key]
                continue
            options = [wanted] if isinstance(wanted, str) else list(wanted)
            marks = ",".join("?" * len(options))
            if not driver and len(options) == 1 and ids is None:
                driver = " AND a.kind=? AND a.key=? AND a.value=?"
                values = [kind, key, options[0], *values]
            elif key == "region" and isinstance(wanted, str) and self._only(kind, wanted):
                continue
            else:
                probes.append(
                    f" AND EXISTS (SELECT 1 FROM attr b WHERE b.kind=? AND b.key=? AND b.value IN ({marks})"  # noqa: S608
                    " AND b.seq=s.seq)"
                )
                values += [kind, key, *options]
        if driver:
            source, start = f"(SELECT a.seq AS seq FROM attr a WHERE 1{driver}) s", " WHERE 1"  # noqa: S608
        else:
            source, start = "(SELECT r.seq AS seq, r.id AS id FROM resource r WHERE r.kind=?) s", " WHERE 1"
            values = [kind, *values]
        where = start + "".join(probes)
        if ids is not None:
            where += f" AND s.id IN ({','.join('?' * len(ids))})"
            values += ids
        if after:
            where += " AND s.seq > ?"
            values.append(after)
        if visible is not None:
            where += " AND EXISTS (SELECT 1 FROM resource v WHERE v.seq = s.seq AND v.created <= ?)"
            values.append(visible)
        return source, where, values

    def count(
        self,
        kind: str,
        filters: Filters | None = None,
        ids: Sequence[str] | None = None,
        visible: float | None = None,
    ) -> int:
        """How many resources match (those created after `visible`, seconds since 1970, left out)."""
        source, where, values = self._where(kind, filters or {}, ids, 0, visible)
        with self.lock:
            return int(self._db.execute(f"SELECT COUNT(*) FROM {source}{where}", values).fetchone()[0])  # noqa: S608

    def find(
        self,
        kind: str,
        filters: Filters | None = None,
        *,
        ids: Sequence[str] | None = None,
        limit: int = -1,
        offset: int = 0,
    ) -> list[Doc]:
        """Matching documents in order of creation."""
        return [doc for _, doc in self._select(kind, filters or {}, ids, 0, limit, offset, None)]

    def find_by(self, kind: str, key: str, values: Sequence[str]) -> list[Doc]:
        """Documents that have one of many values under an indexed key, in order of creation."""
        marks = ",".join("?" * len(values))
        query = (
            f"SELECT x.doc FROM attr a CROSS JOIN resource x ON x.seq = a.seq"  # noqa: S608
            f" WHERE a.kind=? AND a.key=? AND a.value IN ({marks}) ORDER BY a.seq"
        )
        with self.lock:
            return [json.loads(row[0]) for row in self._db.execute(query, [kind, key, *values])]

    def _select(
        self,
        kind: str,
        filters: Filters,
        ids: Sequence[str] | None,
        after: int,
        limit: int,
        offset: int,
        visible: float | None,
    ) -> list[tuple[int, Doc]]:
        source, where, values = self._where(kind, filters, ids, after, visible)
        query = (
            f"SELECT s.seq, x.doc FROM {source} CROSS JOIN resource x ON x.seq = s.seq{where}"  # noqa: S608
            " ORDER BY s.seq LIMIT ? OFFSET ?"
        )
        with self.lock:
            rows = self._db.execute(query, [*values, limit, offset]).fetchall()
        return [(seq, json.loads(doc)) for seq, doc in rows]

    def page(
        self,
        kind: str,
        filters: Filters,
        *,
        ids: Sequence[str] | None,
        size: int,
        number: int = 1,
        token: str | None = None,
        visible: float | None = None,
        keep: Callable[[Doc], bool] | None = None,
    ) -> Page:
        """One page, by number or by the token of the page before (which stays right while resources come and go).

        Args:
            kind: of the resources.
            filters: by indexed members.
            ids: only these, if given.
            size: resources on a page.
            number: of the page, if there is no token.
            token: what the page before told; it is good for the same query only.
            visible: leave out what was created later, seconds since 1970.
            keep: which of those found to keep, for members that are not indexed (looks at every one).

        Raises:
            ApiError: `InvalidParameter.NextToken`.
        """
        query = hashlib.sha256(repr((kind, sorted(filters.items()), ids)).encode()).hexdigest()[:12]
        after = _after(token, query) if token else 0
        offset = 0 if token else (number - 1) * size
        if offset > _FAR:  # no cloud has as many
            return Page([], self.count(kind, filters, ids, visible), "")
        with self.lock:
            if keep is None:
                total = self.count(kind, filters, ids, visible)
                rows = self._select(kind, filters, ids, after, size + 1, offset, visible)
            else:
                kept = [row for row in self._select(kind, filters, ids, 0, -1, 0, visible) if keep(row[1])]
                total = len(kept)
                rows = [row for row in kept if row[0] > after][offset : offset + size + 1]
        more = len(rows) > size
        rows = rows[:size]
        following = base64.urlsafe_b64encode(f"{query}:{rows[-1][0]}".encode()).decode() if more else ""
        return Page([doc for _, doc in rows], total, following)

    def values(self, kind: str, key: str) -> list[str]:
        """All values that resources of a kind have under an indexed key."""
        with self.lock:
            return [row[0] for row in self._db.execute("SELECT value FROM attr WHERE kind=? AND key=?", (kind, key))]

    def count_values(self, kind: str, key: str) -> int:
        """How many values resources of a kind have under an indexed key."""
        with self.lock:
            row = self._db.execute("SELECT COUNT(*) FROM attr WHERE kind=? AND key=?", (kind, key)).fetchone()
        return int(row[0])

    def tally(self, kind: str, key: str) -> dict[str, int]:
        """How many resources of a kind have each value of an indexed key."""
        query = "SELECT value, COUNT(*) FROM attr WHERE kind=? AND key=? GROUP BY value"
        with self.lock:
            return dict(self._db.execute(query, (kind, key)).fetchall())

    def taken(self, kind: str, key: str, values: Sequence[str]) -> set[str]:
        """Which of these values some resource has under an indexed key."""
        marks = ",".join("?" * len(values))
        query = f"SELECT value FROM attr WHERE kind=? AND key=? AND value IN ({marks})"  # noqa: S608
        with self.lock:
            return {row[0] for row in self._db.execute(query, [kind, key, *values])}

    def counts(self) -> dict[str, int]:
        """How many resources there are of each kind (kinds with none are left out)."""
        with self.lock:
            rows = self._db.execute("SELECT kind, COUNT(*) FROM resource GROUP BY kind ORDER BY kind").fetchall()
        return dict(rows)

    # -- timers ------------------------------------------------------------------------------------------------

    def set_timer(self, kind: str, resource_id: str, event: str, at: float) -> None:
        """Have `event` happen to a resource at a time; an earlier timer of the same event is replaced."""
        self.set_timers(kind, [(resource_id, event, at)])

    def set_timers(self, kind: str, timers: Sequence[tuple[str, str, float]]) -> None:
        """The same for many resources: id, event, time."""
        self._db.executemany(
            "INSERT OR REPLACE INTO timer VALUES (?, ?, ?, ?)",
            [(kind, resource_id, event, at) for resource_id, event, at in timers],
        )
        first = min((at for _, _, at in timers), default=None)
        if first is not None and (self.next_timer is None or first < self.next_timer):
            self.next_timer = first

    def drop_timer(self, kind: str, resource_id: str, event: str) -> None:
        """Forget a timer."""
        self._db.execute("DELETE FROM timer WHERE kind=? AND id=? AND event=?", (kind, resource_id, event))

    def due(self, now: float) -> list[tuple[str, str, str, float]]:
        """The first hundred timers that have run out (kind, id, event, time), earliest first; they are removed."""
        rows = self._db.execute(
            "SELECT kind, id, event, at FROM timer WHERE at<=? ORDER BY at LIMIT ?", (now, _DUE)
        ).fetchall()
        self._db.executemany("DELETE FROM timer WHERE kind=? AND id=? AND event=?", [row[:3] for row in rows])
        self._refresh_timer()
        return rows

    def _refresh_timer(self) -> None:
        self.next_timer = self._db.execute("SELECT MIN(at) FROM timer").fetchone()[0]

    # -- idempotency -------------------------------------------------------------------------------------------

    def answered(self, action: str, token: str) -> tuple[str, Doc] | None:
        """Digest of the parameters and answer of an earlier request with this token."""
        row = self._db.execute(
            "SELECT digest, answer FROM idempotency WHERE action=? AND token=?", (action, token)
        ).fetchone()
        return None if row is None else (row[0], json.loads(row[1]))

    def keep_answer(self, action: str, token: str, digest: str, answer: Doc, now: float) -> None:
        """Remember an answer for a day or a little longer."""
        if not 0 <= now - self._purged < _PURGE:  # looks at all of them: not at every request
            self._db.execute("DELETE FROM idempotency WHERE at<?", (now - 86_400,))
            self._purged = now
        self._db.execute(
            "INSERT OR REPLACE INTO idempotency VALUES (?, ?, ?, ?, ?)", (action, token, digest, _dump(answer), now)
        )

    # -- temporary credentials -----------------------------------------------------------------------------------

    def add_credential(
        self, access_key_id: str, secret: str, token: str, role: str, session: str, expires: float, now: float
    ) -> None:
        """Keep temporary credentials; those that ran out an hour ago are forgotten."""
        with self.transaction():
            self._db.execute("DELETE FROM credential WHERE expires<?", (now - 3600,))
            self._db.execute(
                "INSERT INTO credential VALUES (?, ?, ?, ?, ?, ?)",
                (access_key_id, secret, token, role, session, expires),
            )

    def credential(self, access_key_id: str) -> tuple[str, str, str, str, float] | None:
        """Secret, token, role, session name and expiry of temporary credentials, or None."""
        with self.lock:
            row: tuple[str, str, str, str, float] | None = self._db.execute(
                "SELECT secret, token, role, session, expires FROM credential WHERE access_key_id=?", (access_key_id,)
            ).fetchone()
        return row

    def expire_credentials(self, at: float) -> int:
        """Have all temporary credentials that still live expire at `at`; says how many."""
        with self.transaction():
            return self._db.execute("UPDATE credential SET expires=? WHERE expires>?", (at, at)).rowcount
