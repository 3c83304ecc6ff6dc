"""Settings of a run of the summarizer; training/recipes/summarization.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from training.common.precision import Precision


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; the defaults are those of the recipe."""

    method: Literal["extract", "decoder"] = "extract"
    base: str = "mini"
    epochs: Annotated[int, Field(ge=1)] = 10
    lr: float = 1e-5
    batch: Annotated[int, Field(ge=1)] = 16
    simple: Annotated[float, Field(ge=0)] = 1.0
    hard: Annotated[float, Field(ge=0)] = 1.0
    negatives: Annotated[int, Field(ge=1)] = 128
    limit: Annotated[int, Field(ge=0)] = 0
    seed: int = 42
    precision: Precision = "auto"
