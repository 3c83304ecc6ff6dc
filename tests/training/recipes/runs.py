"""A single run of a task, as the one stage of a recipe."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from models.releases.manifest import Release
from training.common.program import DeviceName, device_of
from training.recipes.recipe import RECIPES, Recipe, Stage, checked
from training.recipes.stages import Place, run_recipe, task_of


def settings_of(name: str, **changes: Any) -> Any:
    """The settings of a bundled recipe before its stages, with these changes."""
    common = tomllib.loads((RECIPES / f"{name}.toml").read_text(encoding="utf-8"))["settings"]
    return checked(task_of(name).settings, common | changes, name)


def made(
    name: str, *, data: Path, output: Path, run: Path | None = None, device: DeviceName = "cpu", **more: Any
) -> Release:
    """The release of a run. `more`: `start`, `reviews`, and the settings that differ from the recipe's."""
    task, parts = task_of(name), {key: more.pop(key) for key in ("start", "reviews") if key in more}
    recipe = Recipe(name, (Stage("only", (settings_of(name, **more),)),))
    return run_recipe(task, recipe, Place(data, output, device_of(device), **parts), run)
