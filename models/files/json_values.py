"""JSON as people have it: a line for each object, arrays, pretty-printed, and pandas' tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import orjson

from models.files.columns import Ambiguous, Columns
from models.files.decoding import NOT_UTF8, TOO_LONG, Decoder
from models.files.row import MAX_LINE, Row, UnreadableFile, table_row
from models.files.unpacked import Lines, Stream

#: Most bytes of a file that is one object with all of its rows, which is read as a whole.
MAX_WHOLE = 128 << 20
_CHUNK = 65_536
_LAST_ASCII = 0x7F
_BETWEEN = re.compile(r"[\s,]*")
_SPACE = re.compile(r"\s*")
#: How a table begins that is one object: its first value is a list or an object.
_TABLE = re.compile(rb'\s*\{\s*"[^"]{0,200}"\s*:\s*[\[{]')
_INVALID = "Invalid JSON"
_MISSING = "no field is known to hold the text: name it with --column text=NAME"
LINES, ARRAY, OBJECTS, WHOLE = "JSON Lines", "JSON array", "JSON objects", "JSON table"


def json_form(sample: bytes, is_whole: bool) -> str | None:
    """The form of JSON of a file by its beginning, if any. `is_whole`: the sample is the file."""
    start = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line for line in start.split(b"\n") if line.strip()]
    complete = lines if is_whole or start.endswith(b"\n") else lines[:-1]
    objects = [value for line in complete if isinstance(value := _loaded(line), dict)]
    if start.startswith(b"[") and not (objects and _loaded(lines[0]) is not None):
        return ARRAY
    if not start.startswith(b"{"):
        return LINES if objects else None
    if objects:
        only = len(lines) == 1 and _has_rows(objects[0])
        return WHOLE if only else LINES
    if len(lines) == 1 and not is_whole:
        return WHOLE if _TABLE.match(start) else LINES
    if lines[0].rstrip().endswith(b"}"):
        return LINES
    return OBJECTS if _first_object_ends(start) else WHOLE


def _loaded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _first_object_ends(start: bytes) -> bool:
    """Whether the first object is complete and no table; what follows is then another object, or nothing."""
    try:
        value, _ = json.JSONDecoder().raw_decode(start.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return not _has_rows(value)


def json_lines_rows(lines: Lines, decode: Decoder) -> Iterator[Row]:
    """A row for each line that is not empty."""
    for number, line in lines:
        if len(line) > MAX_LINE:
            yield Row(number, None, TOO_LONG, line)
        elif line.strip():
            row = _row(number, line, decode)
            yield Row(number, None, lines.damage, line) if row.reason and lines.is_cut(line) else row


def _row(number: int, data: bytes, decode: Decoder) -> Row:
    try:
        content = orjson.loads(decode(data))
    except UnicodeDecodeError:
        return Row(number, None, NOT_UTF8, data)
    except orjson.JSONDecodeError:
        return Row(number, None, _INVALID, data)
    if not isinstance(content, dict):
        return Row(number, None, "Input should be an object", data)
    return Row(number, content, "", data)


class _Text:
    """The text of a stream in a window that moves over it. What is not UTF-8 stays as it is in bytes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._read = (chunk.decode("utf-8", "surrogateescape") for chunk in _whole_characters(stream))
        self.text, self.place = "", 0
        self.more()

    def more(self) -> bool:
        """Adds to the window; false at the end."""
        chunk = next(self._read, "")
        self.text, self.place = self.text[self.place :] + chunk, 0
        return bool(chunk)

    def skip(self, pattern: re.Pattern[str]) -> str:
        """Goes behind what matches; returns the character there, empty at the end."""
        while True:
            found = pattern.match(self.text, self.place)
            self.place = found.end() if found else self.place
            if self.place < len(self.text) or not self.more():
                return self.text[self.place : self.place + 1]


def _whole_characters(stream: Stream) -> Iterator[bytes]:
    """Chunks that end at a line or with ASCII, so that none divides a character."""
    left = b""
    while chunk := stream.read(_CHUNK):
        chunk = left + chunk
        end = len(chunk)
        while end > 0 and chunk[end - 1] > _LAST_ASCII and len(chunk) - end < _CHUNK:
            end -= 1
        chunk, left = chunk[:end], chunk[end:]
        if chunk:
            yield chunk
    if left:
        yield left


def value_rows(stream: Stream, decode: Decoder, form: str) -> Iterator[Row]:
    """A row for each object of an array, or of objects one after the other. Reads them one by one; where
    the text is no JSON it ends with a refused row.
    """
    window, scan, number = _Text(stream), json.JSONDecoder().raw_decode, 0
    window.skip(re.compile(r"\ufeff?\s*\[?" if form == ARRAY else r"\ufeff?"))
    while (start := window.skip(_BETWEEN)) and not (start == "]" and form == ARRAY):
        number += 1
        end = _end_of_value(window, scan)
        if end is None:
            rest = window.text[window.place : window.place + MAX_LINE]
            yield Row(number, None, stream.damage or _BROKEN, _bytes(rest))
            return
        value, window.place = window.text[window.place : end], end
        data = _bytes(value)
        yield Row(number, None, TOO_LONG, data) if len(data) > MAX_LINE else _row(number, data, decode)
    if form == ARRAY and not start and not stream.damage:
        yield Row(number + 1, None, "the file ends within the array")
    if start and (window.skip(re.compile(r"\]?\s*")) or window.text[window.place :]):
        yield Row(number + 1, None, _BROKEN, _bytes(window.text[window.place :]))


_BROKEN = "no JSON from here on; what follows is not read"


def _end_of_value(window: _Text, scan: Callable[[str, int], tuple[Any, int]]) -> int | None:
    """Where the value at the window's place ends; None where there is none, or a longer one than a record."""
    while True:
        try:
            _, end = scan(window.text, window.place)
            # A number may go on in the next chunk.
            if end < len(window.text) or not window.more():
                return end
        except RecursionError:
            return None
        except ValueError:
            if len(window.text) - window.place > 2 * MAX_LINE or not window.more():
                return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def whole_rows(stream: Stream, decode: Decoder, what: str) -> Iterator[Row]:
    """The rows of a table that is one object; raises UnreadableFile."""
    parts, size = [], 0
    while size <= MAX_WHOLE and (chunk := stream.read(_CHUNK)):
        parts.append(chunk)
        size += len(chunk)
    if size > MAX_WHOLE:
        raise UnreadableFile(
            f"{what} is one JSON object of more than {MAX_WHOLE >> 20} MiB: write it as JSON Lines, "
            f"in pandas to_json(orient='records', lines=True)"
        )
    if stream.damage:
        raise UnreadableFile(f"{what}: {stream.damage}")
    try:
        table = orjson.loads(decode(b"".join(parts)))
    except UnicodeDecodeError:
        raise UnreadableFile(f"{what} is {NOT_UTF8}") from None
    except orjson.JSONDecodeError as error:
        raise UnreadableFile(f"{what} is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise UnreadableFile(f"{what} is JSON without objects")
    for number, content in enumerate(_table_rows(table), 1):
        if isinstance(content, dict):
            yield table_row(number, content)
        else:
            yield Row(number, None, "Input should be an object", orjson.dumps(content))


def _has_rows(value: Any) -> bool:
    """Whether an object is a table: pandas' split form, objects or lists of equal length for each column or
    row, or one list of objects among other fields.
    """
    if not isinstance(value, dict) or not value:
        return False
    return _is_split(value) or _is_nested(value) or _listed_objects(value) is not None


def _is_split(value: dict[str, Any]) -> bool:
    return isinstance(value.get("columns"), list) and isinstance(value.get("data"), list)


def _is_nested(value: dict[str, Any]) -> bool:
    parts = list(value.values())
    if all(isinstance(part, list) for part in parts):
        # An object whose only field is a list of objects is an envelope.
        return len({len(part) for part in parts}) == 1 and _listed_objects(value) is None
    return all(isinstance(part, dict) for part in parts)


def _listed_objects(value: dict[str, Any]) -> list[Any] | None:
    lists = [p for p in value.values() if isinstance(p, list) and p and all(isinstance(r, dict) for r in p)]
    strings = "text" in value and isinstance(value["text"], str)
    return lists[0] if len(lists) == 1 and not strings else None


def _table_rows(table: dict[str, Any]) -> Iterator[Any]:
    if _is_split(table):
        names = [str(name) for name in table["columns"]]
        for row in table["data"]:
            whole = isinstance(row, list) and len(row) == len(names)
            yield dict(zip(names, row, strict=True)) if whole else row
    elif (listed := _listed_objects(table)) is not None:
        yield from listed
    elif table and all(isinstance(part, list) for part in table.values()) and _is_nested(table):
        for values in zip(*table.values(), strict=True):
            yield dict(zip(table, values, strict=True))
    elif table and all(isinstance(part, dict) for part in table.values()):
        yield from _nested(table)
    else:
        yield table


def _nested(table: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows from {column: {row: value}}, or from {row: {column: value}} where the inner names are columns."""
    inner = dict.fromkeys(name for part in table.values() for name in part)
    if not _looks_like_index(inner) and _looks_like_index(table):
        yield from table.values()
        return
    for row in inner:
        yield {column: part[row] for column, part in table.items() if row in part}


def _looks_like_index(names: Iterable[str]) -> bool:
    return all(name.isdecimal() for name in names)


def named_rows(rows: Iterator[Row], columns: Columns, what: str, checked: int) -> Iterator[Row]:
    """The rows with fields in place of their names; where one of the first `checked` has an id, all have the
    field. Raises UnreadableFile, before the first, where none of these has a text.
    """
    first = [_named(row, columns) for row in islice(rows, checked)]
    contents = [row.content for row in first if row.content is not None]
    has_ids = any("id" in content for content in contents)
    if contents and not any("text" in content for content in contents):
        columns.in_header(list(contents[0]), what)
        raise UnreadableFile(f"{what}: {_MISSING}")

    def all_rows() -> Iterator[Row]:
        for row in chain(first, (_named(row, columns) for row in rows)):
            if has_ids and row.content is not None:
                row.content.setdefault("id", None)
            yield row

    return all_rows()


def _named(row: Row, columns: Columns) -> Row:
    if row.content is None:
        return row
    try:
        return row._replace(content=columns.named(row.content))
    except Ambiguous as error:
        return row._replace(content=None, reason=str(error))
