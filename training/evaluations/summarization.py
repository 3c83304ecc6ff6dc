"""Short questions: ROUGE of what a release makes of MeQSum's test questions, beside their first sentence."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, ratio
from models.text import sentences
from training.evaluations.measured import EvaluationError, Measured

SPLITS = ("meqsum_test",)
PRIMARY = "rouge1"
ROUGES = ("rouge1", "rouge2", "rougeL")
#: Columns: the three of ROUGES, words, one.
_WORDS, _ONE = 3, 4
MEASURES = (
    *(
        ratio(name, f"{name} F1 in percent, mean over questions, rouge-score with stemming", (i, _ONE))
        for i, name in enumerate(ROUGES)
    ),
    ratio("mean_words", "words between white space of an answer, mean over questions", (_WORDS, _ONE)),
)


class Question(NamedTuple):
    text: str
    summary: str


class Corpus(NamedTuple):
    data: str
    records: list[Question]


def read(data: Path, split: str, limit: int) -> Corpus:
    lines = (data / "questions/meqsum.jsonl").read_text(encoding="utf-8").splitlines()
    part = split.removeprefix("meqsum_")
    found = [Question(r["question"], r["summary"]) for r in map(json.loads, lines) if r["split"] == part]
    return Corpus(f"MeQSum {part} part", found[:limit] if limit else found)


def measure(model: Any, corpus: Corpus) -> Measured:
    references = [q.summary for q in corpus.records]
    baseline = summary_counts([first_sentence(q.text) for q in corpus.records], references)
    started = time.perf_counter()
    found = model.predict([q.text for q in corpus.records])
    seconds = time.perf_counter() - started
    return Measured(
        summary_counts([s.text for s in found], references),
        baseline,
        MEASURES,
        {m.name: "first sentence" for m in MEASURES},
        seconds,
    )


def summary_counts(predictions: Sequence[str], references: Sequence[str]) -> Counts:
    """(texts, 5): F1 in percent of ROUGE-1, 2 and L with stemming (package rouge-score), words, one."""
    try:
        from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415  of the training extra
    except ImportError:
        raise EvaluationError("summaries are scored by rouge-score: install pvstream[train]") from None
    scorer = RougeScorer(list(ROUGES), use_stemmer=True)
    rows = []
    for prediction, reference in zip(predictions, references, strict=True):
        found = scorer.score(reference, prediction)
        rows.append([*(100 * found[name].fmeasure for name in ROUGES), len(prediction.split()), 1])
    return np.array(rows, np.float64).reshape(len(rows), _ONE + 1)


def first_sentence(text: str) -> str:
    """Nothing of a text without a word."""
    return next((text[s.start : s.end] for s in sentences(text)), "")
