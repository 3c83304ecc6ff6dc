"""The command `listed`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streams.cli.files import write_whole
from streams.cli.groups import RESULTS, example
from streams.cli.terminal import err, read_settings, say

if TYPE_CHECKING:
    from streams.settings import Settings
    from streams.signals.lists import Loaded

app = typer.Typer()
FILE = Annotated[
    Path | None, typer.Option("--load", help="CSV with the columns drug and term: what the labels list")
]
LISTS = Annotated[
    Path | None,
    typer.Option(
        "--lists", help="CSV with the columns list (designated, serious, pregnancy or misuse) and term"
    ),
]
TERMINOLOGY = Annotated[
    Path | None, typer.Option(exists=True, help="TSV table or MedDRA folder; by default the bundled one")
]


@app.command(rich_help_panel=RESULTS, epilog=example("listed"))
def listed(load: FILE = None, lists: LISTS = None, terminology: TERMINOLOGY = None) -> None:
    """Keeps in PV_STATE which terms the label of each drug lists, and lists of terms, for the signals.

    A file replaces the one before. Each line with an unknown name is printed and left out; then the exit code
    is 1.
    """
    from models.drugs import DrugLexicon
    from models.terminology import BUNDLED
    from models.terminology import load as load_terms
    from streams.signals.lists import LABELS_FILE, LISTS, LISTS_FILE, read
    from streams.signals.lists import load as load_lists

    settings, left_out = read_settings(), 0
    terms = {t.llt.lower(): t.pt for t in load_terms(terminology or BUNDLED)} if load or lists else {}
    if load is not None:
        left_out += _keep(
            settings, LABELS_FILE, read(load, ("drug", "term"), DrugLexicon.load().generic, terms)
        )
    if lists is not None:
        names = {name: name for name in LISTS}
        left_out += _keep(settings, LISTS_FILE, read(lists, ("list", "term"), names.get, terms))
    kept = load_lists(settings)
    pairs = sum(map(len, kept.labels.values()))
    say(f"{pairs} terms in the labels of {len(kept.labels)} drugs")
    for name in LISTS:
        say(f"{len(kept.terms.get(name, ()))} terms in the list {name}")
    if left_out:
        raise typer.Exit(1)


def _keep(settings: Settings, file: str, found: Loaded) -> int:
    """Writes what was read to a file of PV_STATE; the number of lines that were left out."""
    for message in found.left_out:
        say(f"left out, {message}", err)
    settings.state_folder.mkdir(0o700, parents=True, exist_ok=True)
    write_whole(settings.state_folder / file, orjson.dumps(found.table))
    return len(found.left_out)
