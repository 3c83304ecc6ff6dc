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

from streams.records import Origin
from streams.settings import Settings
from streams.store.clickhouse.tables import MIGRATIONS, STORED_REPORTS, STORED_SUMMARIES
from streams.store.database import DatabaseError
from streams.store.follow import Follower
from streams.store.open_database import open_database
from streams.store.schema import VERSION
from streams.store.tables import REPORTS, SUMMARIES, TABLES
from tests.streams.store.conftest import Open
from tests.streams.store.messages import event, message, report

#: The first version that has each of these columns.
FIRST = {"permalink": 2, "author_known": 2, "found": 2, "reading": 2, "indication": 3, "duplicate_of": 5,
         "country": 6, "case_fields": 6}  # fmt: skip
ROWS = (
    "INSERT INTO reports (id, text, report_group, deleted) VALUES ('old', 'kept', 'first', FALSE)",
    "INSERT INTO reports (id, source, text, summary, deleted, origin_topic, origin_partition, origin_offset, "
    "generations, releases) VALUES ('asked', 'questions', 'long', 'short?', FALSE, 'questions', 0, 4, "
    "'[0,0,0,0,9]', '{\"summarization\":\"000000000000\"}')",
    "INSERT INTO reports (id, deleted, origin_topic, origin_partition, origin_offset, generations, releases) "
    "VALUES ('gone', TRUE, 'questions', 0, 5, '[0,0,0,0,0]', '{}')",
    "INSERT INTO events (report_id, position, pt) VALUES ('old', 0, 'Nausea')",
    "INSERT INTO offsets VALUES ('events', 0, 5)",
)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A connection past the store."""
    connection: Any = psycopg.connect(address) if "://" in address else duckdb.connect(address)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def earlier(address: str, version: int) -> None:
    """The tables of a version before 4, with a post, its event, and a question."""
    with connected(address) as connection:
        for table in TABLES:
            if table is SUMMARIES:
                continue
            kept = {n: kind for n, kind in table.columns.items() if FIRST.get(n, 1) <= version}
            if table is REPORTS:
                kept["summary"] = "text"
            connection.execute(replace(table, columns=kept).ddl())
        if version > 1:
            connection.execute("CREATE TABLE schema_version (version bigint)")
            connection.execute(f"INSERT INTO schema_version VALUES ({version})")
        for statement in ROWS:
            connection.execute(statement)


def earlier_clickhouse(address: str, version: int) -> None:
    """The same in ClickHouse, from the tables as they are now."""
    columns = [name for name in REPORTS.columns if FIRST.get(name, 1) <= version]
    open_database(Settings(database=address), write=True).close()
    for statement in (
        "DROP VIEW reports", "DROP VIEW summaries", f"DROP TABLE {STORED_SUMMARIES}",
        f"ALTER TABLE {STORED_REPORTS} ADD COLUMN summary Nullable(String)",
        f"CREATE VIEW reports AS SELECT {', '.join(columns)}, summary FROM {STORED_REPORTS} FINAL",
        *(["ALTER TABLE stored_reports DROP COLUMN indication"] if version < FIRST["indication"] else []),
        "TRUNCATE TABLE schema_version", f"INSERT INTO schema_version VALUES ({version})",
        *(row.replace("INTO reports", f"INTO {STORED_REPORTS}") for row in ROWS if "reports" in row),
    ):  # fmt: skip
        execute(address, statement)


@pytest.mark.parametrize(("version", "again"), [(2, False), (2, True), (3, False)])
def test_the_short_questions_of_an_earlier_version_move_to_their_own_table(
    opened: Open, address: str, version: int, again: bool
) -> None:
    is_clickhouse = address.startswith("chdb:")
    (earlier_clickhouse if is_clickhouse else earlier)(address, version)
    with pytest.raises(DatabaseError, match="start `pvstream store`"):
        list(opened().query("SELECT 1")[1])
    if again and is_clickhouse:
        # Ended before its last statement.
        for statement in (*MIGRATIONS[2], *MIGRATIONS[3][:-1]):
            execute(address, statement)
    database = opened(write=True)
    assert list(database.query("SELECT id, summary, deleted FROM summaries ORDER BY id")[1]) == [
        ("asked", "short?", False), ("gone", None, True),
    ]  # fmt: skip
    repeated = database.query("SELECT id, duplicate_of FROM reports WHERE duplicate_of IS NOT NULL")[1]
    assert list(repeated) == [("old", "first")]
    assert "summary" not in database.query("SELECT * FROM reports")[0]
    # The record with the events of the same question is the first that replaces its row.
    made = replace(
        report("asked", 4, event(), source="questions", indication="gout"), origin=Origin("questions", 0, 4),
        releases={"ner": "1" * 12},
    )  # fmt: skip
    Follower(Settings(), database).apply([message(5, made)])
    joined = "reports r JOIN events ON r.id = report_id JOIN summaries s ON s.id = r.id"
    sql = f"SELECT r.text, indication, pt, summary FROM {joined}"
    assert list(database.query(sql)[1]) == [(made.text, "gout", "Nausea", "short?")]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("address", ["duckdb", "postgresql"], indirect=True)
def test_tables_of_an_earlier_version_are_brought_up_to_date_and_keep_their_rows(
    opened: Open, address: str, version: int
) -> None:
    earlier(address, version)
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
def test_a_first_start_that_ended_without_its_version_is_repeated(opened: Open, address: str) -> None:
    opened(write=True).close()
    execute(address, "TRUNCATE TABLE schema_version")
    opened(write=True).close()
    assert execute(address, "SELECT version FROM schema_version") == [(VERSION,)]


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
