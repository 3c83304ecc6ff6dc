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
#: Candidates that are kept with each event.
CANDIDATES = 5
#: Subtracted from the cosine of a phrase of the teaching corpus.
TAUGHT_PENALTY = 0.05


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; `make train` has the settings of the bundled release.

    The paper's loss: cosine embedding, with a random term of another preferred term for each positive, and a
    frozen S_isolated.
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
    lr: Annotated[float, typer.Option(help="peak learning rate of the one-cycle schedule")] = 3e-4
    batch: Annotated[int, typer.Option(help="mentions of a batch")] = 32
    seed: Annotated[int, typer.Option(help="seed of weights, order and negatives")] = 42
    window: Annotated[int, typer.Option(help="word pieces of a sentence that S_context reads")] = 16
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
    phrases: Annotated[bool, typer.Option(help="search training mentions in addition to the terms")] = True
    taught: Annotated[
        bool, typer.Option(help="search the phrases of the teaching corpus in addition to the terms")
    ] = True
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
    start_isolated: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="release on the same base, such as of idiom vectors, whose encoder S_isolated begins with",
        ),
    ] = None

    def searched(self) -> dict[str, float | bool]:
        """How mentions are searched, as a release's configuration has it."""
        chosen = {name: getattr(self, name) for name in ("vote", "prior", "spelling")}
        return {"taught_penalty": TAUGHT_PENALTY, **chosen}
