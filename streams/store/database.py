"""What every database of the store does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from streams.broker.topic_ids import TopicId
from streams.order import Revision
from streams.store.batches import Batch, Offsets
from streams.store.tables import Table


class DatabaseError(Exception):
    """The database cannot be opened, or refuses a statement; the message is one line for an operator."""


class DatabaseBusy(DatabaseError):
    """Other processes have it open for longer than is waited for; it can be tried again."""


class DatabaseAway(DatabaseError):
    """The server has ended the connection, or does not answer; `offsets` connects again."""


class Database(Protocol):
    """A store of reports. Every method raises DatabaseError."""

    def offsets(self) -> Offsets:
        """The offsets from which the consumer continues."""
        ...

    def topics(self) -> Mapping[str, TopicId]:
        """The ids of the topics that the offsets are of, as far as they are known."""
        ...

    def revisions(self, table: Table, ids: Sequence[str]) -> Mapping[tuple[str, str], Revision]:
        """The revisions of those rows that `table` has, REPORTS or SUMMARIES, deleted ones too; by the name
        of the table and the id.
        """
        ...

    def write(self, batch: Batch) -> None:
        """Applies a batch: all of it or nothing, or so that its repetition leaves what one leaves."""
        ...

    def query(self, sql: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        """Names of the columns, and the rows. Nothing can be written."""
        ...

    def rows(self, table: Table) -> Iterator[list[dict[str, Any]]]:
        """All rows of a table, in chunks."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """In its block `rows` and `query` give the tables as they were at one moment, where each query is
        read to its end before the next one; ClickHouse cannot do that.
        """
        ...

    def release(self) -> None:
        """Lets other processes use a database that only one can open; the next call opens it again."""
        ...

    def close(self) -> None: ...
