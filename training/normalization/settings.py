"""Settings of a run of normalization; training/recipes/normalization.toml has the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from training.common.precision import Precision

#: The terminology that comes with the package.
BUNDLED = "bundled"

#: A release that searches phrases reads mentions of so many words at most in their sentence.
CONTEXT_WORDS = 1
#: And so many pieces of it: of 137 development mentions 85 are right, by 64 pieces 86 at twice the time.
CONTEXT_PIECES = 16


@dataclass(frozen=True, slots=True)
class Settings:
    """What determines the weights of a run, and how its release searches; by default the recipe."""

    base: str = "mini"
    trained: Literal["isolated", "context"] = "isolated"
    context_base: str = ""
    start: str = ""
    epochs: Annotated[int, Field(ge=0)] = 2
    lr: Annotated[float, Field(gt=0)] = 1.5e-4
    batch: Annotated[int, Field(ge=1)] = 192
    window: Annotated[int, Field(ge=5)] = 64
    search: Literal["phrases", "paper"] = "phrases"
    terms: str = BUNDLED
    limit: Annotated[int, Field(ge=0)] = 0
    seed: int = 42
    precision: Precision = "auto"

    @property
    def base_of_context(self) -> str:
        """The base of S_context."""
        return self.context_base or self.base
