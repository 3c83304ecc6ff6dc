"""Trains entity-driven contrastive summarization (ECL, Lu et al. 2024) and writes a release: `python -m
training.summarization`.

First stage: long questions and their short forms from the entailed pairs of RQE, most of them in messages of
PsyTAR's sentences (`--message-share`). Second stage: MeQSum, with the contrastive losses and some pairs of
the first stage (`--replay`). `--extractive` trains the release that extracts: three linear rankers are fitted
over the frozen encoder, on MeQSum and the teaching corpus.
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
from training.evaluation.finish import OFFERED, finish
from training.summarization.assemble import make
from training.summarization.extraction.release import build_extractive
from training.summarization.networks.hub_network import MAX_PIECES
from training.summarization.settings import Settings


@program
def main(
    settings: Settings,
    data: Annotated[
        Path | None,
        typer.Option(exists=True, help="folder with questions/, ade/ and psytar/; also stanza/ if present"),
    ] = None,
    extractive: Annotated[bool, typer.Option(help="train the release that extracts")] = False,
    output: Output = RELEASES,
    run: Run = None,
    device: Device = "auto",
    offered: OFFERED = False,
) -> None:
    place = device_of(device)
    if extractive:
        check_base(settings.backbone, Need(pieces=MAX_PIECES))
        release = build_extractive(data, output, settings, place)
    elif data is None:
        raise typer.BadParameter("training requires --data")
    else:
        check_base(settings.backbone, Need(pieces=MAX_PIECES, encoder_decoder=True))
        settings = replace(settings, precision=resolved(settings.precision, place))
        release = make(settings, data, output, run=run, device=place)
    finish(release, data, offered)


if __name__ == "__main__":
    run_program(main)
