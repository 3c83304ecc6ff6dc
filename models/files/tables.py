"""Excel workbooks and Parquet files."""

from __future__ import annotations

import glob
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, BinaryIO

from models.files.columns import Columns, rename
from models.files.content import archive_kind
from models.files.row import Row, UnknownColumn, UnreadableFile, table_row
from models.files.unpacked import Stream

#: Most bytes of a table that came compressed or through a pipe: it is copied into a temporary file.
MAX_COPY = 1 << 30
#: Most bytes of a member of a workbook, unpacked: the texts of all cells are in memory.
MAX_MEMBER = 512 << 20
_BATCH = 500
_CHUNK = 1 << 20
#: What Excel shows where a formula has no value.
_ERRORS = frozenset({"#N/A", "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NULL!", "#NUM!"})
#: A carriage return in a cell.
_RETURN = "_x000D_"
_DAMAGED = "the file is damaged from here on; what follows is not read"


def copied(stream: Stream, what: str) -> BinaryIO:
    """A temporary file with the bytes of a stream, which is deleted when it is closed."""
    file = tempfile.NamedTemporaryFile()  # noqa: SIM115  closed by whoever reads it
    size = 0
    while chunk := stream.read(_CHUNK):
        size += file.write(chunk)
        if size > MAX_COPY or stream.damage:
            break
    if size > MAX_COPY or stream.damage:
        file.close()
        raise UnreadableFile(f"{what}: {stream.damage or f'more than {MAX_COPY >> 30} GiB unpacked'}")
    file.flush()
    file.seek(0)
    return file  # type: ignore[return-value]


def workbook_rows(file: BinaryIO, columns: Columns, what: str) -> tuple[str, Iterator[Row]]:
    """The first sheet with a text, and its rows. Raises UnreadableFile and UnknownColumn."""
    _check_archive(file, what)
    problem: Exception | None = None
    for sheet in _sheets(file, what):
        rows = _cells(sheet)
        header = next((row for row in rows if row.content), None)
        if header is None or header.content is None:
            problem = problem or UnreadableFile(f"{what} has no rows")
            continue
        names = {column: str(value).strip() for column, value in header.content.items() if str(value).strip()}
        try:
            found = columns.in_header(list(names.values()), what)
        except (UnreadableFile, UnknownColumn) as error:
            problem = problem or error
            continue
        return sheet.title, _named(rows, names, found)
    raise problem or UnreadableFile(f"{what} has no sheets with cells")


def _check_archive(file: BinaryIO, what: str) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise UnreadableFile(f"{what} is a damaged zip archive or Excel file") from None
    names = [member.filename for member in members]
    if "xl/workbook.xml" not in names:
        raise archive_kind(names, what)
    if any(
        member.file_size > MAX_MEMBER for member in members if not member.filename.startswith("xl/media/")
    ):
        raise UnreadableFile(f"{what} has more than {MAX_MEMBER >> 20} MiB of cells: save it as CSV")
    file.seek(0)


def _sheets(file: BinaryIO, what: str) -> Sequence[Any]:
    import openpyxl  # noqa: PLC0415  takes a third of a second

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of formats that only a screen needs
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
    except Exception:  # it raises what the parts of a damaged file happen to cause
        raise UnreadableFile(f"{what} is a damaged Excel file") from None
    return list(book.worksheets)


def _cells(sheet: Any) -> Iterator[Row]:
    """The rows of a sheet: values by number of the column; ends with a refused row where it is damaged."""
    sheet.reset_dimensions()  # some programs state wrong ones
    number = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, cells in enumerate(sheet.iter_rows(values_only=True), 1):
                values = {
                    str(i): value.replace(_RETURN, "\r") if isinstance(value, str) else _plain(value)
                    for i, value in enumerate(cells)
                    if value is not None and value not in _ERRORS
                }
                yield Row(number, values)
    except Exception:
        yield Row(number + 1, None, _DAMAGED)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date | time) else value


def _named(rows: Iterator[Row], names: dict[str, str], found: dict[str, str]) -> Iterator[Row]:
    for row in rows:
        if row.content is None:
            yield row
        elif row.content:
            values = {names.get(i, f"column_{int(i) + 1}"): value for i, value in row.content.items()}
            full = table_row(row.number, values)
            yield full._replace(content=rename(values, found))


def parquet_rows(path: Path, columns: Columns, what: str) -> Iterator[Row]:
    """The rows of a Parquet file, a part of it at a time; raises UnreadableFile and UnknownColumn."""
    import duckdb  # noqa: PLC0415

    # Nothing is downloaded, no other file is read, and a name is no pattern.
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "threads": 1,
    }
    connection = duckdb.connect(config=config)
    source = [glob.escape(os.path.abspath(path))]
    try:
        connection.execute("SET TimeZone = 'UTC'")
        described = connection.execute("SELECT * FROM read_parquet(?) LIMIT 0", source).description or []
        counted = connection.execute("SELECT count(*) FROM read_parquet(?)", source).fetchone()
        query = "SELECT CAST(to_json(t) AS VARCHAR) FROM read_parquet(?) AS t"
        cursor = connection.execute(query, source)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFile(f"{what} is a damaged or encrypted Parquet file: {reason[:200]}") from None
    found = columns.in_header([column[0] for column in described], what)
    return _batches(cursor, found, counted[0] if counted else 0)


def _batches(cursor: Any, found: dict[str, str], total: int) -> Iterator[Row]:
    import duckdb  # noqa: PLC0415

    number = 0
    try:
        while rows := cursor.fetchmany(_BATCH):
            for (text,) in rows:
                number += 1
                content = json.loads(text, parse_constant=lambda _: None)  # NaN of pandas
                content = {name: value for name, value in content.items() if value is not None}
                yield Row(number, rename(content, found), "", text.encode())
    except duckdb.Error:
        yield Row(number + 1, None, f"the file is damaged: its rows up to {total} are not read")
