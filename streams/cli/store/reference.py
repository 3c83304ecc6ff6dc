"""The command `reference`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from streams.cli.files import check_writable, write_whole
from streams.cli.groups import RESULTS, example
from streams.cli.store.commands import reading
from streams.cli.store.listed import TERMINOLOGY
from streams.cli.store.signals import LEAST, SOURCE
from streams.cli.terminal import err, out, read_settings, say

app = typer.Typer()
CHOSEN = Annotated[
    str, typer.Argument(help="omop, eu-adr, or a CSV file: drug, term, and label, which is known or control")
]
JSON = Annotated[Path | None, typer.Option("--json", help="write the figures here")]


@app.command(rich_help_panel=RESULTS, epilog=example("reference eu-adr --least 5"))
def reference(
    chosen: CHOSEN = "omop",
    source: SOURCE = None,
    least: LEAST = 3,
    terminology: TERMINOLOGY = None,
    json: JSON = None,
) -> None:
    """Tells how well the criteria find known effects of drugs in the database of PV_DATABASE.

    Each line of a file with an unknown name is printed and left out; then the exit code is 1.
    """
    from models.terminology import BUNDLED
    from models.terminology import load as load_terms
    from streams.signals.population import Population
    from streams.signals.reference import DEFINITIONS, SETS, bundled, compare, read

    check_writable(json=json)
    pairs, left_out = bundled(chosen), list[str]()
    if chosen not in SETS:
        terms = {t.llt.lower(): t.pt for t in load_terms(terminology or BUNDLED)}
        pairs, left_out = read(Path(chosen), terms)
    for message in left_out:
        say(f"left out, {message}", err)
    with reading(read_settings()) as database:
        figures = compare(database, pairs, Population(source=source), least)
    _print(figures)
    if json is not None:
        figures["definitions"] = DEFINITIONS
        write_whole(json, orjson.dumps(figures, option=orjson.OPT_INDENT_2) + b"\n")
    if left_out:
        raise typer.Exit(1)


def _print(figures: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table("counted", "criterion", "known", "controls", "sensitivity", "specificity", "AUC")
    for row in figures["rows"]:
        shares = ("-" if (v := row[n]) is None else f"{v:.3f}" for n in ("sensitivity", "specificity", "auc"))
        met = (f"{row[f'{kind}_met']} of {row[kind]}" for kind in ("known", "controls"))
        table.add_row(row["counted"], row["criterion"], *met, *shares)
    out.print(table)
    say(
        f"{figures['known']} known effects and {figures['controls']} controls; those with at least "
        f"{figures['least']} reports count. Shares of few pairs say little.",
        err,
    )
