"""The command `cases`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from streams.cli.groups import RESULTS, example
from streams.cli.store.commands import or_say, reading
from streams.cli.terminal import read_settings

app = typer.Typer()
cases = typer.Typer(help="Candidate cases for a person to assess: `export`.", no_args_is_help=True)
app.add_typer(cases, name="cases", rich_help_panel=RESULTS)


class Form(StrEnum):
    """How cases are printed."""

    JSON = "json"
    CSV = "csv"
    E2B = "e2b"


@cases.callback()
def _group() -> None:
    """Keeps `export` a command of its own."""


@cases.command(epilog=example("cases export --undecided --sort --format csv"))
def export(
    form: Annotated[
        Form,
        typer.Option(
            "--format", help="JSON Lines, CSV, or JSON Lines in elements of ICH E2B(R3): drafts, no messages"
        ),
    ] = Form.JSON,
    undecided: Annotated[
        bool, typer.Option("--undecided", help="also reports that nobody has reviewed")
    ] = False,
    sort: Annotated[bool, typer.Option("--sort", help="the most complete first, not by id")] = False,
    texts: Annotated[bool, typer.Option(help="whether to print texts and permalinks")] = True,
) -> None:
    """Prints a candidate case for each report with an event that a reviewer has kept.

    It has what the text states (age, dose, time to onset), the criteria of a valid report that are missing,
    and its completeness.
    """
    from streams.reviews import cases as made

    why = "no report has events" if undecided else "no report has an event that a reviewer has kept"
    with reading(read_settings()) as database:
        found = or_say(made.cases(database, undecided=undecided, texts=texts), why)
        chosen = made.by_completeness(found) if sort else found
        lines = {Form.CSV: made.csv_lines, Form.E2B: made.drafts, Form.JSON: made.json_lines}[form]
        sys.stdout.writelines(lines(chosen))
