"""Writes the tables as Parquet files, one folder for each table and month."""

from __future__ import annotations

import tempfile
from contextlib import closing
from itertools import islice
from pathlib import Path

import duckdb

from models.releases.store import sync
from streams.store.database import Database, DatabaseError
from streams.store.duckdb_file import insert
from streams.store.tables import DATA, EVENTS, REPORTS, SUMMARIES, Table, quoted

#: Rows that are copied at once.
CHUNK = 10_000


def export(database: Database, folder: Path) -> dict[str, int]:
    """Writes `folder/TABLE/month=YYYY-MM/*.parquet`, by the month of the report; rows of reports without a
    time are in `month=unknown`. Returns the number of rows of each table. Deleted reports are left out.
    Raises DatabaseError, also where the folder has files already. A new folder is there when it is whole.
    """
    folder = folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        raise DatabaseError(f"{folder} is not empty")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A mounted folder is another file system than the one that it is in.
    beside = folder if folder.is_mount() else folder.parent
    with tempfile.TemporaryDirectory(prefix="pvstream-export-", dir=beside) as name, database.snapshot():
        new = Path(name) / "new"
        new.mkdir()
        written = _written(database, Path(name) / "copy.duckdb", new)
        _publish(new, folder)
    return written


def _written(database: Database, path: Path, new: Path) -> dict[str, int]:
    """Writes the tables into a folder, by way of a copy in a file."""
    # A copy, because only DuckDB writes Parquet, whichever database is exported.
    try:
        with closing(duckdb.connect(str(path))) as copy:
            return {table.name: _write(copy, database, table, new) for table in DATA}
    except duckdb.Error as error:
        raise DatabaseError(str(error).split("\n", 1)[0]) from None


def _publish(new: Path, folder: Path) -> None:
    """Gives the written folder its name at once; a folder that is there gets its tables one by one."""
    for path in new.rglob("*"):
        sync(path)
    if not folder.exists():
        new.replace(folder)
    else:
        for table in new.iterdir():
            table.replace(folder / table.name)
        sync(folder)
    sync(folder.parent)


def _write(copy: duckdb.DuckDBPyConnection, database: Database, table: Table, folder: Path) -> int:
    copy.execute(table.ddl())
    names, rows = database.query(f"SELECT {', '.join(table.columns)} FROM {table.name}")
    while chunk := [dict(zip(names, row, strict=True)) for row in islice(rows, CHUNK)]:
        insert(copy, table, chunk)
    time, source = "reported_at", table.name
    if table == EVENTS:
        source = (
            f"(SELECT e.*, r.reported_at FROM events e JOIN reports r ON e.report_id = r.id) AS {table.name}"
        )
    condition = "WHERE NOT deleted" if table in (REPORTS, SUMMARIES) else ""
    month = f"coalesce(strftime({time}, '%Y-%m'), 'unknown') AS month"
    done = copy.execute(
        f"COPY (SELECT *, {month} FROM {source} {condition}) TO {quoted(str(folder / table.name))} "
        "(FORMAT parquet, COMPRESSION zstd, PARTITION_BY (month))"
    ).fetchone()
    return int(done[0]) if done else 0
