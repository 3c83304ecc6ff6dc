"""Settings of a run of CLNER, CLDR or CLGS; training/recipes/relation.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from training.common.precision import Precision


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run."""

    base: str
    objective: Literal["clner", "cldr", "clgs"]
    split: str
    epochs: Annotated[int, Field(ge=1)]
    average: Annotated[int, Field(ge=0)]
    lr: float
    head_lr: float
    batch: Annotated[int, Field(ge=1)]
    teaching: Annotated[float, Field(ge=0, le=1)]
    negatives: Annotated[int, Field(ge=0)]
    heads: bool
    limit: Annotated[int, Field(ge=0)]
    seed: int
    precision: Precision
