"""The program that makes releases: a recipe from nothing on a few texts, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.releases.manifest import Release
from models.releases.store import open_release
from tests.models import tiny as tiny_models
from tests.training.idiom.conftest import semeval
from tests.training.normalization.small_terms import write_corpus
from training.__main__ import app
from training.common.corpora import ADE_NEGATIVES
from training.recipes.recipe import read_recipe
from training.recipes.stages import task_of

__all__ = ["semeval"]
pytestmark = pytest.mark.usefixtures("few_written")


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
def test_the_recipe_of_relation_makes_a_release_from_nothing(corpus: Path, tmp_path: Path) -> None:
    """Of CLNER, then CLDR over it, in one command."""
    given = [f"base={tiny_models.bert(tmp_path / 'base')}", "epochs=1", "teaching=0.0", "negatives=2"]
    more = [part for one in given for part in ("--set", one)]
    code, said = run("relation", "--data", corpus, "--output", tmp_path, *more)
    assert code == 0
    assert "clner epoch  1" in said and "cldr epoch  1" in said
    training = release_of(tmp_path, "relation").manifest.configuration["training"]
    assert (training["objective"], training["before"]["objective"]) == ("cldr", "clner")


def test_unknown_settings_and_releases_without_a_terminology_are_refused(
    tmp_path: Path, tiny: dict[str, Release]
) -> None:
    code, said = run("idiom", "--data", tmp_path, "--set", "lrr=1")
    assert code == 2
    assert "no setting 'lrr'; known are base, corpus, language" in said
    code, said = run("refresh", tiny["ner"].path, "--terms", tmp_path)
    assert code == 2
    assert "a release of ner has no terminology" in said


@pytest.mark.slow
def test_a_release_of_idioms_has_no_table_and_stays_as_it_is(semeval: Path, tmp_path: Path) -> None:
    given = [f"base={tiny_models.bert(tmp_path / 'base')}", "epochs=1", "rank=2"]
    more = [part for one in given for part in ("--set", one)]
    code, _ = run("idiom", "--data", semeval, "--output", tmp_path, *more)
    assert code == 0
    release = release_of(tmp_path, "idiom")
    code, said = run("refresh", release.path, "--output", tmp_path / "again")
    assert code == 0 and not (tmp_path / "again").exists()
    assert f"{release.version} has no table, so today's tables change nothing: it stays as it is" in said
    assert f"release {release.version} in {release.path}" in said


@pytest.mark.slow
def test_the_recipe_of_ner_makes_a_release_from_nothing_and_makes_it_again(
    corpus: Path, tmp_path: Path
) -> None:
    """All its stages, each of one epoch over a few texts."""
    base = tiny_models.bert(tmp_path / "base")
    given = [f"base={base}", "limit=5", "epochs=1", "teaching=0.01", "reports=0"]
    more = [part for one in given for part in ("--set", one)]
    code, said = run("ner", "--data", corpus, "--output", tmp_path, "--run", tmp_path / "run", *more)
    assert code == 0
    release = release_of(tmp_path, "ner")
    first, *_, last = read_recipe("ner", task_of("ner").settings, None, {}).stages
    assert f"1_{first.name}, run 1 of 1" in said and f"_{last.name}, run 2 of 2" in said
    assert len(release.manifest.configuration["mean_of"]) == len(last.runs)
    assert ADE_NEGATIVES in release.manifest.training_data
    before = [open_release(path.parent) for path in (tmp_path / "run").rglob("manifest.json")]
    assert len(before) > len(last.runs)
    assert release.manifest.scores and not any(other.manifest.scores for other in before)
    code, _ = run("refresh", release.path, "--data", corpus, "--output", tmp_path / "again")
    assert code == 0
    again = release_of(tmp_path / "again", "ner")
    assert again.manifest.configuration["like"] == release.version
    assert again.manifest.files == release.manifest.files


@pytest.mark.slow
def test_a_release_of_normalization_begins_with_another_and_gets_other_terms(tmp_path: Path) -> None:
    """The recipe from nothing over a few terms; its release, made again without any corpus."""
    folder, base = write_corpus(tmp_path), tiny_models.bert(tmp_path / "base")
    terms, data = folder / "terms.tsv", folder / "data"
    given = ["normalization", "--data", data, "--set", f"base={base}", "--set", f"terms={terms}"]
    code, said = run(*given, "--set", "limit=4", "--set", "epochs=1", "--output", tmp_path / "first")
    assert code == 0 and "1_phrases, run 1" in said and "2_sentences, run 1" in said
    first = release_of(tmp_path / "first", "normalization")
    assert {"isolated.safetensors", "dcr.safetensors"} <= first.manifest.files.keys()
    (tmp_path / "one.toml").write_text("[settings]\nepochs = 0\n[[stage]]\n", encoding="utf-8")
    given += ["--recipe", tmp_path / "one.toml"]
    code, _ = run(*given, "--set", f"start={first.path}", "--output", tmp_path / "second")
    assert code == 0
    trained = release_of(tmp_path / "second", "normalization").manifest.configuration["training"]
    # No path of this machine.
    assert (trained["start"], trained["terms"]) == (first.version, "terms.tsv")
    terms.write_text("llt\tpt\tsoc\nsore\tPain\t-\nfit\tSeizure\t-\n", encoding="utf-8")
    code, said = run("refresh", first.path, "--output", tmp_path / "other")
    assert code == 2 and "--data is needed" in said
    code, _ = run("refresh", first.path, "--terms", terms, "--output", tmp_path / "other")
    assert code == 0
    other = release_of(tmp_path / "other", "normalization").manifest
    configuration = other.configuration
    assert (configuration["terms"], configuration["like"], other.scores) == (2 + 2, first.version, [])
