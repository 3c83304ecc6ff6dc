"""The store in ClickHouse.

There are no transactions over tables, so the offsets are written last: after a crash the messages since then
are read again, and what they say is there already or is written once more, as the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import clickhouse_connect
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError, StreamFailureError

from streams.store import schema
from streams.store.changes import Batch
from streams.store.clickhouse.lease import COUNTED, WriterLease
from streams.store.clickhouse.tables import lines, report_lines, statements, stored
from streams.store.database import Database, DatabaseAway, DatabaseError, first_line
from streams.store.rows import Row
from streams.store.tables import EVENTS, PAIRS, REPORTS, quoted

CONNECT_SECONDS = 10
#: Ids in one query.
CHUNK = 1000
#: Queries name many ids. Times are UTC, and a server must not keep rows in memory that it has confirmed.
SETTINGS = {
    "max_query_size": 16 << 20,
    "session_timezone": "UTC",
    "date_time_input_format": "best_effort",
    "async_insert": 0,
    "cast_keep_nullable": 1,
}


class ClickHouseDatabase(Database):
    """A database of a server; `write` creates the tables, and refuses where another process writes to it.

    A reader's queries are read only; give it a role that may only read all the same.
    """

    def __init__(self, url: str, password: str, *, write: bool = False) -> None:
        self._lease: WriterLease | None = None
        self._written = 0
        with _database_errors():
            self._client = _connected(url, password, SETTINGS if write else SETTINGS | {"readonly": 1})
            try:
                version = schema.version_of(self._run, "currentDatabase()")
                if not write:
                    schema.check(version)
                else:
                    self._lease = WriterLease(_connected(url, password, SETTINGS))
                    self._prepare(version)
            except BaseException:
                self.close()
                raise

    def _prepare(self, version: int | None) -> None:
        for statement in statements(version):
            self._client.command(statement)
        if version is None or version < schema.VERSION:
            self._client.command(f"INSERT INTO schema_version VALUES ({schema.VERSION})")

    def write(self, batch: Batch) -> None:
        if self._lease is None:
            raise DatabaseError("the database is open for reading only")
        rows = batch.rows
        given = {row["id"] for row in rows.reports}
        with _database_errors():
            self._lease.check()
            self._written += 1
            version = (self._lease.epoch << COUNTED) + self._written
            rewritten = self._reports([id_ for id_ in batch.replaced if id_ not in given])
            reports = [*rows.reports, *rewritten]
            self._insert(stored(REPORTS), report_lines(reports, rows.events, rows.pairs, version))
            for table, table_rows in batch.tables():
                if table not in (REPORTS, EVENTS, PAIRS):
                    self._insert(stored(table), lines(table_rows, version))

    def query(self, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        with _database_errors():
            stream = self._client.query_row_block_stream(sql)
        return list(stream.source.column_names), _fetched(stream)

    def close(self) -> None:
        with _database_errors():
            if self._lease is not None:
                self._lease.close()
                self._lease = None
            self._client.close()

    def _reports(self, ids: Sequence[str]) -> list[Row]:
        """The rows of reports of which only the events are written anew."""
        sql = f"SELECT {', '.join(REPORTS.columns)} FROM {REPORTS.name} WHERE id"
        return [dict(zip(REPORTS.columns, row, strict=True)) for row in self._of_ids(sql, ids)]

    def _insert(self, table: str, rows: Iterable[bytes]) -> None:
        if block := b"\n".join(rows):
            self._client.raw_insert(table, insert_block=block, fmt="JSONEachRow")

    def _of_ids(self, sql: str, ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query that ends in the column of the ids."""
        for i in range(0, len(ids), CHUNK):
            yield from self._all(f"{sql} IN ({', '.join(map(quoted, ids[i : i + CHUNK]))})")

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        with _database_errors():
            return self._run(sql)

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._client.query(sql).result_rows]


def _connected(url: str, password: str, settings: Mapping[str, Any]) -> Any:
    """A client of a URL of SCHEMES."""
    parts = urlsplit(url)
    if parts.scheme == "chdb":
        return clickhouse_connect.get_client(dsn=url, settings=dict(settings))
    return clickhouse_connect.get_client(
        host=parts.hostname or "localhost",
        port=parts.port,
        username=unquote(parts.username) if parts.username else None,
        password=password,
        database=unquote(parts.path.strip("/")) or None,
        secure=parts.scheme == "clickhouses",
        connect_timeout=CONNECT_SECONDS,
        client_name="pvstream",
        autogenerate_session_id=False,
        settings=dict(settings),
    )


def _fetched(stream: Any) -> Iterator[tuple[Any, ...]]:
    with _database_errors(), stream:
        for block in stream:
            yield from map(tuple, block)


@contextmanager
def _database_errors() -> Iterator[None]:
    try:
        yield
    except (ClickHouseError, OSError, schema.OtherSchema) as error:
        # Each request connects again. An error of the server inside of an answer is no lost connection.
        is_away = isinstance(error, OperationalError) and not isinstance(error, StreamFailureError)
        kind = DatabaseAway if is_away else DatabaseError
        raise kind(first_line(error) or type(error).__name__) from None
