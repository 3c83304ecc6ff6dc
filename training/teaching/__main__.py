"""Checks the teaching corpus, and takes new files in: `python -m training.teaching`."""

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
    typer.Option(help="folder of the public corpora; without it only the source tree is compared"),
]
Folder = Annotated[Path, typer.Option(help="of the corpus")]


@app.command()
def check(
    data: Data = None,
    folder: Folder = FOLDER,
    drugs: Annotated[bool, typer.Option(help="list the drugs that the lexicon does not know")] = False,
    terms: Annotated[bool, typer.Option(help="list the preferred terms with too few phrases")] = False,
) -> None:
    """Prints what the corpus holds and what is wrong with it; exit code 1 where something is."""
    corpus = read(folder)
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
        typer.Argument(help="files named KIND_*, with the ending of their kind: posts_*.txt, idioms_*.tsv"),
    ],
    data: Data = None,
    folder: Folder = FOLDER,
) -> None:
    """Copies the lines of files with which nothing is wrong into the corpus, and prints the others."""
    _note_absent(data)
    try:
        for file in files:
            kept, refused = take(file, folder, data)
            for finding in refused:
                typer.echo(str(finding))
            typer.echo(f"{file.name}: {kept} lines taken, {len({f.line for f in refused})} refused")
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
