"""Settings of a run of ECL (Lu et al. 2024) and of the release that it makes; the fields are the options of
`python -m training.summarization`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from models.encoder.base_files import MINI
from training.common.precision import PrecisionOption

#: Names of the stages.
PAIRS, MEQSUM = "pairs", "meqsum"


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; `make train` has the settings of the bundled release."""

    backbone: Annotated[
        str,
        typer.Option(
            "--backbone",
            "--base",
            help="a BERT (`mini`, a hub name or a path), which gets a small decoder with copying, or an "
            "encoder-decoder of the hub (facebook/bart-large)",
        ),
    ] = MINI
    layers: Annotated[int, typer.Option(help="layers of the pointer decoder")] = 3
    rank: Annotated[int, typer.Option(help="rank of the encoder's adapter; 0: train its layers")] = 32
    trained_layers: Annotated[int, typer.Option(help="number of upper encoder layers that are trained")] = 3
    pretraining: Annotated[int, typer.Option(help="epochs of the first stage")] = 10
    epochs: Annotated[int, typer.Option(help="epochs of the second stage, MeQSum")] = 6
    pretraining_lr: Annotated[float, typer.Option(help="learning rate of the first stage")] = 4e-4
    lr: Annotated[
        float, typer.Option(help="learning rate of the second stage; 1e-5 in the paper, for BART-large")
    ] = 2e-4
    batch: Annotated[int, typer.Option(help="questions of a batch")] = 16
    simple: Annotated[
        float, typer.Option(help="weight of Eq. 5 (other summaries), 1 in the paper; 0: ECL-s of Table 5")
    ] = 0.3
    hard: Annotated[
        float, typer.Option(help="weight of Eq. 6 (replaced entities), 1 in the paper; 0: ECL-h")
    ] = 0.3
    negatives: Annotated[int, typer.Option(help="hard negatives of a question; 128 in the paper")] = 8
    positive: Annotated[
        bool, typer.Option(help="the right summary is in the denominator, as in MoCo, not as in Eq. 5 and 6")
    ] = True
    swap: Annotated[
        float,
        typer.Option(help="share of pairs with entities replaced on both sides, drawn in each epoch"),
    ] = 0.5
    message_share: Annotated[
        float, typer.Option(help="share of the first stage's questions that are put into patients' messages")
    ] = 0.8
    replay: Annotated[
        int, typer.Option(help="pairs of the first stage in each epoch of the second, drawn anew")
    ] = 400
    held_out: Annotated[int, typer.Option(help="questions for validation; 0: the last epoch is kept")] = 100
    seed: Annotated[int, typer.Option(help="seed of weights, order, draws and validation part")] = 42
    limit: Annotated[int, typer.Option(help="maximum pairs of each corpus; 0: all")] = 0
    precision: PrecisionOption = "auto"


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive epochs over some pairs, with an optimizer and a schedule of their own."""

    name: str
    first: int
    """number of its first epoch, from 1"""
    epochs: int
    lr: float
    contrastive: bool
    """whether the contrastive losses are computed"""
    message_share: float = 0.0
    """share of the pairs whose question is put into a patient's message, drawn anew in each epoch"""
    replay: int = 0
    """pairs of the first stage in each epoch, drawn anew, put into messages as in that stage"""


def stages_of(settings: Settings) -> tuple[Stage, Stage]:
    """First long questions and their short forms, then MeQSum with the contrastive losses."""
    s = settings
    return (
        Stage(PAIRS, 1, s.pretraining, s.pretraining_lr, False, message_share=s.message_share),
        Stage(MEQSUM, s.pretraining + 1, s.epochs, s.lr, True, replay=s.replay),
    )
