"""The task of the acronym model, as recipes run it."""

from __future__ import annotations

import typer

from models.encoder.capabilities import Need
from training.acronym.data import CORPORA, COUNTED, WRITTEN
from training.acronym.release import make
from training.acronym.settings import Settings
from training.common.program import check_base
from training.recipes.stages import Task


def check(settings: Settings) -> None:
    """Raises typer.BadParameter for a corpus that is none, and for a base that is no encoder."""
    known = (WRITTEN, *CORPORA) if settings.is_network else COUNTED
    for name in settings.names:
        if name not in known:
            raise typer.BadParameter(f"corpora: {name!r} is none of {', '.join(known)}")
    if settings.is_network:
        check_base(settings.base, Need(pieces=settings.pieces, is_split=True))


TASK = Task(Settings, check, make)
