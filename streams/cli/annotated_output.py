"""What `pvstream annotate` writes: records as JSON Lines, or a row for each event as CSV or Parquet."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

import duckdb

from models.releases.store import sync
from streams.codec import encode
from streams.order import Revision
from streams.provenance import without_text
from streams.records import Report, Summary
from streams.store.csv_line import csv_line, no_formula
from streams.store.duckdb_file import insert
from streams.store.rows import Rows
from streams.store.tables import EVENTS, Table, quoted
from streams.topics import SUMMARIES

Format = Literal["jsonl", "csv", "parquet"]
#: A row for each event, with the columns of the table of events of the store but those of its reviews; ids of
#: reports without an event are in no row.
_EVENTS = Table("annotated", {n: kind for n, kind in EVENTS.columns.items() if n not in ("review", "found")})
#: A row for each question.
_SUMMARIES = Table(
    "annotated",
    {"report_id": "text", "text": "text", "summary": "text", "method": "text", "score": "double precision"},
)
Write = Callable[[Sequence[Report]], None]


@contextmanager
def writing(path: Path | None, form: Format, results: str) -> Iterator[Write]:
    """A function that writes records of the topic `results` to a file, or to standard output, which Parquet
    cannot go to. A file has its name when it is whole.
    """
    if path is None:
        with _writer(sys.stdout.buffer, form, results) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        new = Path(file.name)
        try:
            with _writer(file, form, results) as write:
                yield write
            file.flush()
            new.chmod(0o666 & ~_umask())
            sync(new)
            new.replace(path)
            sync(path.parent)
        finally:
            new.unlink(missing_ok=True)


@contextmanager
def _writer(file: IO[bytes], form: Format, results: str) -> Iterator[Write]:
    if form == "jsonl":
        yield partial(_write_json, file)
        return
    table = _SUMMARIES if results == SUMMARIES.name else _EVENTS
    if form == "csv":
        file.write(csv_line(table.columns).encode())
        yield partial(_write_csv, file, table)
        return
    with (
        tempfile.TemporaryDirectory(prefix="pvstream-annotate-") as folder,
        duckdb.connect(str(Path(folder) / "rows.duckdb")) as rows,
    ):
        rows.execute(table.ddl())
        yield lambda records: insert(rows, table, _rows(records))
        rows.execute(f"COPY {table.name} TO {quoted(file.name)} (FORMAT parquet, COMPRESSION zstd)")


def _write_json(file: IO[bytes], records: Sequence[Report]) -> None:
    file.writelines(encode(without_text(record)) + b"\n" for record in records)


def _write_csv(file: IO[bytes], table: Table, records: Sequence[Report]) -> None:
    for row in _rows(records):
        file.write(csv_line(_cell(row[name]) for name in table.columns).encode("utf-8", "replace"))


def _cell(value: Any) -> Any:
    return no_formula(value) if isinstance(value, str) else value


def _rows(records: Sequence[Report]) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for record in map(without_text, records):
        if isinstance(record, Summary):
            short = record.summary
            names = ("report_id", "text", "summary", "method", "score")
            values = (record.id, record.text, short.text, short.method, short.score)
            rows.append(dict(zip(names, values, strict=True)))
            continue
        tables = Rows()
        tables.add(record.id, Revision(), record)
        rows += tables.events
    return rows


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
