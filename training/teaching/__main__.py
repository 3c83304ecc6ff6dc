"""Checks the teaching corpus: prints what is wrong with it, with exit code 1 where something is.

`--data` names the public corpora; without them it is compared with the evaluation texts of the source tree
alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from training.common import UserError
from training.common.program_help import run_program
from training.teaching.batches import FOLDER
from training.teaching.checks.check import Corpus, findings, read


def main(
    data: Annotated[Path | None, typer.Option(exists=True, help="folder of the public corpora")] = None,
    folder: Annotated[Path, typer.Option(exists=True, help="folder of the teaching corpus")] = FOLDER,
) -> None:
    try:
        corpus = read(folder)
        if corpus == Corpus():
            raise UserError(f"no texts in {folder}")
        found = findings(corpus, data)
    except ValueError as error:
        raise UserError(str(error)) from None
    for finding in found:
        typer.echo(str(finding))
    typer.echo(f"{len(found)} findings")
    raise typer.Exit(int(bool(found)))


if __name__ == "__main__":
    run_program(main)
