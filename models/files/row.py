"""What all readers of files give and raise."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

#: Most bytes of a line, of a row of CSV and of an element of JSON; longer ones are refused and skipped.
MAX_LINE = (1 << 20) - 4096


class UnreadableFile(ValueError):
    """The file as a whole is not what can be read; names it and says what to do."""


class UnknownColumn(ValueError):
    """The user named a column that the file does not have."""


class Row(NamedTuple):
    """A line of a file, or a row of a table."""

    number: int
    """Of the line where it begins, or of the row where the form has no lines; from 1."""
    content: dict[str, Any] | None
    """Values by field; None where the row is refused. Has `id` where the file has ids, if only as None."""
    reason: str = ""
    """Why it is refused; quotes nothing of it."""
    original: bytes = b""
    """As it is in the file; of a table as JSON."""


def table_row(number: int, values: dict[str, Any]) -> Row:
    """A row of a form that has no lines; a value that JSON lacks is written as text."""
    return Row(number, values, "", orjson.dumps(values, default=str, option=orjson.OPT_NON_STR_KEYS))
