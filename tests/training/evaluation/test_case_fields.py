"""The fields of a case beside PHEE's marks, counted by hand, and the figures that are recorded of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.headline import result_file
from models.case_fields.fields import PRECISION
from models.types import ADE, DRUG
from tests.small_corpora import public_corpora
from tests.training.fakes import Fake, tagger
from training.evaluation import case_fields
from training.evaluation.evaluate import EvaluationError, evaluate
from training.evaluation.result import Result

TEXT = "A 54-year-old man had a rash 8 days after oral zoloft (50 mg daily)."
MARKS = {
    "Subject": {"Age": "54-year-old", "Gender": "man"},
    "Treatment": {"Dosage": "50 mg daily", "Route": "oral", "Time_elapsed": "8 days", "Duration": "daily"},
}


def written(folder: Path, marks: Any = MARKS) -> Path:
    events = {
        part: {kind: {"text": [[words]], "start": [[TEXT.index(words)]]} for kind, words in own.items()}
        for part, own in marks.items()
    }
    (folder / "phee").mkdir(exist_ok=True)
    row = {"context": TEXT, "annotations": [{"events": [events, events]}]}
    (folder / case_fields.FILE).write_text(json.dumps(row) + "\n", encoding="utf-8")
    return folder


def test_fields_are_scored_beside_a_pattern_by_exact_and_by_shared_characters(tmp_path: Path) -> None:
    model = tagger(zoloft=DRUG, rash=ADE)
    found = evaluate("ner", model, "v1", written(tmp_path), case_fields.SPLITS[0])
    assert (found.data, found.records) == ("PHEE dev, sentences of case reports", 1)
    # Age, sex, onset and route are exact; the dose is part of the gold one; no duration is found.
    assert found.scores["exact_f1"] == pytest.approx(2 * 4 / (5 + 6))
    assert found.scores["overlap_f1"] == pytest.approx(2 * 5 / (5 + 6))
    assert (found.scores["dose_exact_f1"], found.scores["dose_overlap_f1"]) == (0, 1)
    assert found.scores["duration_overlap_f1"] == 0
    assert found.baselines["overlap_f1"] == pytest.approx(2 * 5 / (5 + 6))
    (tmp_path / case_fields.FILE).write_text('{"context": "A", "annotations": [{"events": [1]}]}\n')
    with pytest.raises(EvaluationError, match="phee_fields"):
        evaluate("ner", model, "v1", tmp_path, case_fields.SPLITS[0])


def test_of_two_found_ones_in_one_gold_span_one_is_right() -> None:
    gold = frozenset({(0, 9, "dose"), (20, 29, "dose")})
    moved = case_fields._moved([(5, 9, "dose"), (0, 4, "dose"), (19, 21, "dose"), (0, 9, "age")], gold)
    assert sorted(moved) == [(0, 9, "age"), (0, 9, "dose"), (5, 9, "dose"), (20, 29, "dose")]


def test_the_recorded_baseline_is_that_of_the_corpus() -> None:
    corpus = case_fields.read(public_corpora(case_fields.FILE), "", 0)
    recorded = json.loads(result_file("case_fields").read_bytes())
    assert len(corpus.records) == recorded["records"] == 961
    result: Result = case_fields.measure(Fake(lambda _: []), corpus)
    for measure in result.measures:
        row = recorded["rows"][measure.name]
        assert measure.of(result.baseline) == pytest.approx(row["baseline"], abs=1e-4)
        if measure.name.startswith(("age", "sex", "dose")):  # which no mention decides
            assert measure.of(result.counts) == pytest.approx(row["value"], abs=1e-4), measure.name


def test_the_scores_of_fields_are_the_shares_that_were_read() -> None:
    read = json.loads(result_file("case_fields_read").read_bytes())["precision"]
    for field, (right, of) in read.items():
        assert PRECISION[field] == round((right + 1) / (of + 2), 2), field
    assert PRECISION.keys() - read.keys() == {"age_group", "pregnancy", "dechallenge"}
