"""Settings of a run of CLNER, CLDR or CLGS; the fields are the options of `python -m training.relation`.

Where the paper (Theodoropoulos et al. 2021) has another value the help names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from models.encoder.split.layers import Layers
from models.relation.neighbours import Vote
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
    start: Annotated[
        str, typer.Option(help="folder of a release whose encoders are kept; support set and heads are new")
    ] = ""
    pretrained: Annotated[
        str,
        typer.Option(
            help="weights that CLNER begins with: the --output of training.pretraining, or the folder of a "
            "release whose CLNER is trained further; with --rank 0 and --pair-rank 0"
        ),
    ] = ""
    keep_support: Annotated[
        bool,
        typer.Option(help="keep support set and votes of --start too; sentence head and threshold are new"),
    ] = False
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
    rank: Annotated[
        int,
        typer.Option(
            help="rank of the stored adapter of CLNER's encoder; 0: whole layers are trained and stored as "
            "deltas of 8 bits"
        ),
    ] = 96
    lr: Annotated[float, typer.Option(help="learning rate of CLNER; paper: 1e-5, for a larger encoder")] = (
        3e-4
    )
    batch: Annotated[int, typer.Option(help="sentences with an event in a batch of CLNER; paper: 16")] = 32
    width: Annotated[int, typer.Option(help="width of CLNER's dense layer")] = 128
    samples: Annotated[int, typer.Option(help="words that each word of a batch is compared with")] = 80
    temperature: Annotated[float, typer.Option(help="temperature of all contrastive losses")] = 0.1
    negatives: Annotated[
        int, typer.Option(help="sentences without an event in each epoch, drawn anew; paper: 0")
    ] = 1500
    ignore_drugs: Annotated[
        bool, typer.Option(help="do not train on drugs of --negatives as words outside of mentions")
    ] = True
    cross_entropy: Annotated[
        float, typer.Option(help="weight of a cross-entropy in addition to Eq. 6; paper: 0")
    ] = 1.0
    contrast: Annotated[float, typer.Option(help="weight of Eq. 6")] = 1.0
    event: Annotated[
        float,
        typer.Option(
            min=0,
            help="weight of a cross-entropy over whether the sentence reports an event; above 0 its head is "
            "kept and relations use it; paper: 0",
        ),
    ] = 0.0
    vote: Annotated[Vote, typer.Option(help="vote of the neighbours; paper: majority")] = "majority"
    decode: Annotated[
        Decode,
        typer.Option(help="sequence: best tag sequence of a sentence; paper: each word by its neighbours"),
    ] = "sequence"
    # Whether a sentence reports an event.
    sentence_epochs: Annotated[
        int,
        typer.Option(
            min=0, help="epochs of the sentence head, which needs --objective all, cldr or clgs; 0: no head"
        ),
    ] = 0
    sentence_lr: Annotated[
        float, typer.Option(help="learning rate of the upper layers of the sentence head")
    ] = 2e-4
    sentence_negatives: Annotated[
        int, typer.Option(help="maximum ADE sentences without an event for the sentence head")
    ] = 20000
    sentence_teaching: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="share of the teaching corpus' clinical sentences for the sentence head"
        ),
    ] = 1.0
    # Relations: CLDR and CLGS.
    below: Annotated[int, typer.Option(help="frozen lower layers of CLDR and CLGS; 0: half of them")] = 0
    pair_rank: Annotated[
        int,
        typer.Option(help="rank of the stored adapter of the upper layers of CLDR and CLGS; 0: as --rank 0"),
    ] = 64
    pair_lr: Annotated[float, typer.Option(help="learning rate of CLDR and CLGS; paper: 1e-5")] = 2e-4
    pair_batch: Annotated[int, typer.Option(help="sentences with a relation in a batch of CLDR and CLGS")] = 8
    pair_epochs: Annotated[int, typer.Option(help="maximum epochs of CLDR and CLGS; paper: 20")] = 3
    hard: Annotated[int, typer.Option(help="negative graphs for each positive graph")] = 8
    pair_contrast: Annotated[
        float, typer.Option(help="weight of a contrast between related and unrelated pairs; paper: 0")
    ] = 1.0
    self_loop: Annotated[float, typer.Option(help="lambda of the two-node graph, Eq. 3")] = 0.8
    paired: Annotated[
        bool, typer.Option(help="as the published code: text_z against graph_z instead of Eq. 5")
    ] = False
    text_relu: Annotated[bool, typer.Option(help="as the published code: ReLU on the text side too")] = False
    inside: Annotated[
        bool, typer.Option(help="as the published code: negatives may be words of the same mention")
    ] = False

    def frozen_layers(self, model: Any) -> int:
        """How many lower layers of a model CLDR and CLGS leave frozen."""
        return self.below or Layers(model).number // 2


@dataclass(frozen=True, slots=True)
class SupportSizes:
    """How large the support set of a release may be."""

    dimension: Annotated[int, typer.Option(help="dimension of the stored word vectors")] = 64
    pair_dimension: Annotated[int, typer.Option(help="dimension of each word of a stored pair")] = 128
    outside: Annotated[int, typer.Option(help="support words outside of mentions, before condensing")] = 12000
    words: Annotated[int, typer.Option(help="support words after condensing")] = 8000
