"""Settings of a run of the acronym model; training/recipes/acronym.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from training.common.precision import Precision

Objective = Literal["tables", "m", "triplet"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines a release; the defaults are those of the recipe."""

    corpora: str = "written,ade,casi"
    objective: Objective = "tables"
    frequency: Annotated[float, Field(ge=0)] = 1.0
    cues: Annotated[float, Field(ge=0)] = 3.0
    base: str = "mini"
    shared_dropout: bool = False
    lr: float = 5e-4
    epochs: Annotated[int, Field(ge=1)] = 10
    pieces: Annotated[int, Field(ge=64)] = 256
    limit: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    precision: Precision = "auto"

    @property
    def names(self) -> tuple[str, ...]:
        """The corpora."""
        return tuple(self.corpora.split(","))

    @property
    def is_network(self) -> bool:
        """Whether the release has one of the paper's networks."""
        return self.objective != "tables"
