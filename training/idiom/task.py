"""The task of idiom-aware sentence vectors, as recipes run it."""

from __future__ import annotations

from models.encoder.capabilities import Need
from training.common.program import check_base
from training.idiom.release import make
from training.idiom.settings import Settings
from training.recipes.stages import Task

TASK = Task(Settings, check=lambda settings: check_base(settings.base, Need()), train=make)
