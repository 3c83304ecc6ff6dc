"""Settings of a run of idiom-aware vectors; training/recipes/idiom.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from training.common.precision import Precision


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; the defaults are those of the recipe."""

    base: str = "mini"
    corpus: Literal["semeval", "written"] = "semeval"
    language: Literal["EN", "PT"] = "EN"
    pooling: Literal["last", "last_two"] = "last"
    paraphrase: bool = True
    epochs: Annotated[int, Field(ge=1)] = 6
    rank: Annotated[int, Field(ge=0)] = 16
    lr: float = 3e-4
    batch: Annotated[int, Field(ge=2)] = 64
    distillation: Annotated[float, Field(ge=0)] = 20.0
    sentences: Annotated[int, Field(ge=0)] = 5
    limit: Annotated[int, Field(ge=0)] = 0
    seed: int = 42
    precision: Precision = "auto"
