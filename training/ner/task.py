"""The task of the tagger, as recipes run it."""

from __future__ import annotations

import typer

from models.encoder.capabilities import Need
from models.releases.manifest import Release
from training.common.program import check_base
from training.evaluation.relation import SPLITS
from training.ner.release import make, refreshed
from training.ner.settings import Settings
from training.recipes.stages import Place, Task


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a split that is none, and for a base that is no encoder."""
    if settings.split not in SPLITS:
        raise typer.BadParameter(f"no split {settings.split!r} of the ADE corpus")
    check_base(settings.base, Need())


def refresh(release: Release, place: Place) -> Release:
    return refreshed([release], place)


TASK = Task(Settings, check, make, refreshed, refresh, is_reviewed=True)
