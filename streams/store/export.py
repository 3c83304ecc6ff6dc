"""Writes the tables as Parquet files, one folder for each table and month."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb

from streams.store.database import Database, DatabaseError
from streams.store.duckdb_file import insert
from streams.store.tables import DATA, EVENTS, REPORTS, Table


def export(database: Database, folder: Path) -> dict[str, int]:
    """Writes `folder/TABLE/month=YYYY-MM/*.parquet`, by the month of the report; rows of reports without a
    time are in `month=unknown`. Returns the number of rows of each table. Deleted reports are left out.
    Raises DatabaseError, also where the folder has files already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise DatabaseError(f"{folder} is not empty")
    folder.mkdir(parents=True, exist_ok=True)
    # A copy, because only DuckDB writes Parquet, whichever database is exported.
    with tempfile.TemporaryDirectory(prefix="pvstream-export-", dir=folder.parent) as name:
        copy = duckdb.connect(str(Path(name) / "copy.duckdb"))
        try:
            return {table.name: _write(copy, database, table, folder) for table in DATA}
        finally:
            copy.close()


def _write(copy: duckdb.DuckDBPyConnection, database: Database, table: Table, folder: Path) -> int:
    copy.execute(table.ddl())
    for chunk in database.rows(table):
        insert(copy, table, chunk)
    time, source = "reported_at", table.name
    if table == EVENTS:
        source = (
            f"(SELECT e.*, r.reported_at FROM events e JOIN reports r ON e.report_id = r.id) AS {table.name}"
        )
    kept = "WHERE NOT deleted" if table == REPORTS else ""
    month = f"coalesce(strftime({time}, '%Y-%m'), 'unknown') AS month"
    done = copy.execute(
        f"COPY (SELECT *, {month} FROM {source} {kept}) TO '{_quoted(folder / table.name)}' "
        "(FORMAT parquet, COMPRESSION zstd, PARTITION_BY (month))"
    ).fetchone()
    return int(done[0]) if done else 0


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
