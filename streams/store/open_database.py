"""Opens the database that a URL names."""

from __future__ import annotations

from pathlib import Path

from streams.settings import Settings
from streams.store.database import Database, DatabaseError


def open_database(settings: Settings, *, write: bool = False) -> Database:
    """The database of PV_DATABASE. Only one process may have it open for writing; others may read."""
    url, extra = settings.database, "store"
    try:
        if url.startswith(("postgresql://", "postgres://")):
            from streams.store.postgres import PostgresDatabase  # noqa: PLC0415  an optional package

            return PostgresDatabase(url, settings.database_password.get_secret_value(), write=write)
        if url.startswith(("clickhouse://", "clickhouses://", "chdb://")):
            extra = "clickhouse"
            from streams.store.clickhouse.database import ClickHouseDatabase  # noqa: PLC0415  an optional package

            return ClickHouseDatabase(url, settings.database_password.get_secret_value(), write=write)
    except ModuleNotFoundError as missing:
        raise DatabaseError(
            f"{missing}; install it in the clone of pvstream: pip install -e '.[{extra}]'"
        ) from None
    from streams.store.duckdb_file import DuckDatabase  # noqa: PLC0415  it need not be there for the others

    return DuckDatabase(Path(url).expanduser(), write=write)
