"""Commands about the store: store, query, export."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import orjson
import typer

from streams.cli.arguments import MOST
from streams.cli.groups import RESULTS, example
from streams.cli.terminal import Table, broker_settings, err, out, read_settings, say
from streams.stopping import at_signals, freeze

if TYPE_CHECKING:
    from streams.settings import Settings
    from streams.store.database import Database

T = TypeVar("T")
app = typer.Typer()


@app.command(rich_help_panel=RESULTS, epilog=example("store --until-end"))
def store(
    until_end: Annotated[
        bool, typer.Option("--until-end", help="stop at the present end of the topics, not at Ctrl-C")
    ] = False,
    accept_topics: Annotated[
        bool,
        typer.Option(
            "--accept-topics",
            help="read topics from their beginning that are not those the database was filled from",
        ),
    ] = False,
) -> None:
    """Writes `events`, `summaries` and `reviews` into the database of PV_DATABASE.

    It continues where it stopped last.
    """
    counts = asyncio.run(_follow(broker_settings(), until_end=until_end, accept_topics=accept_topics))
    say(", ".join(f"{n} {name}" for name, n in counts.items()) or "nothing to write", err)


async def _follow(settings: Settings, *, until_end: bool, accept_topics: bool) -> dict[str, int]:
    from streams.store.follow import Follower
    from streams.store.open_database import open_database

    freeze()
    stop = asyncio.Event()
    at_signals(stop.set)
    database = open_database(settings, write=True)
    try:
        follower = Follower(settings, database, accept_topics=accept_topics)
        await follower.run(stop, until_end=until_end)
    finally:
        database.close()
    return dict(follower.counts)


@app.command(
    rich_help_panel=RESULTS, epilog=example("query 'SELECT pt, count(*) FROM events GROUP BY pt' --csv")
)
def query(
    sql: Annotated[str, typer.Argument(help="one SELECT over the tables reports, events and pairs")],
    limit: Annotated[int, typer.Option(min=0, max=MOST, help="maximum number of rows printed; 0: all")] = 100,
    json: Annotated[bool, typer.Option("--json", help="print the rows as JSON Lines")] = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="print the rows as CSV, with an apostrophe before what would be a formula"
        ),
    ] = False,
) -> None:
    """Runs one SELECT on the database of PV_DATABASE, read only."""
    with reading(read_settings()) as database:
        names, rows = database.query(sql)
        shown = list(islice(rows, limit + 1 if limit else None))
    more, shown = bool(limit) and len(shown) > limit, shown[: limit or None]
    if json:
        sys.stdout.writelines(_json_lines(names, shown))
    elif as_csv:
        from streams.store.csv_line import csv_line, no_formula

        cells = ((_plain(cell) for cell in row) for row in [names, *shown])
        lines = ([no_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in cells)
        sys.stdout.writelines(csv_line(line) for line in lines)
    else:
        _print(names, shown)
    if more:
        say(f"only the first {limit} rows; --limit 0 prints all", err)


@app.command(rich_help_panel=RESULTS, epilog=example("export parquet"))
def export(
    folder: Annotated[Path, typer.Argument(help="new folder; gets one folder for each table and month")],
) -> None:
    """Writes the tables of the database of PV_DATABASE as Parquet files, partitioned by month."""
    from streams.store.export import export as write

    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise typer.BadParameter(f"{folder} is not a new or empty folder", param_hint="FOLDER")
    with reading(read_settings()) as database:
        written = write(database, folder)
    say(", ".join(f"{n} rows of {name}" for name, n in written.items()))


@contextmanager
def reading(settings: Settings) -> Iterator[Database]:
    """The database, read only, while the block runs."""
    from streams.store.open_database import open_database

    database = open_database(settings)
    try:
        yield database
    finally:
        database.close()


def or_say(rows: Iterable[T], why: str) -> Iterator[T]:
    """Yields all of `rows`; writes a line on standard error where that is nothing."""
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        say(f"nothing to export: {why}", err)


def _json_lines(names: list[str], rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """Raises typer.BadParameter where two columns have one name: an object would have one of them."""
    if again := [name for i, name in enumerate(names) if name in names[:i]]:
        raise typer.BadParameter(f"two columns are named {again[0]!r}; rename one", param_hint="--json")
    for row in rows:
        cells = dict(zip(names, map(_json_cell, row), strict=True))
        yield orjson.dumps(cells, default=str, option=orjson.OPT_NON_STR_KEYS).decode() + "\n"


def _json_cell(cell: Any) -> Any:
    """An integer that has more than 64 bits, which DuckDB knows, as a text, as decimal numbers are."""
    return str(cell) if isinstance(cell, int) and not -(2**63) <= cell < 2**64 else cell


def _print(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    from streams.cli.display import plain_text

    table = Table(*names)
    for row in rows:
        table.add_row(*(plain_text("" if cell is None else str(_plain(cell))) for cell in row))
    out.print(table)


def _plain(cell: Any) -> Any:
    return cell.isoformat(timespec="seconds") if isinstance(cell, datetime) else cell
