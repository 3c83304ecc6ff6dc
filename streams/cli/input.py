"""How commands take files of texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from streams.cli.arguments import named_values
from streams.cli.files import check_writable

if TYPE_CHECKING:
    from models.files.columns import Columns
    from models.files.text_file import OpenFile
    from streams.dates import Doubt
    from streams.input_rows import RowReader

COLUMN = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="FIELD=NAME",
        help="the column that is a field (id, text, created_at, drug, indication), such as text=comment; "
        "repeatable",
    ),
]
ENCODING = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="encoding of the texts; by default UTF-8, UTF-16 or Windows-1252"),
]
DAY_FIRST = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first", help="what dates such as 3/4/2026 mean; by default they are left out"
    ),
]
REJECTED = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="write refused lines here, with their reasons, as JSON Lines"),
]
#: What the commands read, for their help.
FORMATS = "JSON Lines, JSON, CSV, Excel (.xlsx) or Parquet, also compressed"

_DOUBTS: dict[Doubt, str] = {
    "unreadable": "in no known form",
    "ambiguous": "with day or month first (say --day-first or --month-first)",
    "sentinel": "before 1905 or in January 1970, which programs write for no date",
    "future": "later than tomorrow",
}


@dataclass(frozen=True, slots=True)
class HowToRead:
    """What the user said of the files."""

    columns: Columns | None = None
    encoding: str | None = None
    day_first: bool | None = None
    rejected: Path | None = None
    """Where refused lines go."""

    def open(self, source: Path | BinaryIO) -> OpenFile:
        """Opens a file; raises UnreadableFile, and typer.BadParameter for a column that it lacks."""
        from models.files.row import UnknownColumn
        from models.files.text_file import open_file

        try:
            return open_file(source, self.columns, self.encoding)
        except UnknownColumn as error:
            raise typer.BadParameter(str(error), param_hint="--column") from None


#: Without options.
AS_IT_IS = HowToRead()


def how_to_read(
    columns: Iterable[str] | None,
    encoding: str | None,
    day_first: bool | None,
    rejected: Path | None,
    fields: Collection[str] = (),
) -> HowToRead:
    """The options of a command that reads these fields too; raises typer.BadParameter."""
    check_writable(rejected=rejected)
    _check_encoding(encoding)
    return HowToRead(_columns_of(columns or (), fields), encoding, day_first, rejected)


def _columns_of(items: Iterable[str], fields: Collection[str]) -> Columns:
    """FIELD=NAME items; raises typer.BadParameter."""
    from models.files.columns import Columns
    from streams.input_reports import PRODUCER_ORDER

    known = (*PRODUCER_ORDER, *fields)
    return Columns(named_values(items, "FIELD=NAME", known, "--column"), known)


def _check_encoding(name: str | None) -> None:
    """Raises typer.BadParameter for an encoding that Python lacks."""
    import codecs

    try:
        if name is not None:
            "a".encode(codecs.lookup(name).name)
    except LookupError:
        raise typer.BadParameter(f"{name!r} is no encoding of texts", param_hint="--encoding") from None


def notes(file: OpenFile, reader: RowReader) -> Iterator[str]:
    """What a user should know about how a file was read."""
    if file.described() != "JSON Lines":
        yield f"read as {file.described()}"
    if file.guessed_encoding:
        yield "the file is not in UTF-8; if letters are wrong, name its encoding with --encoding"
    if reader.dates_left_out:
        reasons = ", ".join(f"{n} {_DOUBTS[why]}" for why, n in reader.dates_left_out.most_common())
        yield f"dates left out, so that the time of receipt counts: {reasons}"
    if reader.ids_made:
        yield f"{reader.ids_made} ids made from the content of rows without one; equal rows have one id"
