"""Settings of a run of CONORM-NER; training/recipes/ner.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from models import terminology
from training.common.precision import Precision

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Corpora = Literal["both", "ade", "psytar"]
#: Of the preferred terms whose names a tagger looks for, from 0 to 5.
LEAST_FREQUENCY = 2
PROCEDURES = "Surgical and medical procedures"
#: Words up to which sentences are read together, so that the further heads know what is around.
WINDOW = 96
#: Sentences of the ADE corpus without an event that the further heads learn from.
NEGATIVES = 3000
#: Probability of an event, and of its being the writer's, from which a name that is not tagged is a mention.
NAMED_FROM = 0.8


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; the defaults are those of the recipe, before its stages."""

    base: str = "mini"
    corpora: Corpora = "both"
    split: str = "ade_fold_1"
    epochs: Positive = 7
    layers: bool = True
    average: Count = 0
    lr: float = 3e-4
    batch: Positive = 32
    teaching: Share = 0.0
    reports: Count = 0
    heads: bool = False
    decode: Literal["viterbi", "paper"] = "viterbi"
    limit: Count = 0
    seed: int = 42
    precision: Precision = "auto"

    # What only a judge has as settings: see training/recipes/judge.toml.
    rank = 0
    whole = ""
    stated = 0.0
    reviews = False
    own_from = 0.7

    @property
    def window(self) -> int:
        """Words up to which sentences are read together; 0: each is read alone."""
        return WINDOW if self.heads else 0

    @property
    def negatives(self) -> int:
        """Sentences of the ADE corpus without an event that are trained on."""
        return NEGATIVES if self.heads and self.corpora != "psytar" else 0


def event_names() -> list[str]:
    """Names of adverse events that a tagger with further heads looks for. Those of procedures and of what is
    rarely reported, where the terminology says so, are left out: in a post they are mostly something else, as
    "ect" and "clap".
    """
    terms = terminology.load()
    least = LEAST_FREQUENCY if any(t.frequency for t in terms) else 0
    return [t.llt for t in terms if t.frequency >= least and t.soc != PROCEDURES]
