"""The store in PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from streams.store import schema
from streams.store.changes import Batch, Offsets
from streams.store.database import Database, DatabaseAway, DatabaseError, first_line
from streams.store.tables import EVENTS, PAIRS, Table

CHUNK = 10_000
NEXT = "FETCH 10000 FROM asked"
CONNECT_SECONDS = 10
#: After about 40 s without an answer of the other machine a connection has ended, on both sides. By default a
#: system waits for two hours, in which a writer stands, or one that is gone keeps its lock. A URL may state
#: others for this side.
CLIENT_ALIVE = {
    "keepalives_idle": 20, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 40_000,
}  # fmt: skip
SERVER_ALIVE = (
    "SET tcp_keepalives_idle = 20", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 4",
    "SET tcp_user_timeout = 40000",
)  # fmt: skip
#: How long the lock is waited for: the server notices later that a process has ended, and still later, by
#: SERVER_ALIVE, that this one has lost its connection.
LOCK_SECONDS, LOST_SECONDS = 2.0, 30.0
#: Of the advisory lock that the process which writes holds; any number that no other program uses.
WRITER = 0x7076_7374
INDEXES = (
    "CREATE INDEX IF NOT EXISTS events_report ON events (report_id)",
    "CREATE INDEX IF NOT EXISTS pairs_report ON pairs (report_id)",
    "CREATE INDEX IF NOT EXISTS pairs_term ON pairs (pt, drug)",
    "CREATE INDEX IF NOT EXISTS reports_repeats ON reports (duplicate_of)",
)


class PostgresDatabase(Database):
    """A database of a server; `write` creates the tables, and refuses where another process writes to it.

    A reader's transactions are read only, but give it a role that may only read all the same.
    """

    def __init__(self, url: str, password: str, *, write: bool = False) -> None:
        self._in_snapshot = False
        self._url, self._password, self._write = url, password, write
        self._connect(LOCK_SECONDS)

    def _connect(self, lock_seconds: float) -> None:
        self._connection = _connected(self._url, self._password)
        try:
            with self._errors():
                self._prepare(lock_seconds)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, lock_seconds: float) -> None:
        self._connection.execute("SET TIME ZONE 'UTC'")
        self._connection.commit()
        if not self._write:
            self._connection.read_only = True
            schema.check(schema.version_of(self._all))
            return
        for statement in SERVER_ALIVE:
            self._connection.execute(statement)
        self._connection.commit()
        end = time.monotonic() + lock_seconds
        while self._connection.execute("SELECT pg_try_advisory_lock(%s)", [WRITER]).fetchone() != (True,):
            if time.monotonic() > end:
                raise DatabaseError("another process writes to this database")
            time.sleep(0.05)
        schema.prepare(self._run)
        for statement in INDEXES:
            self._connection.execute(statement)
        self._connection.commit()

    def offsets(self) -> Offsets:
        if self._connection.closed:
            self._connect(LOST_SECONDS)
        return super().offsets()

    def write(self, batch: Batch) -> None:
        with self._errors(), self._connection.transaction():
            if batch.replaced:
                for table in (EVENTS, PAIRS):
                    self._connection.execute(
                        f"DELETE FROM {table.name} WHERE report_id = ANY(%s)",
                        [batch.replaced],
                    )
            for table, rows in batch.tables():
                if rows:
                    self._connection.execute(_insert(table), [_document(rows)])

    def query(self, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        cursor = self._connection.cursor()
        with self._errors():
            # A cursor takes only queries, and what is prepared is one statement.
            cursor.execute(f"DECLARE asked NO SCROLL CURSOR FOR {sql}", prepare=True)
            cursor.execute(NEXT)
        return [column.name for column in cursor.description or ()], self._fetched(cursor)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """One transaction, whose queries see what its first one sees."""
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._in_snapshot = True
        try:
            yield
        finally:
            self._in_snapshot = False
            with self._errors():
                self._connection.rollback()
                self._connection.isolation_level = None

    def close(self) -> None:
        self._connection.close()

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        """A statement of a transaction."""
        cursor = self._connection.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def _all(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            rows = self._connection.execute(sql, parameters).fetchall()
            self._connection.commit()
        return rows

    def _of_ids(self, sql: str, ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        return iter(self._all(f"{sql} = ANY(%s)", [list(ids)]))

    def _fetched(self, cursor: psycopg.Cursor[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        with self._errors():
            while chunk := cursor.fetchall():
                yield from chunk
                cursor.execute(NEXT)
            if self._in_snapshot:
                cursor.execute("CLOSE asked")
            else:
                self._connection.rollback()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, schema.OtherSchema) as error:
            kind = DatabaseAway if self._connection.closed else DatabaseError
            raise kind(first_line(error)) from None


def _insert(table: Table) -> str:
    """Inserts the rows of one JSON document, or replaces those of the same key."""
    names = ", ".join(table.columns)
    types = ", ".join(f"{name} {kind}" for name, kind in table.columns.items())
    return (
        f"INSERT INTO {table.name} ({names}) "
        f"SELECT {names} FROM json_to_recordset(%s::json) AS given({types}){table.upsert()}"
    )


def _document(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as JSON, without U+0000 in a text, which PostgreSQL does not store: no stage leaves one there,
    but others may write to the topics.
    """
    document = orjson.dumps(rows).decode()
    if "\\u0000" not in document:
        return document
    plain = [{n: v.replace("\0", "\ufffd") if isinstance(v, str) else v for n, v in r.items()} for r in rows]
    return orjson.dumps(plain).decode()


def _connected(url: str, password: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        return psycopg.connect(
            make_conninfo(url, **{**CLIENT_ALIVE, **conninfo_to_dict(url)}),
            password=password or None, connect_timeout=CONNECT_SECONDS, application_name="pvstream",
        )  # fmt: skip
    except psycopg.Error as error:
        raise DatabaseAway(first_line(error)) from None
