"""A store with reports of which the counts are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from streams.order import revision_of
from streams.records import CodedReport
from streams.settings import Settings
from streams.store.changes import Read, fold
from streams.store.database import Database
from streams.store.open_database import open_database
from streams.store.repeats import join_repeats
from streams.store.tables import REPORTS

Fill = Callable[[Sequence[CodedReport]], None]


@pytest.fixture
def database_path(tmp_path: Path) -> str:
    return str(tmp_path / "events.duckdb")


@pytest.fixture
def fill(database_path: str) -> Fill:
    """Writes reports into the store."""

    def write(reports: Sequence[CodedReport]) -> None:
        database = open_database(Settings(database=database_path), write=True)
        read = [Read(r.id, revision_of(r), r) for r in reports]
        batch = fold(read, database.revisions(REPORTS, [r.id for r in reports]))
        join_repeats(database, batch)
        database.write(batch)
        database.close()

    return write


@pytest.fixture
def stored(database_path: str, fill: Fill) -> Iterator[Database]:
    """The store, which `fill` created, for reading."""
    fill([])
    database = open_database(Settings(database=database_path))
    database.release()
    yield database
    database.close()
