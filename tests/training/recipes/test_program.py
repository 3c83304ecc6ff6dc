"""The program that makes releases: a recipe from nothing on a few texts, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.releases.manifest import Release
from models.releases.store import open_release
from tests.models import tiny
from tests.training.idiom.conftest import semeval
from training.__main__ import app

__all__ = ["semeval"]


def run(*given: object) -> tuple[int, str]:
    """The exit code and what was printed."""
    answer = CliRunner().invoke(app, [str(part) for part in given], env={"COLUMNS": "300"})
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return answer.exit_code, answer.output


def release_of(root: Path, task: str) -> Release:
    (path,) = (root / task).iterdir()
    return open_release(path)


@pytest.mark.slow
def test_the_recipe_of_idiom_makes_a_release_from_nothing(semeval: Path, tmp_path: Path) -> None:
    base = tiny.bert(tmp_path / "base")
    given = ["idiom", "--data", semeval, "--output", tmp_path, "--set", f"base={base}", "--set", "limit=4"]
    code, said = run(*given, "--set", "epochs=1", "--run", tmp_path / "run")
    assert code == 0
    release = release_of(tmp_path, "idiom")
    assert f"release {release.version} in" in said
    assert release.manifest.configuration["training"]["limit"] == 4


def test_an_unknown_setting_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    code, said = run("idiom", "--data", tmp_path, "--set", "lrr=1")
    assert code == 2
    assert "no setting 'lrr'; known are base, corpus, language" in said


def test_a_release_without_a_recipe_is_not_made_again(tiny: dict[str, Release], tmp_path: Path) -> None:
    code, said = run("refresh", tiny["summarization"].path, "--data", tmp_path)
    assert code == 2
    assert "no recipe makes releases of summarization" in said
