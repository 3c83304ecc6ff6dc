"""Settings of a run of the acronym model; the fields are the options of `python -m training.acronym`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from models.acronym.m_network import HeadConfig
from models.acronym.model import CLINICAL
from training.common.arguments import any_of, existing_folders
from training.common.precision import PrecisionOption

Objective = Literal["triplet", "m", "softmax"]
#: Of `--corpora` and `--validated`.
CORPORA = ("casi", "ade", "ade_defined", "phrases", "written", "sdu22_scientific", "sdu22_legal")


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of the trained network; `make train` has those of the bundled release."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini"
    corpora: Annotated[
        str,
        typer.Option(
            callback=any_of(*CORPORA),
            help="training corpora, separated by commas: casi, ade, ade_defined, written, phrases, "
            "sdu22_scientific, sdu22_legal",
        ),
    ] = "casi,ade"
    validated: Annotated[
        str,
        typer.Option(
            help="corpora that are used for validation only, as --corpora", callback=any_of(*CORPORA)
        ),
    ] = ""
    objective: Annotated[
        Objective,
        typer.Option(
            help="m, triplet: the paper's networks and losses, an anchor being another sentence of the same "
            "long form; softmax: over the long forms, which are compared alone and by their letters"
        ),
    ] = "softmax"
    shared_dropout: Annotated[
        bool,
        typer.Option(
            help="m, triplet: one dropout mask for a sentence and its long forms, not one for each text"
        ),
    ] = False
    layers: Annotated[int, typer.Option(help="number of upper layers that are trained; 0: none")] = 2
    rank: Annotated[int, typer.Option(help="rank of the adapter; 0: train the layers' own weights")] = 16
    lr: Annotated[float, typer.Option(help="learning rate of the encoder")] = 1e-3
    head_lr: Annotated[float, typer.Option(help="learning rate of the scoring head")] = 3e-3
    epochs: Annotated[int, typer.Option(help="passes over the training rows")] = 3
    batch: Annotated[int, typer.Option(help="rows of a batch")] = 32
    rows: Annotated[int, typer.Option(help="maximum training rows of one long form; 0: all")] = 3
    max_pieces: Annotated[int, typer.Option(help="maximum word pieces of a text")] = 128
    held_out: Annotated[float, typer.Option(help="share of the acronyms held out for validation")] = 0.15
    validate: Annotated[int, typer.Option(help="maximum validation rows; 0: all")] = 800
    seed: Annotated[int, typer.Option(help="seed of weights, order and validation part")] = 0
    precision: PrecisionOption = "auto"

    @property
    def corpus_names(self) -> tuple[str, ...]:
        return tuple(self.corpora.split(","))

    @property
    def validated_names(self) -> tuple[str, ...]:
        """The corpora that are only validated, on their rows of held-out acronyms."""
        return tuple(self.validated.split(",")) if self.validated else ()

    @property
    def shape(self) -> HeadConfig:
        """The parts of the head."""
        is_paper = self.objective != "softmax"
        return HeadConfig(distance=is_paper, alone=not is_paper, surface_features=not is_paper)


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """What a release holds in addition to a trained network, or in its place."""

    dictionary: Annotated[
        Path, typer.Option(exists=True, help="a .tsv with the columns short_form, long_form")
    ] = CLINICAL
    zero_shot: Annotated[bool, typer.Option(help="train nothing: use distances of the base model")] = False
    usage_examples: Annotated[
        bool, typer.Option(help="add prototypes from CASI and from long forms in ADE texts")
    ] = True
    without: Annotated[
        str,
        typer.Option(
            help="casi, ade or both, separated by a comma: corpora that prototypes, weights and dictionary "
            "do not learn from; --corpora and --validated must not name them either"
        ),
    ] = ""
    like: Annotated[
        str,
        typer.Option(
            callback=existing_folders,
            help="folder of a release whose network is kept; its dictionary and prototypes are new",
        ),
    ] = ""
    share: Annotated[
        float,
        typer.Option(help="factor of the adapter's change in the release, 0 to 1; prototypes may need less"),
    ] = 1.0

    @property
    def left_out(self) -> tuple[str, ...]:
        """The corpora of `without`."""
        return tuple(self.without.split(",")) if self.without else ()
