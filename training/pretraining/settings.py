"""Settings of a run of pretraining; the fields are the options of `python -m training.pretraining`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from training.common.precision import PrecisionOption


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini"
    split: Annotated[
        str, typer.Option(help="of the ADE corpus, whose test part is left out: as for training.ner")
    ] = "ade_fold_1"
    epochs: Annotated[int, typer.Option(min=1, help="passes over the texts")] = 5
    lr: Annotated[float, typer.Option(help="learning rate of the encoder's layers")] = 4e-4
    head_lr: Annotated[float, typer.Option(help="learning rate of the head, which is new")] = 1e-3
    batch: Annotated[int, typer.Option(min=1, help="texts of a batch")] = 64
    masked: Annotated[float, typer.Option(min=0.01, max=0.9, help="share of the pieces to predict")] = 0.2
    held_out: Annotated[int, typer.Option(min=1, help="texts for validation")] = 600
    seed: Annotated[int, typer.Option(help="seed of weights, order, masks and validation part")] = 42
    precision: PrecisionOption = "auto"
