"""Settings of a run of the acronym model; the fields are the options of `python -m training.acronym`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from models.acronym.acronym_encoder import Pooling
from models.acronym.m_network import HeadConfig
from models.acronym.model import CLINICAL
from training.common.precision import PrecisionOption

Objective = Literal["triplet", "m", "softmax"]
Anchor = Literal["own", "other"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of the trained network; `make train` has those of the bundled release."""

    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini"
    corpora: Annotated[
        str,
        typer.Option(
            help="of casi, ade, ade_defined, written, phrases, sdu22_scientific and sdu22_legal, separated "
            "by commas"
        ),
    ] = "casi,ade"
    validated: Annotated[
        str, typer.Option(help="further corpora that are never trained on, like --corpora")
    ] = ""
    objective: Annotated[Objective, typer.Option(help="the loss")] = "softmax"
    anchor: Annotated[
        Anchor, typer.Option(help="a row's own sentence, or another one of the same long form")
    ] = "own"
    pooling: Annotated[
        Pooling, typer.Option(help="mean over the text, over the acronym's pieces, or both")
    ] = "both"
    size: Annotated[int, typer.Option(help="of the dense layer")] = 64
    distance: Annotated[
        bool, typer.Option(help="the m-network itself; without it the other parts alone score")
    ] = True
    fit: Annotated[bool, typer.Option(help="also score the sentence with the long form by itself")] = False
    alone: Annotated[
        bool, typer.Option(help="also compare the sentence with the long form without a sentence")
    ] = True
    surface: Annotated[bool, typer.Option(help="also score letters, case and number next to the acronym")] = (
        True
    )
    dropout: Annotated[float, typer.Option(help="before the dense layer; 0.5 in the paper")] = 0.1
    shared_dropout: Annotated[
        bool, typer.Option(help="drop the same entries of a sentence and of its long forms, not each's own")
    ] = False
    layers: Annotated[int, typer.Option(help="the last ones that are trained; 0: none")] = 2
    rank: Annotated[int, typer.Option(help="of the adapter; 0: the layers' own weights")] = 16
    lr: Annotated[float, typer.Option(help="of the encoder")] = 1e-3
    head_lr: Annotated[float, typer.Option(help="of what is above the encoder")] = 3e-3
    epochs: Annotated[int, typer.Option(help="passes over the training rows")] = 3
    batch: Annotated[int, typer.Option(help="rows of a batch")] = 32
    rows: Annotated[int, typer.Option(help="training rows of one long form at most; 0: all")] = 3
    candidates: Annotated[int, typer.Option(help="long forms of a training row at most; 0: all")] = 0
    max_pieces: Annotated[int, typer.Option(help="of a text at most")] = 128
    held_out: Annotated[float, typer.Option(help="share of the acronyms, for validation")] = 0.15
    validate: Annotated[int, typer.Option(help="validation rows at most; 0: all")] = 800
    seed: Annotated[int, typer.Option(help="of weights, order and validation part")] = 0
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
        return HeadConfig(self.pooling, self.size, self.distance, self.fit, self.alone, self.surface)


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """What a release holds in addition to a trained network, or in its place."""

    dictionary: Annotated[Path, typer.Option(help="a .tsv with short_form, long_form")] = CLINICAL
    zero_shot: Annotated[bool, typer.Option(help="train nothing: distances by the base as it is")] = False
    usage_examples: Annotated[
        bool, typer.Option(help="prototypes of CASI and of long forms in ADE texts")
    ] = True
    written: Annotated[
        bool, typer.Option(help="prototypes and long forms of the teaching corpus' sentences as well")
    ] = True
    share: Annotated[
        float,
        typer.Option(
            help="of the adapter's change of the encoder that is kept: prototypes need less than all"
        ),
    ] = 1.0
    limit: Annotated[int, typer.Option(help="rows scored at most, with --zero-shot; 0: all")] = 0
