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
    unmatched: bool = False
    stated: Share = 0.5
    around: Literal["sentence", "characters"] = "sentence"
    texts: Literal["effects", "events"] = "effects"
    max_pieces: Annotated[int, Field(ge=16, le=512)] = 256
    hidden: Annotated[int, Field(ge=0)] = 0
    epochs: Annotated[int, Field(ge=1)] = 20
    lr: float = 1e-3
    decay: float = 0.1
    keep: Share = 0.95
    raised_from: Share = 0.7
    cache: str = "~/.cache/pvstream"
    limit: Annotated[int, Field(ge=0)] = 0
    seed: int = 42
    precision: Precision = "auto"
