"""Tables of an earlier version are brought up to date, those of a later one refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import clickhouse_connect
import duckdb
import psycopg
import pytest

from streams.settings import Settings
from streams.store.database import DatabaseError
from streams.store.follow import Follower
from streams.store.opening import open_database
from streams.store.schema import VERSION
from streams.store.tables import TABLES
from tests.streams.store.conftest import Open
from tests.streams.store.messages import event, message, report

#: Columns that version 1 did not have.
LATER = {"permalink", "author_known", "found", "reading", "indication"}


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A connection past the store."""
    connection: Any = psycopg.connect(address) if "://" in address else duckdb.connect(address)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def first_version(address: str) -> None:
    """The tables of version 1, with a row in each."""
    with connected(address) as connection:
        for table in TABLES:
            kept = {name: kind for name, kind in table.columns.items() if name not in LATER}
            connection.execute(replace(table, columns=kept).ddl())
        connection.execute("INSERT INTO reports (id, text, deleted) VALUES ('old', 'kept', FALSE)")
        connection.execute("INSERT INTO events (report_id, position, pt) VALUES ('old', 0, 'Nausea')")
        connection.execute("INSERT INTO offsets VALUES ('events', 0, 5)")


@pytest.mark.parametrize("address", ["duckdb", "postgresql"], indirect=True)
def test_tables_of_the_first_version_are_brought_up_to_date_and_keep_their_rows(
    opened: Open, address: str
) -> None:
    first_version(address)
    with pytest.raises(DatabaseError, match="start `pvstream store`"):
        list(opened().query("SELECT 1")[1])
    database = opened(write=True)
    assert database.offsets() == {("events", 0): 5}
    sql = "SELECT text, permalink, indication, found FROM reports JOIN events ON id = report_id"
    assert list(database.query(sql)[1]) == [("kept", None, None, None)]
    made = report("new", 7, event(), permalink="https://example.org/7", indication="gout")
    Follower(Settings(), database).apply([message(5, made)])
    sql = "SELECT permalink, author_known, indication FROM reports WHERE id = 'new'"
    assert list(database.query(sql)[1]) == [("https://example.org/7", True, "gout")]
    assert list(database.query("SELECT * FROM schema_version")[1]) == [(VERSION,)]


def test_tables_of_a_later_version_are_refused(opened: Open, address: str) -> None:
    opened(write=True).close()
    execute(address, "INSERT INTO schema_version VALUES (99)")
    for write in (False, True):
        with pytest.raises(DatabaseError, match="version 99") as refused:
            list(open_database(Settings(database=address), write=write).query("SELECT 1")[1])
        assert "\n" not in str(refused.value)
    found = execute(address, "SELECT version FROM schema_version ORDER BY version")
    assert found == [(VERSION,), (99,)]


@pytest.mark.parametrize("address", ["clickhouse"], indirect=True)
def test_a_first_start_that_was_ended_before_it_stated_the_version_is_repeated(
    opened: Open, address: str
) -> None:
    opened(write=True).close()
    execute(address, "TRUNCATE TABLE schema_version")
    opened(write=True).close()
    assert execute(address, "SELECT version FROM schema_version") == [(VERSION,)]


@pytest.mark.parametrize("address", ["clickhouse"], indirect=True)
def test_views_of_the_second_version_are_made_anew_and_keep_their_rows(opened: Open, address: str) -> None:
    database = opened(write=True)
    Follower(Settings(), database).apply([message(5, report("old", 7, event()))])
    database.close()
    columns = ", ".join(name for name in TABLES[0].columns if name != "indication")
    for statement in (
        "DROP VIEW reports",
        "ALTER TABLE stored_reports DROP COLUMN indication",
        f"CREATE VIEW reports AS SELECT {columns} FROM stored_reports FINAL",
        "TRUNCATE TABLE schema_version",
        "INSERT INTO schema_version VALUES (2)",
    ):
        execute(address, statement)
    with pytest.raises(DatabaseError, match="start `pvstream store`"):
        opened()
    database = opened(write=True)
    Follower(Settings(), database).apply([message(6, report("new", 8, event(), indication="gout"))])
    sql = "SELECT id, indication FROM reports ORDER BY id"
    assert list(database.query(sql)[1]) == [("new", "gout"), ("old", None)]
    database.close()
    assert execute(address, "SELECT max(version) FROM schema_version") == [(VERSION,)]


def execute(address: str, sql: str) -> list[tuple[Any, ...]]:
    """A statement past the store."""
    if address.startswith("chdb:"):
        client = clickhouse_connect.get_client(dsn=address)
        found = client.query(sql).result_rows if sql.startswith("SELECT") else client.command(sql)
        client.close()
        return [tuple(row) for row in found] if isinstance(found, Sequence) else []
    with connected(address) as connection:
        cursor = connection.execute(sql)
        return list(cursor.fetchall()) if sql.startswith("SELECT") else []
