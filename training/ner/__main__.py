"""Trains CONORM-NER (CONORM, section 3.1) and writes a release: `python -m training.ner`.

Phase 1 (first epoch) trains the head alone, phase 2 adapter and head; the epoch with the best strict F1 on
10 % of the training sentences is kept. `--teaching` adds texts of the teaching corpus (training/teaching); no
epoch is chosen on these.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.encoder.capabilities import Need
from training.common.arguments import existing_folders
from training.common.precision import resolved
from training.common.program import RELEASES, Device, Output, Run, check_base, device_of, program
from training.common.program_help import run_program
from training.evaluation.finish import OFFERED, finish
from training.evaluation.relation import SPLITS
from training.ner.assemble import make
from training.ner.refresh import refreshed
from training.ner.releases import releases_in
from training.ner.settings import Settings


@program
def main(
    settings: Settings,
    data: Annotated[Path, typer.Option(exists=True, help="folder with psytar/ and ade/")],
    reviews: Annotated[
        Path | None,
        typer.Option(exists=True, help="file of `pvstream reviews export --examples`, added to training"),
    ] = None,
    like: Annotated[
        str,
        typer.Option(
            callback=existing_folders,
            help="release whose weights are used, or several with commas between them, whose weights are "
            "averaged, with the names of today's tables: nothing is trained, and no other setting counts",
        ),
    ] = "",
    output: Output = RELEASES,
    run: Run = None,
    device: Device = "auto",
    offered: OFFERED = False,
) -> None:
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")
    place = device_of(device)
    if like:
        finish(refreshed(releases_in(like), data, output, place), data, offered)
        return
    check_base(settings.base, Need())
    settings = replace(settings, precision=resolved(settings.precision, place))
    finish(make(settings, data, output, run, place, reviews=reviews), data, offered)


if __name__ == "__main__":
    run_program(main)
