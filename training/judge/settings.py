"""Settings of a run of a judge; training/recipes/judge.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from models.judge.base import NAME
from training.common.precision import Precision

_CORPUS = "(written|psytar|reviews)"
Corpora = Annotated[str, Field(pattern=rf"^{_CORPUS}(\+{_CORPUS})*$")]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; the defaults are those of the recipe."""

    base: str = NAME
    corpora: Corpora = "written+psytar"
    unmatched: bool = True
    stated: Share = 0.0
    around: Literal["sentence", "characters"] = "characters"
    texts: Literal["effects", "events"] = "effects"
    max_pieces: Annotated[int, Field(ge=16, le=512)] = 256
    hidden: Annotated[int, Field(ge=0)] = 128
    epochs: Annotated[int, Field(ge=1)] = 12
    lr: float = 2e-3
    decay: float = 0.01
    dropout: Share = 0.1
    threshold: Share = 0.3
    raised_from: Share = 0.7
    cache: str = "~/.cache/pvstream"
    limit: Annotated[int, Field(ge=0)] = 0
    seed: int = 42
    precision: Precision = "auto"
