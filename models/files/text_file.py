"""Opens a file of texts, finds what it is, and reads it row by row."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from models.files.columns import Columns
from models.files.content import check_content
from models.files.decoding import WINDOWS, Decoder
from models.files.delimited import SEPARATORS, delimited_rows, separated_by
from models.files.json_values import (
    LINES,
    WHOLE,
    json_form,
    json_lines_rows,
    named_rows,
    value_rows,
    whole_rows,
)
from models.files.row import Row
from models.files.tables import copied, parquet_rows, workbook_rows
from models.files.unpacked import (
    SAMPLE,
    Lines,
    Stream,
    decompressed,
    transcoded,
    wide_encoding,
    with_head,
    with_line_feeds,
)

#: Rows of JSON of which at least one must have a text.
_CHECKED = 100


@dataclass
class OpenFile:
    """A file whose form is known; `rows` can be read once, with bounded memory."""

    file: BinaryIO
    rows: Iterator[Row]
    form: str
    """Such as `CSV with semicolons`."""
    has_lines: bool
    """Whether the numbers of rows are those of lines."""
    compression: str = ""
    encoding: str = ""
    """Empty: UTF-8, or Windows-1252 where `decoder` met it."""
    decoder: Decoder | None = field(default=None, repr=False)
    copied_from: BinaryIO | None = field(default=None, repr=False)

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        if self.copied_from is not None:
            self.copied_from.close()

    @property
    def guessed_encoding(self) -> bool:
        """Whether letters were read as Windows-1252 because they were no UTF-8."""
        return self.decoder is not None and self.decoder.guessed

    def described(self) -> str:
        """What has been read, such as `CSV with semicolons, Windows-1252, gzip`."""
        encoding = WINDOWS if self.guessed_encoding else self.encoding.upper()
        return ", ".join(part for part in (self.form, encoding, self.compression) if part)


def open_file(
    source: Path | BinaryIO, columns: Columns | None = None, encoding: str | None = None
) -> OpenFile:
    """The rows of a file, or of a pipe, of which it reads no further than it must: JSON Lines, JSON (arrays,
    objects, pandas' tables), CSV, Excel or Parquet, whatever its name is.

    Raises UnreadableFile for a file of another kind or without a text, UnknownColumn for a chosen column that
    it lacks, and OSError.
    """
    path = source if isinstance(source, Path) else None
    raw = source.open("rb") if isinstance(source, Path) else source
    try:
        head, stream = with_head(raw, whole=path is not None)
        compression, stream = decompressed(head, stream)
        if compression:
            head, stream = with_head(stream, whole=path is not None)
        what = path.name if path is not None else "standard input"
        begun = _Begun(raw, path, head, stream, columns or Columns(), what)
        opened = _table(begun, bool(compression)) or _text(begun, encoding)
    except BaseException:
        raw.close()
        raise
    opened.compression = compression
    opened.rows = _with_damage(opened.rows, stream)
    return opened


@dataclass(frozen=True)
class _Begun:
    """A file of which the beginning has been read."""

    raw: BinaryIO
    path: Path | None
    head: bytes
    stream: Stream
    """The whole file."""
    columns: Columns
    what: str


def _table(begun: _Begun, packed: bool) -> OpenFile | None:
    """An Excel or Parquet file; None where it is neither."""
    what = begun.what
    if not begun.head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PAR1")):
        return None
    file = copied(begun.stream, what) if begun.path is None or packed else begun.raw
    if begun.head.startswith(b"PAR1"):
        rows, form = parquet_rows(Path(file.name), begun.columns, what), "Parquet"
    else:
        file.seek(0)
        sheet, rows = workbook_rows(file, begun.columns, what)
        form = f"Excel, sheet {sheet!r}"
    return OpenFile(file, rows, form, False, copied_from=None if file is begun.raw else begun.raw)


def _text(begun: _Begun, stated: str | None) -> OpenFile:
    """A file of lines or of JSON, in the encoding that is stated or found."""
    head, stream, is_file = begun.head, begun.stream, begun.path is not None
    encoding = stated or wide_encoding(head)
    if not wide_encoding(head):
        check_content(head, begun.what)
    if encoding and not _is_utf8(encoding):
        head, stream = with_head(transcoded(stream, encoding), whole=is_file)
        check_content(head, begun.what)
    if b"\r" in head and b"\n" not in head:
        head, stream = with_head(with_line_feeds(stream), whole=is_file)
    if not is_file and head.strip() in (b"{", b"["):
        head, stream = with_head(stream)
    decode = Decoder(head, strict=bool(encoding))
    form = json_form(head, is_file and len(head) < SAMPLE)
    if form is not None:
        rows = _json_rows(form, stream, decode, begun, head.count(b"\n"))
        return OpenFile(begun.raw, rows, form, form == LINES, encoding=encoding, decoder=decode)
    dialect = separated_by(decode_sample(head, decode), begun.columns)
    name = f"CSV with {SEPARATORS.get(dialect.separator, repr(dialect.separator))}"
    rows = delimited_rows(Lines(stream), decode, dialect, begun.columns, begun.what)
    return OpenFile(begun.raw, rows, name, True, encoding=encoding, decoder=decode)


def _json_rows(form: str, stream: Stream, decode: Decoder, begun: _Begun, n_lines: int) -> Iterator[Row]:
    if form == LINES:
        rows, checked = json_lines_rows(Lines(stream), decode), max(1, min(_CHECKED, n_lines))
    elif form == WHOLE:
        rows, checked = whole_rows(stream, decode, begun.what), _CHECKED
    else:
        rows, checked = value_rows(stream, decode, form), _CHECKED
    return named_rows(rows, begun.columns, begun.what, checked)


def decode_sample(head: bytes, decode: Decoder) -> str:
    """The whole lines of a sample, or all of it where it has one line."""
    whole = head[: head.rfind(b"\n") + 1] or head
    lines = []
    for line in whole.split(b"\n"):
        try:
            lines.append(decode(line))
        except UnicodeDecodeError:
            continue
    return "\n".join(lines)


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"}
    except LookupError:
        return False


def _with_damage(rows: Iterator[Row], stream: Stream) -> Iterator[Row]:
    """The rows, and a refused one for what is lost where the file was cut off."""
    last = Row(0, None)
    for row in rows:
        last = row
        yield row
    if stream.damage and last.reason != stream.damage:
        yield Row(last.number + 1, None, stream.damage)
