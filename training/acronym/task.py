"""The task of the acronym model, as recipes run it."""

from __future__ import annotations

import typer

from models.acronym.prototypes import WRITTEN
from models.encoder.capabilities import Need
from training.acronym.data import CORPORA
from training.acronym.release import make, refreshed
from training.acronym.settings import Settings
from training.common.program import check_base
from training.recipes.stages import Task


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a corpus that is none, and for a base that is no encoder."""
    for name in settings.names:
        if name not in (WRITTEN, *CORPORA):
            raise typer.BadParameter(f"corpora: {name!r} is none of {', '.join((WRITTEN, *CORPORA))}")
    if settings.names == ("casi",) and not settings.is_paper:
        raise typer.BadParameter("corpora: softmax does not learn from casi alone, which makes prototypes")
    check_base(settings.base, Need(pieces=settings.pieces, is_split=True))


TASK = Task(Settings, check, make, refresh=refreshed)
