"""Checks the teaching corpus, and adds new files to it: `python -m training.teaching`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from training.teaching.batches import FOLDER
from training.teaching.checks import balance
from training.teaching.checks.check import Corpus, findings, read
from training.teaching.checks.take import take

app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)
Data = Annotated[
    Path | None,
    typer.Option(help="folder of the public corpora to compare with; by default only the source tree"),
]
Folder = Annotated[Path, typer.Option(exists=True, help="folder of the teaching corpus")]


@app.command()
def check(
    data: Data = None,
    folder: Folder = FOLDER,
    drugs: Annotated[bool, typer.Option(help="list the drugs that are not in the lexicon")] = False,
    terms: Annotated[bool, typer.Option(help="list the preferred terms with too few phrases")] = False,
) -> None:
    """Prints the contents of the corpus and all findings; the exit code is 1 if there is a finding."""
    try:
        corpus = read(folder)
    except ValueError as error:
        _end(error)
    if corpus == Corpus():
        typer.echo(f"no texts in {folder}", err=True)
        raise typer.Exit(1)
    lists = (balance.unknown_drugs(corpus) if drugs else (), balance.terms_without(corpus) if terms else ())
    for text in chain(balance.report(corpus), *lists):
        typer.echo(text)
    _note_absent(data)
    try:
        found = [*balance.unbalanced(corpus), *findings(corpus, data)]
    except ValueError as error:
        _end(error)
    for finding in found:
        typer.echo(str(finding))
    typer.echo(f"{len(found)} findings")
    raise typer.Exit(int(bool(found)))


@app.command(name="take")
def take_in(
    files: Annotated[
        list[Path],
        typer.Argument(help="files named by their kind, such as posts_NAME.txt or idioms_NAME.tsv"),
    ],
    data: Data = None,
    folder: Folder = FOLDER,
) -> None:
    """Adds the lines of files that have no finding to the corpus, and prints the findings of the others."""
    _note_absent(data)
    try:
        for file in files:
            kept, refused = take(file, folder, data)
            for finding in refused:
                typer.echo(str(finding))
            typer.echo(f"{file.name}: {kept} lines added, {len({f.line for f in refused})} refused")
    except (ValueError, OSError) as error:
        _end(error)


def _end(error: Exception) -> NoReturn:
    """An error that a user can cause, in one line."""
    typer.echo(str(error), err=True)
    raise typer.Exit(1) from None


def _note_absent(data: Path | None) -> None:
    if data is None:
        typer.echo("not compared with the public corpora: no --data")
    elif not data.is_dir():
        typer.echo(f"not compared with the public corpora: no folder {data}")


if __name__ == "__main__":
    app()
