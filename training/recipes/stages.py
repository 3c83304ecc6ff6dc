"""Runs a recipe stage by stage, and goes on where a run that was stopped ended."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from models.releases.manifest import Release
from models.releases.store import open_release
from training.common.checkpoint import CheckpointError
from training.common.precision import resolved
from training.recipes.recipe import Recipe, RecipeError

console = Console()
#: Where the task is that has no package of its own.
_MODULES = {"judge": "training.ner.judge"}
_RECIPE, _RELEASE = "recipe.json", "release.txt"


@dataclass(frozen=True, slots=True)
class Place:
    """What a run reads and where it writes."""

    data: Path
    output: Path
    """root folder of the release"""
    device: torch.device
    reviews: Path | None = None
    checkpoints: Path | None = None
    """folder from which a run that was stopped resumes; None: nothing is kept"""
    start: Release | None = None
    """the release that the run begins with; None: the base"""
    is_scored: bool = True
    """whether the release is that of the recipe; the scores of others are never read"""


@dataclass(frozen=True, slots=True)
class Task:
    """What a task gives to recipes, as `TASK` of its module."""

    settings: type[Any]
    """frozen dataclass, one field for each key"""
    check: Callable[[Any], None]
    """raises typer.BadParameter where settings cannot be used, before anything is read"""
    train: Callable[[Any, Place], Release]
    mean: Callable[[Sequence[Release], Place], Release] | None = None
    """the release whose weights are the mean of those of several"""
    refresh: Callable[[Release, Place], Release] | None = None
    """the same release again with today's tables, or itself where it has none; nothing is trained"""
    is_reviewed: bool = False
    """whether it learns from reviews"""


def task_of(name: str) -> Task:
    """Imports the package of a task, which takes seconds. Raises RecipeError where it has no recipe."""
    try:
        task: Task = import_module(_MODULES.get(name, f"training.{name}.release")).TASK
    except ModuleNotFoundError:
        raise RecipeError(f"no recipe makes releases of {name}") from None
    return task


def run_recipe(task: Task, recipe: Recipe, place: Place, folder: Path | None = None) -> Release:
    """The release of the last stage, below `place.output`; those of the others are below `folder`, which is
    temporary where it is None. Raises CheckpointError where the folder is of another recipe.
    """
    for settings in {run: None for stage in recipe.stages for run in stage.runs}:
        task.check(settings)
    if place.reviews and not task.is_reviewed:
        raise RecipeError(f"{recipe.task} learns nothing from reviews")
    several = [stage.name for stage in recipe.stages if len(stage.runs) > 1]
    if several and task.mean is None:
        raise RecipeError(f"stage {several[0]} has several seeds, but releases of {recipe.task} have no mean")
    with nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="recipe-") as work:
        root = Path(work)
        _check_same(root, recipe, place)
        for number, stage in enumerate(recipe.stages, 1):
            is_last = number == len(recipe.stages)
            own = root / f"{number}_{stage.name}"
            output = place.output if is_last else own
            checkpoints = own if folder else None
            here = replace(place, output=output, checkpoints=checkpoints, is_scored=is_last)
            place = replace(place, start=_stage(task, stage.runs, here, own))
        assert place.start is not None
        return place.start


def _stage(task: Task, runs: Sequence[Any], place: Place, folder: Path) -> Release:
    made = []
    for i, settings in enumerate(runs, 1):
        own = folder / f"run_{i}"
        checkpoints = own if place.checkpoints else None
        run = replace(place, checkpoints=checkpoints)
        if len(runs) > 1:
            run = replace(run, output=own, is_scored=False)
        console.print(f"{folder.name}, run {i} of {len(runs)}, seed {settings.seed}", highlight=False)
        fixed = replace(settings, precision=resolved(settings.precision, place.device))
        made.append(_once(own, partial(task.train, fixed, run)))
    if len(made) == 1:
        return made[0]
    assert task.mean is not None
    return _once(folder, partial(task.mean, made, place))


def _once(folder: Path, make: Callable[[], Release]) -> Release:
    """The release that is noted in the folder, else a new one, which is noted."""
    noted = folder / _RELEASE
    if noted.exists():
        return open_release(Path(noted.read_text(encoding="utf-8")))
    release = make()
    _write(noted, str(release.path.absolute()))
    return release


def _check_same(folder: Path, recipe: Recipe, place: Place) -> None:
    reviews = sha256(place.reviews.read_bytes()).hexdigest() if place.reviews else None
    described = json.dumps(recipe.described() | {"reviews": reviews}, indent=1)
    noted = folder / _RECIPE
    if noted.exists() and noted.read_text(encoding="utf-8") != described:
        raise CheckpointError(f"{folder} is of a run with other settings or reviews")
    _write(noted, described)


def _write(path: Path, text: str) -> None:
    """After a crash there is the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
