"""CSV and its relatives: the separator is found, rows may have line feeds, no row is lost without a word."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from models.files.columns import Ambiguous, Columns, rename
from models.files.decoding import NOT_UTF8, TOO_LONG, Decoder
from models.files.row import MAX_LINE, Row, UnreadableFile
from models.files.unpacked import Lines

#: A field may be as long as a row.
csv.field_size_limit(MAX_LINE)
#: The FDA's quarterly files have dollar signs, older exports carets and tildes.
SEPARATORS = {
    ",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", "$": "dollar signs", "^": "carets",
    "~": "tildes",
}  # fmt: skip
#: Excel's first line that states the separator.
_SEP = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_UNCLOSED = "its quotation marks do not match"


@dataclass(frozen=True)
class Dialect:
    """How fields are separated and quoted."""

    separator: str
    quoted: bool = True
    escape: str | None = None
    """Before a quotation mark in a quoted field; by default that is doubled."""

    def fields(self, lines: Iterable[str]) -> list[str]:
        """The fields of the first row; raises csv.Error."""
        return next(
            csv.reader(
                lines,
                strict=True,
                delimiter=self.separator,
                quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
                escapechar=self.escape,
                doublequote=self.escape is None,
            )
        )


@dataclass(frozen=True)
class _Record:
    number: int
    fields: list[str]
    original: bytes
    reason: str = ""


def separated_by(sample: str, columns: Columns) -> Dialect:
    """The dialect in which the first line names the text and most rows have as many fields as it has."""
    lines = [line for line in sample.split("\n") if line.strip("\r ")]
    stated = _SEP.fullmatch(lines[0].strip()) if lines else None
    if stated:
        lines = lines[1:]
    candidates = []
    for separator in stated.group(1) if stated else SEPARATORS:
        candidates += [Dialect(separator)]
        candidates += [Dialect(separator, escape="\\")] if '\\"' in sample else []
        candidates += [Dialect(separator, quoted=False)] if separator == "\t" and '"' in sample else []
    return max(candidates, key=lambda dialect: _fit(dialect, lines, columns))


def _fit(dialect: Dialect, lines: Sequence[str], columns: Columns) -> tuple[bool, float, int]:
    """Whether the text is found, the share of rows that fit the first, and the number of columns."""
    rest = (line + "\n" for line in lines)
    sizes: list[int] = []
    found = False
    while True:
        try:
            fields = dialect.fields(rest)
        except StopIteration:
            break
        except csv.Error:
            sizes.append(-1)
            continue
        if not sizes:
            # A chosen name that is not there is reported later, with the columns that are.
            found = _names_text(fields, columns) or _names_text(fields, Columns())
        sizes.append(len(fields))
    fitting = sum(n == sizes[0] for n in sizes) / len(sizes) if sizes else 0.0
    return found, fitting, sizes[0] if sizes else 0


def _names_text(names: Sequence[str], columns: Columns) -> bool:
    try:
        return "text" in columns.fields(names).values()
    except Ambiguous:
        return True


def delimited_rows(
    lines: Lines, decode: Decoder, dialect: Dialect, columns: Columns, what: str
) -> Iterator[Row]:
    """The rows below the header; raises UnreadableFile before the first where the header is no use."""
    records = _records(lines, decode, dialect)
    header = next(records, None)
    if header and _SEP.fullmatch(header.original.decode("latin-1").removeprefix("\xef\xbb\xbf").strip()):
        header = next(records, None)
    if header is None:
        return iter(())
    if header.reason:
        raise UnreadableFile(f"{what}: the line with the names of its columns is refused: {header.reason}")
    names = [name.strip() or f"column_{i}" for i, name in enumerate(header.fields, 1)]
    found = columns.in_header(names, what)
    return (_row(record, names, found) for record in records)


def _row(record: _Record, names: Sequence[str], found: dict[str, str]) -> Row:
    fields, n = record.fields, len(names)
    reason = record.reason
    if not reason and len(fields) != n and (len(fields) < n or any(fields[n:])):
        reason = f"{len(fields)} fields, the header has {n}"
    if not reason and b"\0" in record.original:
        reason = "holds a NUL character"
    if reason:
        return Row(record.number, None, reason, record.original)
    content = {name: value for name, value in zip(names, fields, strict=False) if value.strip()}
    return Row(record.number, rename(content, found), "", record.original)


def _records(lines: Lines, decode: Decoder, dialect: Dialect) -> Iterator[_Record]:
    """The rows. Where quotation marks do not match, the first line is refused and reading goes on at the
    next, so that one mark does not take the rest of the file with it.
    """
    for number, line in lines:
        if not line.strip():
            continue
        if len(line) > MAX_LINE:
            yield _Record(number, [], line, TOO_LONG)
            continue
        taken = [(number, line)]
        try:
            fields = dialect.fields(_texts(taken, lines, decode))
        except UnicodeDecodeError:
            reason = NOT_UTF8 if len(taken) == 1 else _UNCLOSED
        except (csv.Error, StopIteration):
            reason = _UNCLOSED
        else:
            original = b"".join(part for _, part in taken)
            cut = lines.damage if lines.is_cut(original) else ""
            yield _Record(number, fields, original, cut)
            continue
        lines.give_back(taken[1:])
        yield _Record(number, [], line, reason)


def _texts(taken: list[tuple[int, bytes]], lines: Lines, decode: Decoder) -> Iterator[str]:
    """The lines of one row as they are asked for; what was asked for is added to `taken`."""
    yield decode(taken[0][1])
    size = len(taken[0][1])
    for number, line in lines:
        taken.append((number, line))
        size += len(line)
        if size > MAX_LINE:
            return
        yield decode(line)
