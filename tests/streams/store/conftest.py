"""One database of every kind, empty for each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from streams.settings import Settings
from streams.store.database import Database
from streams.store.open_database import open_database
from streams.store.tables import TABLES
from tests.postgres_server import PostgresUnavailable, postgres

Open = Callable[..., Database]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    try:
        with postgres() as url:
            yield url
    except PostgresUnavailable as reason:
        if os.environ.get("PV_REQUIRE_KAFKA") == "1":
            pytest.fail(str(reason))
        pytest.skip(str(reason))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows the topics writes soon."""
    monkeypatch.setattr("streams.store.follow.WAIT", 0.05)


@pytest.fixture(params=["duckdb", "postgresql", "clickhouse"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What PV_DATABASE is set to."""
    if request.param == "duckdb":
        return str(tmp_path / "events.duckdb")
    if request.param == "clickhouse":
        return f"chdb://{tmp_path / 'clickhouse'}"
    url = str(request.getfixturevalue("postgres_url"))
    with psycopg.connect(url, autocommit=True) as connection:
        names = ", ".join([*(table.name for table in TABLES), "schema_version"])
        connection.execute(f"DROP TABLE IF EXISTS {names}")
    return url


@pytest.fixture
def opened(address: str) -> Iterator[Open]:
    """Opens the database as a process would; all that were opened are closed at the end."""
    found: list[Database] = []

    def open_it(*, write: bool = False) -> Database:
        found.append(open_database(Settings(database=address), write=write))
        return found[-1]

    yield open_it
    for database in found:
        database.close()
