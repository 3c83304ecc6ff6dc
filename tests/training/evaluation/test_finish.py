"""What a training program says at its end."""

from __future__ import annotations

import pytest
from rich.console import Console

from models.releases.manifest import Release, Score
from models.releases.store import bundled, open_release
from models.types import TASKS
from training.evaluation.evaluate import PRIMARY
from training.evaluation.finish import finish, print_scores


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


@pytest.mark.parametrize("baseline", [0.391, 0.3, None])
def test_a_release_that_is_no_worse_is_not(
    baseline: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(with_score("ner", 0.391, baseline), None, offered=False)
    assert capsys.readouterr().err == ""


def test_every_score_is_printed_beside_its_baseline_and_definition() -> None:
    release = with_score("summarization", 31.5, None)
    console = Console(width=80)
    with console.capture() as capture:
        print_scores(console, release)
    printed = capture.get()
    assert "two texts (n 2): rouge1 31.5, baseline None (the first) - of all" in printed
    assert release.version in printed
