"""References for the bundled releases and for others, and what a program says at its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from models import drift
from models.loading import load
from models.releases.manifest import Release, Score
from models.releases.store import bundled, open_release
from models.types import TASKS
from tests.tiny_releases import TEXTS
from training.common.reference import TextsOf, with_reference
from training.evaluation import reference
from training.evaluation.evaluate import PRIMARY
from training.evaluation.finish import finish, print_scores


def run(*arguments: str) -> str:
    app = typer.Typer()
    app.command()(reference.main)
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_a_release_gets_another_reference_and_version(tiny: dict[str, Release], tmp_path: Path) -> None:
    old, texts = tiny["acronym"], tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"id": str(i), "text": t}) + "\n" for i, t in enumerate(TEXTS)))
    before = old.manifest.files
    printed = run("--release", str(old.path), "--texts", str(texts), "--output", str(tmp_path / "runs"))
    made = open_release(Path(printed.strip().replace("\n", "")))
    assert made.version != old.version
    assert {n: f for n, f in made.manifest.files.items() if n != drift.REFERENCE} == {
        n: f for n, f in before.items() if n != drift.REFERENCE
    }
    loaded = load(made)
    assert loaded.reference is not None
    assert loaded.reference.made_from == "texts.jsonl, as given"
    assert loaded.reference.texts == len(TEXTS)
    assert loaded.reference.histograms["text_length"].edges[0] == min(len(t) for t in TEXTS)


def test_a_file_without_texts_is_refused_and_null_is_none(tiny: dict[str, Release], tmp_path: Path) -> None:
    path, release = tmp_path / "texts.jsonl", str(tiny["acronym"].path)
    files = {
        b"": "has no text",
        b'{"text": " "}\n': "has no text",
        b'{"text": "rash"}\n{"text": null}\n': "line 2 is no JSON object with a text",
        b'{"text": "rash"\n': "line 1 is no JSON object with a text",
        b'{"text": "cut \\ud83d"}\n': "line 1 is no JSON object with a text",
        b'{"id": "a"}\n': "line 1 is no JSON object with a text",
        b'{"text": "\xe4"}\n': "is not UTF-8",
    }
    app = typer.Typer()
    app.command()(reference.main)
    for content, reason in files.items():
        path.write_bytes(content)
        answer = CliRunner().invoke(app, ["--release", release, "--texts", str(path)])
        assert answer.exit_code == 2, content
        assert reason in " ".join(answer.output.replace("\u2502", " ").split()), content


def test_texts_without_blank_ones_are_chosen_with_a_fixed_seed(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "rash"}\r\n{"text": ""}\r\n{"text": "itch"}')
    assert reference.read_texts(path) == ["rash", "itch"]
    texts = [str(i) for i in range(100)]
    chosen = TextsOf.some("numbers", texts, 10)
    assert len(set(chosen.texts)) == 10
    assert chosen == TextsOf.some("numbers", texts, 10)
    assert sorted(TextsOf.some("numbers", texts, 1000).texts) == sorted(texts)


def test_none_is_made_beside_a_bundled_release_that_holds_its_own(
    tiny: dict[str, Release], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = TextsOf("some", TEXTS)
    own = with_reference(tiny["acronym"].path, texts, tmp_path)
    monkeypatch.setattr(reference, "TASKS", ("acronym",))
    monkeypatch.setattr(reference, "bundled", lambda task: own.path)
    assert run() == "acronym: the bundled release holds its own\n"
    assert not drift.beside(own).exists()


@pytest.mark.usefixtures("tiny_bundled")
def test_a_bundled_releases_reference_lies_beside_it_for_an_older_one(tiny: dict[str, Release]) -> None:
    release = tiny["normalization"]
    older = release.path.with_name(f"000000000000.{drift.REFERENCE}")
    older.write_text("{}")
    path = reference.make("normalization", most=8)
    try:
        assert path == drift.beside(release)
        assert not older.exists()
        found = load(open_release(release.path)).reference
        assert found is not None
        assert found.texts == 8
        assert "tagged by the bundled release" in found.made_from
    finally:
        path.unlink()


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_texts_of_its_stage(task: str) -> None:
    read: Callable[[], list[str]]
    made_from, read = reference.TEXTS[task]
    texts = read()
    assert len(texts) >= 200
    assert "teaching corpus" in made_from
    assert not any("[ADE" in text for text in texts)


def with_score(task: str, value: float, baseline: float | None) -> Release:
    """The bundled release of a task with no other score."""
    score = Score(
        name=PRIMARY[task], value=value, definition="of all", data="two texts", records=2, baseline=baseline,
        baseline_definition="the first",
    )  # fmt: skip
    release = open_release(bundled(task))
    return Release(release.path, release.manifest.model_copy(update={"scores": [score]}), release.version)


@pytest.mark.parametrize("task", TASKS)
def test_a_release_below_its_baseline_is_named_in_one_line_with_both_figures(
    task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(with_score(task, 0.016, 0.391), None, offered=False)
    out, err = capsys.readouterr()
    assert err == (
        f"warning: this {task} release is worse than the baseline on two texts: {PRIMARY[task]} 0.016, "
        "baseline 0.391 (the first)\n"
    )
    assert "baseline 0.391" in out
    for baseline in (0.016, 0.01, None):
        finish(with_score(task, 0.016, baseline), None, offered=False)
        assert capsys.readouterr().err == ""


def test_every_score_is_printed_beside_its_baseline_and_definition() -> None:
    release = with_score("summarization", 31.5, None)
    console = Console(width=80)
    with console.capture() as capture:
        print_scores(console, release)
    printed = capture.get()
    assert "two texts (n 2): rouge1 31.5, baseline None (the first) - of all" in printed
    assert release.version in printed
