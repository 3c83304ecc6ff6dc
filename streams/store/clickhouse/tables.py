"""The tables of the store in ClickHouse.

A report is one row with its events and pairs as arrays, so that one insert replaces all of it or nothing.
Rows are only added: of the rows of a key ReplacingMergeTree keeps the one of the highest version, in the
background, and FINAL reads only that one meanwhile. What a user reads are views with the names and columns of
the other databases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import orjson

from streams.store import schema
from streams.store.rows import SHARED, Row
from streams.store.tables import EVENTS, OFFSETS, PAIRS, REPORTS, REVIEWS, SUMMARIES, TOPICS, Kind, Table

TYPES: dict[Kind, str] = {
    "text": "String", "bigint": "Int64", "double precision": "Float64", "boolean": "Bool",
    "timestamp": "DateTime64(6, 'UTC')",
}  # fmt: skip
#: Names of the arrays in a report; of a pair without what the report has itself.
_EVENT = [name for name in EVENTS.columns if name != "report_id"]
_PAIR = [name for name in PAIRS.columns if name != "report_id" and name not in SHARED]
#: Parts older than an hour are merged, which removes replaced and deleted texts from the disk.
_MERGED = "min_age_to_force_merge_seconds = 3600"


def stored(table: Table) -> str:
    """The table of the rows that the view of this name is of."""
    return f"stored_{table.name}"


STORED_REPORTS, STORED_SUMMARIES = stored(REPORTS), stored(SUMMARIES)


def statements(current: int | None) -> Iterator[str]:
    """What brings tables of the version `current` up to date, and creates what is missing, views too."""
    for version in range(current or schema.VERSION, schema.VERSION):
        yield from MIGRATIONS[version]
    arrays = [
        f"`{table.name}.{name}` Array(Nullable({TYPES[table.columns[name]]}))"
        for table, names in ((EVENTS, _EVENT), (PAIRS, _PAIR))
        for name in names
    ]
    physical = (REPORTS, SUMMARIES, REVIEWS, OFFSETS, TOPICS)
    for table in physical:
        yield _table(table, arrays if table is REPORTS else ())
    yield "CREATE TABLE IF NOT EXISTS schema_version (version Int64) ENGINE = MergeTree ORDER BY version"
    for table in physical:
        names = ", ".join(table.columns)
        yield f"CREATE VIEW IF NOT EXISTS {table.name} AS SELECT {names} FROM {stored(table)} FINAL"
    yield _view(EVENTS, _EVENT, ())
    yield _view(PAIRS, _PAIR, SHARED)


def report_lines(
    reports: Sequence[Row], events: Sequence[Row], pairs: Sequence[Row], version: int
) -> Iterator[bytes]:
    """Rows of STORED_REPORTS as JSON, from the rows of the three tables."""
    nested: dict[str, dict[str, list[Row]]] = {EVENTS.name: defaultdict(list), PAIRS.name: defaultdict(list)}
    for table, rows in ((EVENTS, events), (PAIRS, pairs)):
        for row in rows:
            nested[table.name][row["report_id"]].append(row)
    for report in reports:
        line = {name: report[name] for name in REPORTS.columns} | {"version": version}
        for table, names in ((EVENTS, _EVENT), (PAIRS, _PAIR)):
            children = nested[table.name].get(report["id"], [])
            line |= {f"{table.name}.{name}": [row[name] for row in children] for name in names}
        yield orjson.dumps(line)


def lines(rows: Sequence[Row], version: int) -> Iterator[bytes]:
    """Rows of another table as JSON."""
    for row in rows:
        yield orjson.dumps(row | {"version": version})


def _table(table: Table, arrays: Sequence[str] = ()) -> str:
    columns = [
        f"{column} {TYPES[kind] if column in table.key else f'Nullable({TYPES[kind]})'}"
        for column, kind in table.columns.items()
    ]
    return (
        f"CREATE TABLE IF NOT EXISTS {stored(table)} ({', '.join([*columns, *arrays, 'version UInt64'])}) "
        f"ENGINE = ReplacingMergeTree(version) ORDER BY ({', '.join(table.key)}) SETTINGS {_MERGED}"
    )


def _view(table: Table, names: Sequence[str], shared: Sequence[str]) -> str:
    """A view with one row for each element of the arrays."""
    columns = {"report_id": "id"} | {name: name for name in shared} | {name: f"own_{name}" for name in names}
    chosen = ", ".join(f"{columns[name]} AS {name}" for name in table.columns)
    arrays = ", ".join(f"`{table.name}.{name}` AS own_{name}" for name in names)
    return (
        f"CREATE VIEW IF NOT EXISTS {table.name} AS SELECT {chosen} FROM {STORED_REPORTS} FINAL "
        f"ARRAY JOIN {arrays}"
    )


#: What brings the tables from each earlier version to the next; each statement may be run again.
MIGRATIONS: dict[int, tuple[str, ...]] = {
    2: (
        f"ALTER TABLE {STORED_REPORTS} ADD COLUMN IF NOT EXISTS indication Nullable(String)",
        f"DROP VIEW IF EXISTS {REPORTS.name}",
    ),
    3: (
        _table(SUMMARIES),
        f"ALTER TABLE {STORED_REPORTS} ADD COLUMN IF NOT EXISTS summary Nullable(String)",
        f"INSERT INTO {STORED_SUMMARIES} ({', '.join(SUMMARIES.columns)}, version) "
        + schema.MOVED.replace(" FROM reports ", f", version FROM {STORED_REPORTS} FINAL "),
        f"ALTER TABLE {STORED_REPORTS} UPDATE {schema.REPLACEABLE} SETTINGS mutations_sync = 2",
        f"DROP VIEW IF EXISTS {REPORTS.name}",
        f"ALTER TABLE {STORED_REPORTS} DROP COLUMN summary",
    ),
    4: (
        f"ALTER TABLE {STORED_REPORTS} ADD COLUMN IF NOT EXISTS duplicate_of Nullable(String)",
        f"ALTER TABLE {STORED_REPORTS} UPDATE {schema.REPEATS} SETTINGS mutations_sync = 2",
        f"DROP VIEW IF EXISTS {REPORTS.name}",
    ),
    5: (
        f"ALTER TABLE {STORED_REPORTS} ADD COLUMN IF NOT EXISTS country Nullable(String)",
        f"ALTER TABLE {STORED_REPORTS} ADD COLUMN IF NOT EXISTS case_fields Nullable(String)",
        f"DROP VIEW IF EXISTS {REPORTS.name}",
    ),
}
