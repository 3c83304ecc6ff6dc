"""Settings of a run of idiom-aware vectors; the fields are the options of `python -m training.idiom`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from models.idiom.model import LAST
from training.common.arguments import any_of
from training.common.precision import PrecisionOption

Corpus = Literal["semeval", "written"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini"
    corpus: Annotated[
        Corpus,
        typer.Option(help="semeval: the training part of SemEval-2022; written: the teaching corpus"),
    ] = "semeval"
    language: Annotated[
        str, typer.Option(callback=any_of("EN", "PT"), help="EN, or PT with a multilingual base")
    ] = "EN"
    pooling: Annotated[
        str,
        typer.Option(
            callback=any_of("last", "last_two"), help="layers to average: last, or last_two as in the paper"
        ),
    ] = LAST
    paraphrase: Annotated[
        bool, typer.Option(help="initialise each token by the vector of its right paraphrase")
    ] = True
    epochs: Annotated[int, typer.Option(help="passes over the training rows")] = 6
    rank: Annotated[int, typer.Option(help="rank of the adapter; 0: train all weights, with --lr 2e-5")] = 16
    lr: Annotated[float, typer.Option(help="learning rate; 2e-5 in the paper, which trains all weights")] = (
        3e-4
    )
    batch: Annotated[int, typer.Option(help="rows of a batch")] = 64
    distillation: Annotated[
        float, typer.Option(help="weight of the loss that keeps the base's cosines of different sentences")
    ] = 20.0
    sentences: Annotated[int, typer.Option(help="maximum sentences of each expression; 0: all")] = 5
    limit: Annotated[int, typer.Option(help="maximum training sentences; 0: all")] = 0
    seed: Annotated[int, typer.Option(help="seed of weights and validation part")] = 42
    precision: PrecisionOption = "auto"
