"""Settings of a run of CLNER, CLDR or CLGS; the fields are the options of `python -m training.relation`.

Where the paper (Theodoropoulos et al. 2021) has another value the help names it. What has the paper's value
in every run (temperature, samples, graphs, frozen layers) is no option.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from models.encoder.split.layers import Layers
from training.common.precision import PrecisionOption

Objective = Literal["cldr", "clgs", "clner", "all"]
Decode = Literal["sequence", "paper"]
Corpora = Literal["ade", "teaching"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; docs/train.md has the options of the bundled release."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini"
    corpora: Annotated[
        Corpora,
        typer.Option(
            help="ade: the ADE corpus, and the share --teaching; teaching: that share of the teaching corpus "
            "alone, with author batches of it for validation"
        ),
    ] = "ade"
    split: Annotated[
        str, typer.Option(help="split of the ADE corpus: ade_fold_1 to _10, or ade_group_1 to _10")
    ] = "ade_fold_1"
    seed: Annotated[int, typer.Option(help="seed of weights, order, samples and validation part")] = 42
    limit: Annotated[int, typer.Option(help="maximum sentences of each part; 0: all")] = 0
    teaching: Annotated[
        float, typer.Option(min=0, max=1, help="share of the teaching corpus' clinical sentences to add")
    ] = 0.0
    precision: PrecisionOption = "auto"
    # Entities: CLNER.
    epochs: Annotated[int, typer.Option(help="maximum epochs of CLNER; paper: 20")] = 8
    average: Annotated[
        int, typer.Option(min=1, help="the weights are averaged over so many of the last epochs of CLNER")
    ] = 1
    patience: Annotated[
        int, typer.Option(help="epochs without a better validation score after which training stops")
    ] = 3
    lr: Annotated[float, typer.Option(help="learning rate of CLNER; paper: 1e-5, for a larger encoder")] = (
        3e-4
    )
    batch: Annotated[int, typer.Option(help="sentences with an event in a batch of CLNER; paper: 16")] = 32
    negatives: Annotated[
        int, typer.Option(help="sentences without an event in each epoch, drawn anew; paper: 0")
    ] = 1500
    cross_entropy: Annotated[
        float, typer.Option(help="weight of a cross-entropy in addition to Eq. 6; paper: 0")
    ] = 1.0
    event: Annotated[
        float,
        typer.Option(
            min=0,
            help="weight of a cross-entropy over whether the sentence reports an event; above 0 its head is "
            "kept and relations use it; paper: 0",
        ),
    ] = 0.0
    decode: Annotated[
        Decode,
        typer.Option(help="sequence: best tag sequence of a sentence; paper: each word by its neighbours"),
    ] = "sequence"
    # Relations: CLDR and CLGS.
    pair_lr: Annotated[float, typer.Option(help="learning rate of CLDR and CLGS; paper: 1e-5")] = 2e-4
    pair_epochs: Annotated[int, typer.Option(help="maximum epochs of CLDR and CLGS; paper: 20")] = 3
    pair_contrast: Annotated[
        float, typer.Option(help="weight of a contrast between related and unrelated pairs; paper: 0")
    ] = 1.0


def frozen_layers(model: Any) -> int:
    """How many lower layers of a model CLDR and CLGS leave frozen: half of them, as in the paper."""
    return Layers(model).number // 2
