"""The task of relations, as recipes run it."""

from __future__ import annotations

import typer

from models.encoder.capabilities import Need
from models.releases.manifest import Release
from training.common.program import check_base
from training.evaluation.relation import SPLITS
from training.recipes.stages import Place, Task
from training.relation.release import make, refreshed
from training.relation.settings import Settings


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a split that is none, and for a base that cannot be split."""
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")
    check_base(settings.base, Need(is_split=True))


def train(settings: Settings, place: Place) -> Release:
    if settings.objective == "clner" and place.start is not None:
        raise typer.BadParameter("CLNER begins with the base: only the first stage can train it")
    return make(settings, place)


TASK = Task(Settings, check, train, refresh=refreshed)
