"""Settings of a run of Dynamic Context Refining and of the release that it makes; the fields are the options
of `python -m training.normalization`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from models import terminology
from training.common.precision import PrecisionOption

#: Share of the right codings that the rule for NIL may lose on the terms it is fitted on.
ALLOWED_LOSS = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; `make train` has the settings of the bundled release.

    The defaults are the paper's: cosine embedding loss with a random term of another preferred term for each
    positive, S_isolated frozen.
    """

    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini"
    context_base: Annotated[str | None, typer.Option(help="base of S_context; by default --base")] = None
    epochs: Annotated[
        int,
        typer.Option(
            min=0,
            help="epochs of S_context; the one with the best validation acc@1 is kept; 0: no S_context, so "
            "that a release reads the mention alone",
        ),
    ] = 20
    rank: Annotated[int, typer.Option(help="rank of S_context's adapter; 0: train all its weights")] = 16
    lr: Annotated[float, typer.Option(help="peak learning rate of the one-cycle schedule")] = 3e-4
    batch: Annotated[int, typer.Option(help="mentions of a batch")] = 32
    seed: Annotated[int, typer.Option(help="seed of weights, order and negatives")] = 42
    window: Annotated[int, typer.Option(help="word pieces of a sentence that S_context reads")] = 16
    in_batch: Annotated[
        bool, typer.Option(help="loss: softmax over the terms of a batch, not the cosine embedding loss")
    ] = False
    all_terms: Annotated[bool, typer.Option(help="loss: softmax over all terms")] = False
    temperature: Annotated[float, typer.Option(help="temperature of the softmax")] = 0.05
    hard_negatives: Annotated[
        bool, typer.Option(help="use one of the nearest wrong terms, searched before each epoch, as negative")
    ] = False
    synonyms: Annotated[
        bool, typer.Option(help="use all lowest-level terms of the right preferred term as positives")
    ] = False
    swap: Annotated[
        float,
        typer.Option(
            help="share of mentions that are replaced by a term in their sentence, drawn anew in each epoch; "
            "the positives are the other terms of its preferred term"
        ),
    ] = 0.0
    isolated: Annotated[bool, typer.Option(help="also train S_isolated, with an adapter")] = False
    phrase_epochs: Annotated[
        int,
        typer.Option(
            min=0, help="epochs of S_isolated on lay phrases of the teaching corpus, before the others"
        ),
    ] = 0
    precision: PrecisionOption = "auto"

    @property
    def base_of_context(self) -> str:
        return self.context_base or self.base


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """The contents of a release in addition to the trained network."""

    terms: Annotated[
        Path,
        typer.Option(
            exists=True, help="a .tsv with the columns llt, pt, soc, or a folder with MedDRA's .asc files"
        ),
    ] = terminology.BUNDLED
    k: Annotated[int, typer.Option(help="candidates kept with each event")] = 5
    nil_below: Annotated[
        float | None, typer.Option(help="NIL threshold (cosine); by default from --data")
    ] = None
    phrases: Annotated[bool, typer.Option(help="search training mentions in addition to the terms")] = True
    taught: Annotated[
        bool, typer.Option(help="search the phrases of the teaching corpus in addition to the terms")
    ] = True
    taught_penalty: Annotated[float, typer.Option(min=0, help="subtracted from such a phrase's cosine")] = (
        0.05
    )
    vote: Annotated[
        float,
        typer.Option(
            min=0,
            help="temperature of the log-sum-exp over the cosines of a preferred term; 0: the highest alone",
        ),
    ] = 0.04
    prior: Annotated[
        float,
        typer.Option(
            min=0, help="added to the cosine for each level of a preferred term's estimated frequency, 0 to 5"
        ),
    ] = 0.0
    context_share: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="weight of the mention's vector refined by its sentence, in the mean with its own vector; "
            "1: the refined one alone, as in the paper",
        ),
    ] = 1.0
    spelling: Annotated[
        bool, typer.Option(help="correct misspelled words of mentions to words of terms and phrases")
    ] = True
    nil_loss: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.5,
            help="with --calibrate: share of right codings that may become NIL on the fitting data",
        ),
    ] = ALLOWED_LOSS
    start: Annotated[
        Path | None, typer.Option(exists=True, help="release whose adapter S_context is initialised with")
    ] = None
    start_isolated: Annotated[
        Path | None,
        typer.Option(exists=True, help="release whose adapter S_isolated (also for the terms) starts with"),
    ] = None

    def searched(self) -> dict[str, float | bool]:
        """How mentions are searched, as a release's configuration has it."""
        names = ("taught_penalty", "vote", "prior", "context_share", "spelling")
        return {name: getattr(self, name) for name in names}
