"""Trains CLNER, CLDR and CLGS (Theodoropoulos et al. 2021) and writes a relation release: `python -m
training.relation`.

`clner` trains the entity space (Eq. 6); `cldr` the relation space (Eq. 5); `clgs` the same from whole graphs
(Eq. 4); `all` CLNER, then CLDR on top of it, which is what the relation stage uses. A part that is not
trained is the plain base. The paper trains two encoders from the same start; here the second starts from the
first and shares its lower layers, so that a sentence passes them once. `--teaching` adds clinical
sentences of the teaching corpus (training/teaching) to training; with `--corpora teaching` these are all.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.encoder.capabilities import Need
from models.releases.store import open_release
from training.common.precision import resolved
from training.common.program import RELEASES, Device, Output, Run, check_base, device_of, program
from training.common.program_help import run_program
from training.evaluation.finish import OFFERED, finish
from training.evaluation.relation import SPLITS
from training.relation.release import make, renamed
from training.relation.settings import Objective, Settings


@program
def main(
    settings: Settings,
    data: Annotated[
        Path | None, typer.Option(exists=True, help="folder with ade/; required but for --corpora teaching")
    ] = None,
    objective: Annotated[Objective, typer.Option(help="the models that are trained")] = "all",
    like: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="release that is made again with the drug names of today's lexicon: nothing is trained, and "
            "no setting counts",
        ),
    ] = None,
    output: Output = RELEASES,
    run: Run = None,
    device: Device = "auto",
    offered: OFFERED = False,
) -> None:
    if like is not None:
        finish(renamed(open_release(like), data, output, device_of(device)), data, offered)
        return
    _check(settings, data)
    place = device_of(device)
    check_base(settings.base, Need(below=None if objective == "clner" else 0))
    settings = replace(settings, precision=resolved(settings.precision, place))
    finish(make(objective, settings, data, output, run, place), data, offered)


def _check(settings: Settings, data: Path | None) -> None:
    """Raises typer.BadParameter for options that do not go together."""
    if settings.corpora == "ade" and data is None:
        raise typer.BadParameter("--corpora ade needs --data")
    if settings.corpora == "teaching" and not settings.teaching:
        raise typer.BadParameter("--corpora teaching needs --teaching, the share of its sentences")
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")


if __name__ == "__main__":
    run_program(main)
