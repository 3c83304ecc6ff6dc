"""Runs of recipes: what begins with what, what is done once, and what a stopped run does again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

from models.releases.manifest import Release
from models.releases.store import build
from tests.models.releases.small_release import CONTENTS, manifest_of
from training.common.checkpoint import CheckpointError
from training.recipes.recipe import Recipe, RecipeError, Stage
from training.recipes.stages import Place, Task, run_recipe


@dataclass(frozen=True, slots=True)
class Settings:
    seed: int = 42
    precision: str = "auto"


class PowerCut(Exception):
    pass


@dataclass
class Made:
    """What a task was asked for, in order; `ends` is the seed before which the power goes."""

    ends: int | None = None
    calls: list[str] = field(default_factory=list)
    checkpoints: list[Path | None] = field(default_factory=list)
    scored: list[str] = field(default_factory=list)

    def _release(self, kind: str, place: Place) -> Release:
        self.calls.append(kind)
        self.scored += [kind] if place.is_scored else []
        source = place.output / "files" / kind
        source.mkdir(parents=True)
        for name, content in CONTENTS.items():
            (source / name).write_bytes(content)
        return build(source, manifest_of(source, kind=kind), place.output)

    def train(self, settings: Settings, place: Place) -> Release:
        if settings.seed == self.ends:
            raise PowerCut
        assert settings.precision in {"float32", "bfloat16"}
        self.checkpoints.append(place.checkpoints)
        before = place.start.manifest.kind if place.start else "base"
        return self._release(f"{before}-{settings.seed}", place)

    def mean(self, releases: Sequence[Release], place: Place) -> Release:
        return self._release("+".join(r.manifest.kind for r in releases), place)

    def task(self) -> Task:
        return Task(Settings, lambda settings: None, self.train, self.mean, is_reviewed=True)


RECIPE = Recipe(
    "ner",
    (
        Stage("first", (Settings(1),)),
        Stage("further", (Settings(2), Settings(3))),
        Stage("last", (Settings(4), Settings(5))),
    ),
)
CALLS = ["base-1", "base-1-2", "base-1-3", "base-1-2+base-1-3"]
CALLS += [f"{CALLS[-1]}-4", f"{CALLS[-1]}-5", f"{CALLS[-1]}-4+{CALLS[-1]}-5"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    yield Place(tmp_path / "data", tmp_path / "out", torch.device("cpu"))


def test_each_stage_begins_with_the_release_of_the_one_before_or_the_mean_of_its_runs(place: Place) -> None:
    made = Made()
    release = run_recipe(made.task(), RECIPE, place)
    assert made.calls == CALLS
    assert set(made.checkpoints) == {None}, "nothing is kept where no folder is named"
    assert release.manifest.kind == CALLS[-1]
    assert made.scored == CALLS[-1:], "of others no scores are read"
    assert [path.parent for path in place.output.rglob("manifest.json")] == [release.path]


@pytest.mark.parametrize("ends", [1, 3, 5])
def test_a_stopped_run_goes_on_with_what_was_not_made(place: Place, tmp_path: Path, ends: int) -> None:
    stopped, folder = Made(ends), tmp_path / "run"
    with pytest.raises(PowerCut):
        run_recipe(stopped.task(), RECIPE, place, folder)
    further = Made()
    release = run_recipe(further.task(), RECIPE, place, folder)
    assert stopped.calls + further.calls == CALLS
    assert len({*stopped.checkpoints, *further.checkpoints} - {None}) == 5
    again = Made()
    assert run_recipe(again.task(), RECIPE, place, folder).version == release.version
    assert again.calls == []


def test_a_folder_is_of_one_recipe_and_of_one_file_of_reviews(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run_recipe(Made().task(), RECIPE, place, folder)
    with pytest.raises(CheckpointError, match="of a run with other settings or reviews"):
        run_recipe(Made().task(), Recipe("ner", RECIPE.stages[:1]), place, folder)
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text("{}\n", encoding="utf-8")
    reviewed = Place(place.data, place.output, place.device, reviews)
    with pytest.raises(CheckpointError, match="of a run with other settings or reviews"):
        run_recipe(Made().task(), RECIPE, reviewed, folder)


def test_nothing_is_trained_where_the_task_cannot_do_what_is_asked(place: Place) -> None:
    made = Made()
    with pytest.raises(RecipeError, match="ner learns nothing from reviews"):
        run_recipe(replace(made.task(), is_reviewed=False), RECIPE, replace(place, reviews=place.data))
    with pytest.raises(RecipeError, match="several seeds, but releases of ner have no mean"):
        run_recipe(Task(Settings, lambda settings: None, made.train), RECIPE, place)
    assert made.calls == []
