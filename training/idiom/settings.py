"""Settings of a run of idiom-aware vectors; the fields are the options of `python -m training.idiom`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from models.idiom.model import LAST
from training.common.precision import PrecisionOption


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; the defaults are those of the bundled release."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini"
    semeval: Annotated[bool, typer.Option(help="train on the training part of SemEval-2022")] = True
    teaching: Annotated[bool, typer.Option(help="train on the idioms of the teaching corpus")] = False
    language: Annotated[str, typer.Option(help="EN, or PT with a multilingual base")] = "EN"
    pooling: Annotated[str, typer.Option(help="layers to average: last, or last_two as in the paper")] = LAST
    single_token: Annotated[
        bool, typer.Option(help="write each expression as one token, as in the paper")
    ] = True
    paraphrase: Annotated[
        bool, typer.Option(help="initialise each token by the vector of its right paraphrase")
    ] = True
    epochs: Annotated[int, typer.Option(help="passes over the training rows")] = 6
    rank: Annotated[int, typer.Option(help="rank of the adapter; 0: train all weights, with --lr 2e-5")] = 16
    layers: Annotated[int, typer.Option(help="number of upper layers that are trained; 0: all")] = 0
    lr: Annotated[float, typer.Option(help="learning rate; 2e-5 in the paper, which trains all weights")] = (
        3e-4
    )
    token_lr: Annotated[float, typer.Option(help="learning rate of the token embeddings")] = 3e-3
    batch: Annotated[int, typer.Option(help="rows of a batch")] = 64
    triplet: Annotated[float, typer.Option(help="weight of the triplet loss")] = 1.0
    distillation: Annotated[
        float, typer.Option(help="weight of the loss that keeps the base's cosines of different sentences")
    ] = 20.0
    sentences: Annotated[int, typer.Option(help="maximum sentences of each expression; 0: all")] = 5
    held_out: Annotated[
        float,
        typer.Option(help="share of SemEval's expressions of which all sentences but one are held out"),
    ] = 0.1
    max_sts_drop: Annotated[
        float, typer.Option(help="maximum drop of Spearman on STS pairs of an epoch that is kept")
    ] = 0.05
    seed: Annotated[int, typer.Option(help="seed of weights and validation part")] = 42
    precision: PrecisionOption = "auto"
    dropout: Annotated[float, typer.Option(help="dropout of the encoder in training")] = 0.05
