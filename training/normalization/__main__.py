"""Trains normalization with Dynamic Context Refining (CONORM-EN) on PsyTAR and writes a release: `python -m
training.normalization`.

Below the NIL threshold a code was more often wrong than right on validation mentions; without --data it keeps
its default. Scores are of held-out drugs and preferred terms (training/common/codings/split.py).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from models.encoder.capabilities import Need
from models.releases.store import open_release
from training.common.precision import resolved
from training.common.program import RELEASES, Device, Output, Run, check_base, device_of, program
from training.common.program_help import run_program
from training.evaluation.finish import OFFERED, finish
from training.normalization.assemble import make
from training.normalization.nil.calibration import recalibrated
from training.normalization.release import MAX_PIECES
from training.normalization.settings import ReleaseOptions, Settings
from training.normalization.untrained import over_terms, zero_shot_release

LIKE = Annotated[
    Path | None,
    typer.Option(
        exists=True, help="train nothing: release whose trained parts are used over the terms of --terms"
    ),
]


@program
def main(
    settings: Settings,
    options: ReleaseOptions,
    data: Annotated[
        Path | None,
        typer.Option(exists=True, help="folder with psytar/ and terminology/; required for training"),
    ] = None,
    zero_shot: Annotated[bool, typer.Option("--zero-shot", help="train nothing: use the base model")] = False,
    like: LIKE = None,
    calibrate: Annotated[
        bool,
        typer.Option(help="with --like and --data: fit only the rule for NIL, on mentions of removed terms"),
    ] = False,
    reviews: Annotated[
        Path | None,
        typer.Option(exists=True, help="file of `pvstream reviews export --examples`, added to training"),
    ] = None,
    output: Output = RELEASES,
    run: Run = None,
    device: Device = "auto",
    offered: OFFERED = False,
) -> None:
    place = device_of(device)
    if calibrate:
        if like is None or data is None:
            raise typer.BadParameter("--calibrate requires --like and --data")
        release = recalibrated(open_release(like), data, output, place, options.nil_loss)
    elif like is not None:
        release = over_terms(open_release(like), options, output, data, place)
    elif zero_shot:
        check_base(settings.base, Need(pieces=MAX_PIECES))
        release = zero_shot_release(settings.base, options, data, output, place)
    else:
        release = make(
            _checked(settings, place), options, data, output, run=run, device=place, reviews=reviews
        )
    finish(release, data, offered)


def _checked(settings: Settings, place: torch.device) -> Settings:
    """The settings with a precision that the device supports. Raises typer.BadParameter for a base that
    cannot be trained.
    """
    for base in {settings.base, settings.base_of_context}:
        check_base(base, Need(pieces=max(MAX_PIECES, settings.window)))
    return replace(settings, precision=resolved(settings.precision, place))


if __name__ == "__main__":
    run_program(main)
