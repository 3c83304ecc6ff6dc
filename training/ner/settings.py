"""Settings of a run of CONORM-NER; the fields are the options of `python -m training.ner`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from models import terminology
from training.common.arguments import existing_folders
from training.common.precision import PrecisionOption

#: Of the preferred terms whose names a tagger looks for, from 0 to 5.
LEAST_FREQUENCY = 2
PROCEDURES = "Surgical and medical procedures"
#: Probability of an event, and of its being the writer's, from which a name that is not tagged is a mention.
NAMED_FROM = 0.8

Corpora = Literal["both", "ade", "psytar"]
Decode = Literal["viterbi", "paper"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What makes a run what it is. All layers are trained; a release holds their changes in 8 bits."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name (vinai/bertweet-large) or a path")] = "mini"
    start: Annotated[
        str,
        typer.Option(
            callback=existing_folders,
            help="release on the same base that the run begins with: its folder, or the --output of its run",
        ),
    ] = ""
    corpora: Annotated[Corpora, typer.Option(help="training corpora")] = "both"
    split: Annotated[
        str, typer.Option(help="of the ADE corpus: ade_fold_1 to _10, or ade_group_1 to _10")
    ] = "ade_fold_1"
    epochs: Annotated[int, typer.Option(help="of both phases together")] = 12
    phases: Annotated[
        int, typer.Option(min=1, max=2, help="2: the head alone for an epoch first, as in the paper")
    ] = 2
    average: Annotated[
        int,
        typer.Option(
            min=0,
            help="the mean of the weights of so many last epochs is kept; 0: the epoch with the best tags on "
            "the validation part, which says little about the further heads",
        ),
    ] = 0
    lr: Annotated[float, typer.Option(help="of phase 2; 3e-5 in the paper, for a far larger model")] = 3e-4
    batch: Annotated[int, typer.Option(help="sentences of a batch")] = 24
    seed: Annotated[int, typer.Option(help="of weights, order and draws")] = 42
    limit: Annotated[int, typer.Option(help="training sentences of each corpus at most; 0: all")] = 0
    teaching: Annotated[
        float, typer.Option(min=0, max=1, help="share of the teaching corpus that is added to training")
    ] = 0.0
    negatives: Annotated[
        int,
        typer.Option(help="sentences of the ADE corpus without an adverse event that are added to training"),
    ] = 0
    heads: Annotated[
        bool,
        typer.Option(
            help="further heads learn whether a text reports an event, and which mentions are the writer's; "
            "mentions of the teaching corpus that are denied, feared or another's are mentions then"
        ),
    ] = False
    window: Annotated[
        int,
        typer.Option(
            min=0,
            help="words up to which sentences of a text are read together; a fifth of PsyTAR's are joined "
            "to texts of two then",
        ),
    ] = 0
    decode: Annotated[
        Decode,
        typer.Option(
            help="viterbi: the tags of a sentence together, with transitions counted on the training part, "
            "and rules for withdrawals; paper: the best tag of each word, and gaps repaired"
        ),
    ] = "viterbi"
    precision: PrecisionOption = "auto"


def event_names() -> list[str]:
    """Names of adverse events that a tagger with further heads looks for. Those of procedures and of what is
    rarely reported, where the terminology says so, are left out: in a post they are mostly something else, as
    "ect" and "clap".
    """
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
