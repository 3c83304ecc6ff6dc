"""A single run of a task, as the one stage of a recipe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from models.releases.manifest import Release
from training.common.program import DeviceName, device_of
from training.recipes.recipe import Recipe, Stage
from training.recipes.stages import Place, run_recipe, task_of


def made(
    name: str,
    *,
    data: Path,
    output: Path,
    run: Path | None = None,
    device: DeviceName = "cpu",
    **more: Any,
) -> Release:
    """The release of a run. `more`: `start`, `reviews`, and the settings that differ from the defaults."""
    task, parts = task_of(name), {key: more.pop(key) for key in ("start", "reviews") if key in more}
    recipe = Recipe(name, (Stage("only", (replace(task.settings(), **more),)),))
    return run_recipe(task, recipe, Place(data, output, device_of(device), **parts), run)
