"""Settings of a run of the acronym model; training/recipes/acronym.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from models.acronym.m_network import HeadConfig
from training.common.precision import Precision

Objective = Literal["softmax", "m", "triplet"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run; the defaults are those of the recipe."""

    base: str = "mini"
    corpora: str = "written,ade,casi"
    objective: Objective = "softmax"
    layers: Annotated[int, Field(ge=1)] = 2
    rank: Annotated[int, Field(ge=0)] = 16
    lr: float = 5e-4
    epochs: Annotated[int, Field(ge=1)] = 2
    rows: Annotated[int, Field(ge=0)] = 2
    pieces: Annotated[int, Field(ge=64)] = 96
    limit: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    precision: Precision = "auto"

    @property
    def names(self) -> tuple[str, ...]:
        """The corpora."""
        return tuple(self.corpora.split(","))

    @property
    def is_paper(self) -> bool:
        """Whether the network is one of the paper's."""
        return self.objective != "softmax"

    @property
    def shape(self) -> HeadConfig:
        """The parts of the head."""
        return HeadConfig(self.is_paper, alone=not self.is_paper, surface_features=not self.is_paper)
