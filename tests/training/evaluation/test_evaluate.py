"""Evaluations of fake and of shipped models on tiny corpora, and the comparison of two."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import models
from models.loading import load
from models.releases.store import open_release
from models.types import ADE, SYMPTOM, TASKS
from tests.training.fakes import Fake, tagger
from training.evaluation.evaluate import (
    PRIMARY,
    SPLITS,
    Evaluation,
    EvaluationError,
    as_scores,
    compare,
    evaluate,
)


def test_the_json_form_has_every_number_and_no_matrix(data: Path) -> None:
    found = evaluate("ner", tagger(zaps="WITHDRAWAL"), "v1", data)
    row = json.loads(json.dumps(found.as_dict()))
    assert set(row) == {
        *("task", "release", "data", "split", "scores", "definitions", "baselines", "baseline_definitions"),
        *("intervals", "records", "seconds", "parts"),
    }
    assert row["scores"]["strict_micro_f1"] == 0.5
    assert row["intervals"].keys() == row["scores"].keys() == row["definitions"].keys()
    for name, (low, high) in row["intervals"].items():
        assert low <= row["scores"][name] <= high


def test_a_candidate_that_finds_more_is_better_and_an_equal_one_is_equal(data: Path) -> None:
    live = evaluate("ner", tagger(zaps="WITHDRAWAL"), "v1", data)
    better = evaluate("ner", tagger(zaps="WITHDRAWAL", mood=ADE, **{"sad mood": SYMPTOM}), "v2", data)
    found = compare(better, live)
    assert (found.score, found.split, found.records) == ("strict_micro_f1", "psytar_test", 2)
    assert (found.candidate, found.live) == pytest.approx((2 / 3, 0.5))
    assert found.difference == pytest.approx(1 / 6)
    assert found.low <= found.difference <= found.high
    assert found.better_or_equal
    assert not compare(live, better).better_or_equal
    equal = compare(live, live)
    assert (equal.difference, equal.low, equal.high, equal.better_or_equal) == (0, 0, 0, True)


def test_different_records_and_missing_extras_are_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate("ner", tagger(), "v1", data)
    for other in (
        evaluate("ner", tagger(), "v1", data, limit=1),
        evaluate("ner", tagger(), "v1", data, "ade_fold_1"),
    ):
        with pytest.raises(EvaluationError, match="different"):
            compare(other, whole)
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    with pytest.raises(EvaluationError, match=r"install -e '\.\[train\]'"):
        evaluate("summarization", Fake(str), "v1", data)


@pytest.mark.parametrize(
    ("task", "split", "message"),
    [
        ("ner", "psytar_train", "ner has no split 'psytar_train': psytar_test, psytar_dev, ade_fold_1"),
        ("translation", None, "no task 'translation': ner,"),
        ("ner", "psytar_dev", "ner psytar_dev: no file .*ner_dev.conll"),
        ("relation", "ade_fold_2", "relation ade_fold_2: .*KeyError: 'split_2'"),
        ("acronym", "sdu22_scientific", "acronym sdu22_scientific: no file .*dictionary.json"),
    ],
)
def test_what_is_unreadable_is_one_clear_line(data: Path, task: str, split: str | None, message: str) -> None:
    with pytest.raises(EvaluationError, match=message) as error:
        evaluate(task, tagger(), "v1", data, split)
    assert "\n" not in str(error.value)


def test_a_missing_folder_and_an_empty_file_are_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"no file .*nowhere"):
        evaluate("summarization", tagger(), "v1", tmp_path / "nowhere")
    (tmp_path / "questions").mkdir()
    (tmp_path / "questions/meqsum.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(EvaluationError, match="no record in it"):
        evaluate("summarization", tagger(), "v1", tmp_path)


def test_every_task_has_a_default_split_and_a_primary_score() -> None:
    # Idiom-aware vectors and judges are no stages; posts are two stages together.
    assert set(SPLITS) == set(PRIMARY) == {*TASKS, "idiom", "judge", "posts"}
    assert {task: splits[0] for task, splits in SPLITS.items()} == {
        "ner": "psytar_test",
        "acronym": "casi",
        "relation": "ade_fold_1",
        "normalization": "heldout",
        "summarization": "meqsum_test",
        "idiom": "dev_en",
        "judge": "psytar_test",
        "posts": "teaching",
    }


def shipped(task: str, data: Path, split: str | None = None) -> Evaluation:
    (path,) = (p for p in (Path(models.__file__).parent / "pretrained" / task).glob("*") if p.is_dir())
    loaded = load(open_release(path), dtype="float32")
    return evaluate(task, loaded.model, loaded.version, data, split)


@pytest.mark.parametrize("task", TASKS)
def test_the_shipped_releases_are_measured(task: str, data: Path) -> None:
    if task == "summarization":
        pytest.importorskip("rouge_score")
    # The two test sentences of patients are too short to be sure of.
    found = shipped(task, data, "ade_fold_1" if task == "ner" else None)
    assert PRIMARY[task] in found.scores
    assert found.scores[PRIMARY[task]] > 0
    assert found.seconds > 0
    assert [s.name for s in as_scores(found)] == list(found.scores)


def test_evaluation_is_imported_without_a_model_library() -> None:
    loaded = "{'torch', 'peft', 'typer', 'rouge_score'} & set(sys.modules)"
    code = f"import sys, training.evaluation.evaluate; print(*{loaded})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == ""
