"""Trains an encoder to place sentences with an idiom by their meaning (He et al. 2024) and writes a release:
`python -m training.idiom`.

The loss of a batch is the paper's triplet loss (losses.py). Two things are not in the paper. The token of a
marked expression (section 4.1) starts with the embedding of the words that replace the expression in right
paraphrases. `--distillation` adds a loss that keeps the cosines of different sentences as the base gives
them. The epoch with the best Spearman on held-out expressions is kept, among those that lose at most
0.05 of Spearman on STS pairs and are better than the untrained model; where there is none, the
untrained model is published if its tokens start as paraphrases, and else nothing (exit code 1).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.encoder.capabilities import Need
from training.common.precision import resolved
from training.common.program import RELEASES, Device, Output, Run, check_base, device_of, program
from training.common.program_help import run_program
from training.evaluation.finish import finish
from training.idiom.assemble import console, make
from training.idiom.settings import Settings
from training.idiom.trainer import MOST_STS_LOST


@program
def main(
    settings: Settings,
    data: Annotated[Path, typer.Option(exists=True, help="folder with idioms/")],
    output: Output = RELEASES,
    run: Run = None,
    device: Device = "auto",
) -> None:
    place = device_of(device)
    check_base(settings.base, Need())
    settings = replace(settings, precision=resolved(settings.precision, place))
    release = make(settings, data, output, run, place)
    if release is None:
        limit = f"loses at most {MOST_STS_LOST} of Spearman on STS"
        console.print(f"no epoch is better and {limit}: nothing is published")
        raise typer.Exit(1)
    finish(release, data, offered=False)


if __name__ == "__main__":
    run_program(main)
