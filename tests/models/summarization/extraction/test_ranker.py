"""The linear ranker and its file."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from models.summarization.extraction.ranker import LinearRanker, save, softmax


def test_scores_are_sums_of_weights_that_are_read_as_written_and_probabilities_add_up(tmp_path: Path) -> None:
    ranker = LinearRanker({"b": 2.0, "a": -1.0}, ("a", "b"))
    assert ranker.scores([[1, 0], [0, 1], [3, 2]]) == [-1, 2, 1]
    save({"a": 0.125, "b": -3.0}, tmp_path / "w.tsv")
    assert LinearRanker.load(tmp_path / "w.tsv", ("b", "a")).weights == [-3.0, 0.125]
    assert softmax([]) == []
    assert softmax([1000.0, 1000.0]) == [0.5, 0.5]
    assert sum(softmax([-5.0, 0.0, 3.0])) == pytest.approx(1)
    started = time.process_time()
    assert sum(softmax([1.0, 2.0] * 17_000)) == pytest.approx(1)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("weights", [{"a": 1.0}, {"a": 1.0, "c": 1.0}, {"a": 1.0, "b": float("nan")}])
def test_weights_of_other_features_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a finite weight is needed for each of a, b"):
        LinearRanker(weights, ("a", "b"))
