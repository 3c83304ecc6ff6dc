"""Settings of a run of CONORM-NER; the fields are the options of `python -m training.ner`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from models import terminology
from training.common.precision import PrecisionOption

#: Of the preferred terms whose names a tagger looks for, from 0 to 5.
LEAST_FREQUENCY = 2
PROCEDURES = "Surgical and medical procedures"

Corpora = Literal["both", "ade", "psytar"]
Decode = Literal["viterbi", "paper"]
Keep = Literal["best", "last"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What makes a run what it is; `make train` has the settings of the bundled release."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name (vinai/bertweet-large) or a path")] = "mini"
    start: Annotated[
        str,
        typer.Option(
            help="release on the same base that the run begins with: its folder, or the --output of its run"
        ),
    ] = ""
    corpora: Annotated[Corpora, typer.Option(help="training corpora")] = "both"
    split: Annotated[
        str, typer.Option(help="of the ADE corpus: ade_fold_1 to _10, or ade_group_1 to _10")
    ] = "ade_fold_1"
    epochs: Annotated[int, typer.Option(help="of both phases together")] = 12
    rank: Annotated[int, typer.Option(help="of the adapter; 0: the layers are trained and stored")] = 16
    factor: Annotated[
        int,
        typer.Option(help="with --rank 0: changes are stored as an adapter of this rank; 0: whole layers"),
    ] = 0
    eight_bit: Annotated[
        bool, typer.Option(help="with --rank 0: changes are stored as deltas of 8 bits, not as whole layers")
    ] = False
    average: Annotated[
        int, typer.Option(min=1, help="the weights are averaged over so many of the last epochs")
    ] = 1
    keep: Annotated[
        Keep,
        typer.Option(
            help="best: the epoch with the best tags on the validation part, which says little about "
            "the other heads; last: the last epoch"
        ),
    ] = "best"
    lr: Annotated[float, typer.Option(help="of phase 2; 3e-5 in the paper, for a far larger model")] = 5e-4
    batch: Annotated[int, typer.Option(help="sentences of a batch")] = 24
    seed: Annotated[int, typer.Option(help="of weights, order and draws")] = 42
    limit: Annotated[int, typer.Option(help="training sentences of each corpus at most; 0: all")] = 0
    teaching: Annotated[
        float, typer.Option(min=0, max=1, help="share of the teaching corpus that is added to training")
    ] = 0.0
    candidates: Annotated[
        bool,
        typer.Option(help="with --teaching: mentions that are denied, feared or another's are mentions too"),
    ] = False
    negatives: Annotated[
        int,
        typer.Option(help="sentences of the ADE corpus without an adverse event that are added to training"),
    ] = 0
    event_head: Annotated[
        bool, typer.Option(help="a second head learns whether a sentence reports an adverse event")
    ] = False
    status_head: Annotated[
        bool,
        typer.Option(
            help="a third head learns which mentions are events of the writer's, and due to which drug"
        ),
    ] = False
    window: Annotated[
        int, typer.Option(min=0, help="words up to which sentences of a text are read together")
    ] = 0
    joined: Annotated[
        float, typer.Option(min=0, max=1, help="share of PsyTAR's sentences joined to texts of two")
    ] = 0.0
    biox: Annotated[
        bool, typer.Option(help="pieces inside a word are tagged X; ablation: with their word's tag (BIO)")
    ] = True
    flag: Annotated[
        bool, typer.Option(help="the head is given which pieces begin no word; ablation: it is not")
    ] = True
    phases: Annotated[
        int, typer.Option(min=1, max=2, help="2: first the head alone; ablation 1: everything at once")
    ] = 2
    repair: Annotated[bool, typer.Option(help="gaps in a mention are repaired; ablation: they are not")] = (
        True
    )
    decode: Annotated[
        Decode,
        typer.Option(
            help="viterbi: the tags of a sentence together, with transitions counted on the training part; "
            "paper: the best tag of each word"
        ),
    ] = "viterbi"
    pooled: Annotated[
        bool,
        typer.Option(
            help="of the labels of adverse events the likeliest has the probability of all; ablation: each "
            "its own"
        ),
    ] = True
    named_from: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="with both further heads: probability of an event, and of its being the writer's, from "
            "which names of the terminology that are not tagged become mentions; 0: none does",
        ),
    ] = 0.8
    withdrawals: Annotated[
        bool,
        typer.Option(
            help="a withdrawal that a text names as such becomes a mention by rules; ablation: by its tags "
            "alone"
        ),
    ] = True
    precision: PrecisionOption = "auto"


def names_of(settings: Settings) -> list[str]:
    """Names of adverse events that a tagger with both further heads looks for. Those of procedures and of
    what is rarely reported, where the terminology says so, are left out: in a post they are mostly something
    else, as "ect" and "clap".
    """
    if not settings.named_from:
        return []
    terms = terminology.load()
    least = LEAST_FREQUENCY if any(t.frequency for t in terms) else 0
    return [t.llt for t in terms if t.frequency >= least and t.soc != PROCEDURES]


@dataclass(frozen=True, slots=True)
class Phase:
    """Consecutive epochs with an optimizer and a schedule of their own."""

    first: int
    """number of its first epoch, from 1"""
    epochs: int
    lr: float
    encoder: bool
    """whether the encoder is trained in addition to the head"""


def phases_of(settings: Settings) -> list[Phase]:
    """Phase 1 trains the head for one epoch at 1e-3, phase 2 everything (CONORM, section 3.1)."""
    if settings.phases == 1:
        return [Phase(1, settings.epochs, settings.lr, True)]
    return [Phase(1, 1, 1e-3, False), Phase(2, settings.epochs - 1, settings.lr, True)]
