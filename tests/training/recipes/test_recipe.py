"""What recipes say, and what is wrong with others."""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from training.recipes import recipe
from training.recipes.recipe import RECIPES, RecipeError, changes_of, checked, read_recipe, task_names
from training.recipes.stages import task_of


@dataclass(frozen=True, slots=True)
class Painting:
    hue: Annotated[int, Field(ge=0, le=9)] = 3
    gloss: float = 0.5
    medium: Literal["oil", "ink"] = "oil"
    dark: bool = False
    seed: int = 42


BUNDLED = """
[settings]
hue = 3
gloss = 0.5
medium = "oil"
dark = false
seed = 42
[[stage]]
name = "ground"
hue = 1
[[stage]]
name = "top"
hue = 2
seeds = [7, 8]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose bundled recipe is of paintings."""
    (tmp_path / "painting.toml").write_text(BUNDLED, encoding="utf-8")
    monkeypatch.setattr(recipe, "RECIPES", tmp_path)
    return tmp_path


def runs(file: Path | None = None, *given: str) -> dict[str, list[Painting]]:
    made = read_recipe("painting", Painting, file, changes_of(list(given)))
    return {stage.name: list(stage.runs) for stage in made.stages}


@pytest.mark.usefixtures("folder")
def test_a_stage_has_the_settings_of_all_and_those_that_are_its_own() -> None:
    assert runs() == {"ground": [Painting(1)], "top": [Painting(2, seed=7), Painting(2, seed=8)]}


def test_what_differs_is_in_every_stage_unless_stages_are_given_too(folder: Path) -> None:
    file = folder / "mine.toml"
    file.write_text('[settings]\nhue = 5\nmedium = "ink"\n', encoding="utf-8")
    assert runs(file)["ground"] == [Painting(5, medium="ink")]
    file.write_text(file.read_text(encoding="utf-8") + "[[stage]]\nhue = 6\n[[stage]]\n", encoding="utf-8")
    assert runs(file) == {"1": [Painting(6, medium="ink")], "2": [Painting(5, medium="ink")]}
    assert runs(file, "hue=9", "dark=true", "medium=oil") == {n: [Painting(9, dark=True)] for n in "12"}


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("", ["huee=1"], "no setting 'huee'; known are hue, gloss, medium, dark, seed"),
        ("", ["hue=10"], "hue is 10, it should be less than or equal to 9"),
        ("", ["hue=true"], "hue is True, it should be a valid integer"),
        ("", ["dark=1"], "dark is 1, it should be a valid boolean"),
        ("", ["gloss=much"], "gloss is 'much', it should be a valid number"),
        ("", ["medium=chalk"], "medium is 'chalk', it should be 'oil' or 'ink'"),
        ("", ["hue"], "--set hue: expected key=value"),
        ("", ["seeds=[1]"], "only a recipe has seeds"),
        ("[setting]\n", [], "no part 'setting'; known are [settings] and [[stage]]"),
        ("hue = 3\n", [], "no part 'hue'"),
        ("[stage]\nhue = 3\n", [], "stages are tables, [[stage]]"),
        ("[[stage]]\nseeds = 3\n", [], "seeds is 3, it should be a list of integers"),
        ("[[stage]]\nseeds = ['a']\n", [], "seed is 'a', it should be a valid integer"),
        ("[settings\n", [], "is no recipe"),
    ],
)
def test_what_is_wrong_in_a_recipe_is_one_line(folder: Path, text: str, given: list[str], said: str) -> None:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as refused:
        runs(file, *given)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2
    with pytest.raises(RecipeError, match=r"none\.toml is no recipe"):
        runs(folder / "none.toml")


@pytest.mark.parametrize("name", task_names())
def test_a_bundled_recipe_has_every_setting_with_a_reason_and_the_default(name: str) -> None:
    text = (RECIPES / f"{name}.toml").read_text(encoding="utf-8")
    kind = task_of(name).settings
    common: dict[str, Any] = tomllib.loads(text)["settings"]
    # The judge's settings are the tagger's but for those that its class states.
    assert list(common) == list(kind.__annotations__)
    assert asdict(checked(kind, common, name)).items() >= common.items()
    defaults = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    assert {key: defaults[key] for key in common if key in defaults}.items() <= common.items()
    lines = text[text.index("[settings]") :].split("[[stage]]")[0].splitlines()
    settings = [line for line in lines if re.match(r"\w+ = ", line)]
    assert [line for line in settings if not re.search(r"  # .{10}", line)] == []
    assert read_recipe(name, kind, None, {}).stages


def test_all_tasks_together_have_at_most_a_hundred_settings() -> None:
    kinds = [task_of(name).settings for name in task_names()]
    # The judge has the tagger's, and states some anew.
    assert sum(len(fields(kind)) for kind in kinds if kind.__base__ is object) <= 100


@pytest.mark.parametrize("path", sorted((RECIPES / "papers").glob("*.toml")), ids=lambda path: path.stem)
def test_a_papers_recipe_can_be_read_and_differs(path: Path) -> None:
    kind = task_of(path.stem).settings
    assert read_recipe(path.stem, kind, path, {}) != read_recipe(path.stem, kind, None, {})
