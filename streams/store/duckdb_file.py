"""The store in a DuckDB file.

One process can have the file open for writing, and then no other can open it. The store therefore closes it
whenever it has nothing to write, and about once a second; readers wait for such a moment. A process that
waits for the file holds the lock of a second file, so that processes open it in turn.

DuckDB does not overwrite what it deletes: the text of a deleted report may remain in a free block of the file
for a long time. So the writing process replaces the file by a copy of its rows, at its end and every six
hours.
"""

from __future__ import annotations

import fcntl
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import duckdb
import orjson

from models.releases.store import sync
from streams.store import schema
from streams.store.changes import Batch
from streams.store.database import Database, DatabaseBusy, DatabaseError, first_line
from streams.store.tables import EVENTS, PAIRS, Table, quoted
from streams.topics import DELETED_MS

log = logging.getLogger(__name__)
#: Seconds from one copy to the next, where rows were replaced or deleted meanwhile; as for the topics.
REWRITE_SECONDS = DELETED_MS / 1000
#: Seconds to wait for the process that has the file open.
PATIENCE = 30.0
#: In the errors where another process, or another part of this one, has the file open or is closing it.
BUSY = ("lock", "different configuration", "Unique file handle conflict")
POLL_SECONDS = 0.02
CHUNK = 10_000
#: No statement of a reader opens files, loads extensions or changes that.
READER = {"enable_external_access": "false", "lock_configuration": "true"}
_JSON_TYPES = {"text": "VARCHAR", "double precision": "DOUBLE"}


class DuckDatabase(Database):
    """A database of this machine; `write` creates it, and refuses where another process writes to it."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.path = path
        self._write = write
        self._connection: Any = None
        self._lock: Any = None
        self._has_removed = False
        self._rewritten_at = time.monotonic()
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            existed = path.exists()
            try:
                with self._transaction() as connection:
                    schema.prepare(_runner(connection))
            except DatabaseError as error:
                self.close()
                raise DatabaseError(f"{path}: {error}") from None
            # An earlier process may have been killed before its copy.
            self._has_removed = existed
        elif not path.exists():
            raise DatabaseError(f"there is no {path}; `pvstream store` writes it")

    def write(self, batch: Batch) -> None:
        with self._transaction() as connection:
            if batch.replaced:
                self._has_removed = True
                for table in (EVENTS, PAIRS):
                    connection.execute(
                        f"DELETE FROM {table.name} WHERE report_id IN (SELECT unnest(?))", [batch.replaced]
                    )
            for table, rows in batch.tables():
                insert(connection, table, rows)

    def query(self, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        with _database_errors():
            cursor = self._opened().execute(sql)
            if cursor is None:
                raise DatabaseError("there is no statement")
            names = [column[0] for column in cursor.description or ()]
        return names, _fetched(cursor)

    def _all(self, sql: str) -> Sequence[tuple[Any, ...]]:
        return cast(Sequence[tuple[Any, ...]], self._opened().execute(sql).fetchall())

    def _of_ids(self, sql: str, ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        return iter(self._opened().execute(f"{sql} IN (SELECT unnest(?))", [list(ids)]).fetchall())

    def release(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if time.monotonic() - self._rewritten_at > REWRITE_SECONDS:
            self._rewrite()

    def close(self) -> None:
        self.release()
        if self._lock is not None:
            self._rewrite()
            self._lock.close()
            self._lock = None

    def _rewrite(self) -> None:
        """Replaces the closed file by a copy of its rows, if any were removed. A crash leaves either file;
        where there can be no copy the file stays, and it is tried again later.
        """
        self._rewritten_at = time.monotonic()
        new, journal, new_journal = (
            self.path.with_name(self.path.name + end) for end in (".new", ".wal", ".new.wal")
        )
        if not self._write or not self._has_removed:
            return
        try:
            if journal.exists():
                _take_in(self.path, journal)
            _copy(self.path, new)
            if new_journal.exists():
                raise OSError("the copy was not written to its end")
            # A power cut leaves one of the two whole, and no later transaction is written to a deleted file.
            sync(new)
            new.replace(self.path)
            sync(self.path.parent)
            self._has_removed = False
        except (duckdb.Error, OSError) as error:
            for file in (new, new_journal):
                with suppress(OSError):
                    file.unlink(missing_ok=True)
            log.warning("%s keeps what was deleted from it for now: %s", self.path, first_line(error))

    def _opened(self) -> Any:
        """The connection; waits for others to close the file."""
        if self._connection is None:
            end = time.monotonic() + PATIENCE
            with self._turn(end):
                while self._connection is None:
                    try:
                        self._connection = self._connect()
                    except duckdb.OperationalError as error:
                        is_busy = any(words in str(error) for words in BUSY)
                        if not is_busy or time.monotonic() > end:
                            kind = DatabaseBusy if is_busy else DatabaseError
                            raise kind(f"{self.path}: {first_line(error)}") from None
                        time.sleep(POLL_SECONDS)
        return self._connection

    def _connect(self) -> Any:
        config: Any = {} if self._write else READER
        connection = duckdb.connect(str(self.path), read_only=not self._write, config=config)
        if not self._write:
            self._checked(connection)
        return connection

    @contextmanager
    def _turn(self, end: float) -> Iterator[None]:
        """Holds the lock by which processes take turns; runs without it after `end`, and where the lock file
        cannot be created.
        """
        with ExitStack() as stack:
            with suppress(OSError):
                file = stack.enter_context(self.path.with_name(f"{self.path.name}.turn.lock").open("w"))
                while time.monotonic() < end:
                    with suppress(BlockingIOError):
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    time.sleep(POLL_SECONDS)
            yield

    def _checked(self, connection: Any) -> None:
        """Refuses tables of another version."""
        try:
            schema.check(schema.version_of(_runner(connection)))
        except schema.OtherSchema as error:
            connection.close()
            raise DatabaseError(f"{self.path}: {error}") from None

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with _database_errors():
            connection = self._opened().begin()
            try:
                yield connection
                connection.commit()
            except BaseException:
                with suppress(duckdb.Error):
                    connection.rollback()
                raise

    def _locked(self) -> Any:
        """A file that is locked as long as this process lives: the database itself is closed in between."""
        file = self.path.with_name(f"{self.path.name}.lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise DatabaseError(f"another process writes to {self.path}") from None
        return file


def insert(connection: Any, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows, or replaces those of the same key. They go there as one JSON document, with a list for
    each column, which DuckDB parses: a list of rows costs three times as much, binding each value a hundred
    times.
    """
    if not rows:
        return
    types = orjson.dumps({n: [_JSON_TYPES.get(k, k.upper())] for n, k in table.columns.items()}).decode()
    columns = {name: [row[name] for row in rows] for name in table.columns}
    names, lists = ", ".join(table.columns), ", ".join(f"unnest(c.{name})" for name in table.columns)
    connection.execute(
        f"INSERT INTO {table.name} ({names}) "
        f"SELECT {lists} FROM (SELECT from_json_strict(?::JSON, '{types}') AS c){table.upsert()}",
        [orjson.dumps(columns).decode()],
    )


def _take_in(path: Path, journal: Path) -> None:
    """Removes the journal of a closed file, which would be applied to the copy in its place. What can be read
    of it is in the file then; a process that was killed, or a power cut, may leave one of which nothing can,
    and DuckDB leaves that where it is.
    """
    with duckdb.connect(str(path)) as connection:
        connection.execute("CHECKPOINT")
    journal.unlink(missing_ok=True)
    sync(path.parent)


def _copy(path: Path, new: Path) -> None:
    """Writes the rows of a file into a new one. They are in a journal beside it until its last checkpoint,
    which fails without a word where the disk is full as the file is closed.
    """
    new.unlink(missing_ok=True)
    with duckdb.connect(str(new)) as connection:  # removes a journal that a killed process has left
        connection.execute(f"ATTACH {quoted(str(path))} AS kept (READ_ONLY)")
        name = connection.execute("SELECT current_database()").fetchall()[0][0]
        connection.execute(f'COPY FROM DATABASE kept TO "{name}"')
        connection.execute("DETACH kept")
        connection.execute("CHECKPOINT")


def _runner(connection: Any) -> schema.Run:
    def run(statement: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        return rows

    return run


def _fetched(cursor: Any) -> Iterator[tuple[Any, ...]]:
    with _database_errors():
        while chunk := cursor.fetchmany(CHUNK):
            yield from chunk


@contextmanager
def _database_errors() -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, schema.OtherSchema) as error:
        raise DatabaseError(first_line(error)) from None
