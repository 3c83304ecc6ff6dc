"""What every database of the store does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from streams.broker.topic_ids import TopicId
from streams.order import Revision
from streams.store.changes import Batch, Offsets
from streams.store.rows import REVISION, revision_from
from streams.store.tables import OFFSETS, TOPICS, Table


class DatabaseError(Exception):
    """The database cannot be opened, or refuses a statement; the message is one line for an operator."""


class DatabaseBusy(DatabaseError):
    """Other processes have it open for longer than is waited for; it can be tried again."""


class DatabaseAway(DatabaseError):
    """The server has ended the connection, or does not answer; `offsets` connects again."""


class Database(ABC):
    """A store of reports. Every method raises DatabaseError."""

    def offsets(self) -> Offsets:
        """The offsets from which the consumer continues."""
        rows = self._all(f"SELECT {', '.join(OFFSETS.columns)} FROM {OFFSETS.name}")
        return {(topic, partition): offset for topic, partition, offset in rows}

    def topics(self) -> Mapping[str, TopicId]:
        """The ids of the topics that the offsets are of, as far as they are known."""
        rows = self._all(f"SELECT {', '.join(TOPICS.columns)} FROM {TOPICS.name}")
        return {topic: TopicId(cluster, id_) for topic, cluster, id_ in rows}

    def revisions(self, table: Table, ids: Sequence[str]) -> Mapping[tuple[str, str], Revision]:
        """The revisions of those rows that `table` has, REPORTS or SUMMARIES, deleted ones too; by the name
        of the table and the id.
        """
        rows = self._of_ids(f"SELECT id, {', '.join(REVISION)} FROM {table.name} WHERE id", ids)
        return {(table.name, row[0]): revision_from(row[1:]) for row in rows}

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Applies a batch: all of it or nothing, or so that its repetition leaves what one leaves."""

    @abstractmethod
    def query(self, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Names of the columns, and the rows. Nothing can be written."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """In its block each `query` gives the tables as they were at one moment, where it is read to its end
        before the next one; ClickHouse cannot do that. In DuckDB nobody writes while this process has the
        file open.
        """
        yield

    def release(self) -> None:  # noqa: B027  a server serves others meanwhile
        """Lets other processes use a database that only one can open; the next call opens it again."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _all(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """All rows of a query."""

    @abstractmethod
    def _of_ids(self, sql: str, ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query that ends in the column of the ids."""


def first_line(error: Exception) -> str:
    """The message of a driver without its details."""
    return str(error).split("\n", 1)[0]
