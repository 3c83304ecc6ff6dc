"""What all commands share: the two consoles, a progress bar, and the settings from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson
import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich import table
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderResult
from rich.measure import measure_renderables
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

#: Characters: more than any table has, and few enough for a progress bar.
UNLIMITED = 100_000

if TYPE_CHECKING:
    from streams.settings import Settings


class _Console(Console):
    """Without a terminal it has no limit of width: a table that is written into a file keeps its data."""

    @property
    def size(self) -> ConsoleDimensions:
        if self.is_terminal or "COLUMNS" in os.environ:
            return super().size
        return ConsoleDimensions(UNLIMITED, super().size.height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size


class Table(table.Table):
    """A table that breaks no word where the longest words of all columns fit beside each other, and never
    leaves letters out.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = ([column.header, *column.cells] for column in self.columns)
        widths = [measure_renderables(console, options, column) for column in cells]
        # Each column has a line and a blank on its left, and a blank on its right.
        free = options.max_width - 3 * len(widths) - 1 - sum(width.minimum for width in widths)
        wanted = sum(width.span for width in widths)
        for column, width in zip(self.columns, widths, strict=True):
            column.overflow = "fold"
            if 0 <= free < wanted:
                column.width = width.minimum + free * width.span // wanted
        return super().__rich_console__(console, options)


out = _Console()
err = _Console(stderr=True)


def say(text: str, console: Console = out) -> None:
    """Prints a text as it is, which a terminal wraps."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def print_json(content: Any, console: Console = out) -> None:
    console.out(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode(), highlight=False)


def read_settings() -> Settings:
    """The settings from the environment; raises typer.BadParameter naming the first invalid variable."""
    from streams.settings import Settings

    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        name = "_".join(str(part) for part in first["loc"]).upper()
        # An error about several variables names them itself.
        raise typer.BadParameter(f"PV_{name}: {message}" if name else message) from None
    except SettingsError as error:
        raise typer.BadParameter(f"{error}: it must be JSON") from None


def broker_settings() -> Settings:
    """The settings, for commands that need a broker outside this process; raises typer.BadParameter."""
    from streams.settings import EMBEDDED

    settings = read_settings()
    if settings.broker == EMBEDDED:
        raise typer.BadParameter(
            "set PV_BROKER=kafka://host:port; `pvstream up` prints the address of its embedded broker"
        )
    return settings


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int | None], None]]:
    """Shows a progress bar for the block, which calls what it gets with (done, total or None)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task(description, total=None)

        def update(done: int, total: int | None) -> None:
            progress.update(bar, completed=done, total=total)

        yield update
