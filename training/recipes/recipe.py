"""Reads recipes: TOML with `[settings]`, and with `[[stage]]` tables where a release is made in several runs.

The bundled recipe of a task has every setting, that of the judge what differs from the tagger's. A recipe of
a user names what differs from it, and has either no stages or all. Each stage begins with the result of the
one before; `seeds` of a stage are as many runs, whose mean is its result.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import typer
from pydantic import TypeAdapter, ValidationError

#: The bundled recipes, `TASK.toml`, and `papers/` with the settings of the papers.
RECIPES = Path(__file__).parent
_PARTS = {"settings", "stage"}
_OF_A_STAGE = {"name", "seeds"}


class RecipeError(typer.BadParameter):
    """A recipe or a setting is not as it should be; the message is one line."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of a recipe."""

    name: str
    runs: tuple[Any, ...]
    """the settings of each run; several runs differ in the seed alone"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a release is made."""

    task: str
    stages: tuple[Stage, ...]

    def described(self) -> dict[str, Any]:
        """The recipe in plain values."""
        stages = [{"name": s.name, "runs": [asdict(run) for run in s.runs]} for s in self.stages]
        return {"task": self.task, "stages": stages}


def task_names() -> list[str]:
    """The tasks that have a recipe."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def read_recipe(task: str, kind: type[Any], file: Path | None, changes: Mapping[str, Any]) -> Recipe:
    """The recipe of a task with what differs in `file`, and with `changes` in every stage. `kind`: frozen
    dataclass of the settings. Raises RecipeError for unknown keys and values that are none.
    """
    bundled, given = _tables(RECIPES / f"{task}.toml"), _tables(file) if file else {}
    common, differing = bundled.get("settings", {}), given.get("settings", {})
    stages = []
    for number, stage in enumerate(given.get("stage") or bundled.get("stage") or [{}], 1):
        before, after = ({}, stage) if given.get("stage") else (stage, {})
        values = common | before | differing | after | changes
        name, seeds = str(values.pop("name", number)), values.pop("seeds", None)
        where = f"{file or f'the recipe of {task}'}, stage {name}"
        runs = [values] if seeds is None else [values | {"seed": seed} for seed in _seeds(seeds, where)]
        stages.append(Stage(name, tuple(checked(kind, run, where) for run in runs)))
    return Recipe(task, tuple(stages))


def checked(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    """The settings with these values; raises RecipeError with the first that is wrong."""
    known = [field.name for field in fields(kind)]
    if unknown := sorted(values.keys() - set(known)):
        raise RecipeError(f"{where}: no setting {unknown[0]!r}; known are {', '.join(known)}")
    try:
        return TypeAdapter(kind).validate_json(json.dumps(values, default=str), strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        said = wrong["msg"].replace("Input", "it", 1)
        raise RecipeError(f"{where}: {wrong['loc'][0]} is {wrong['input']!r}, {said}") from None


def changes_of(given: list[str]) -> dict[str, Any]:
    """The values of `key=value`, each as in TOML, or a text without quotes. Raises RecipeError."""
    changes = {}
    for one in given:
        key, equals, text = one.partition("=")
        if not equals:
            raise RecipeError(f"--set {one}: expected key=value")
        try:
            changes[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            changes[key.strip()] = text.strip()
    if wrong := sorted(changes.keys() & _OF_A_STAGE):
        raise RecipeError(f"--set {wrong[0]}: only a recipe has {wrong[0]}")
    return changes


def _tables(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecipeError(f"{path} is no recipe: {error}") from None
    if unknown := sorted(found.keys() - _PARTS):
        raise RecipeError(f"{path}: no part {unknown[0]!r}; known are [settings] and [[stage]]")
    stages = found.get("stage", [])
    if not isinstance(found.get("settings", {}), dict) or not isinstance(stages, list):
        raise RecipeError(f"{path}: settings are a table, [settings], and stages are tables, [[stage]]")
    return found


def _seeds(seeds: Any, where: str) -> list[Any]:
    if not isinstance(seeds, list) or not seeds:
        raise RecipeError(f"{where}: seeds is {seeds!r}, it should be a list of integers")
    return seeds
