"""Measures a release on a split of a public corpus, and two releases on the same records.

Whatever imports this imports no model library: a model is handed in, and what only some splits need is
imported where they are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from models.releases.manifest import Score
from models.scores import Comparison, Counts, Interval, Measure, bootstrap, paired_bootstrap
from training.evaluation import acronym, idiom, ner, normalization, relation, summarization
from training.evaluation.result import EvaluationError, Measured, Part

__all__ = [
    "PRIMARY",
    "SPLITS",
    "Evaluation",
    "EvaluationError",
    "as_scores",
    "compare",
    "evaluate",
    "manifest_scores",
]

_TASKS: dict[str, Any] = {
    "ner": ner,
    "acronym": acronym,
    "relation": relation,
    "normalization": normalization,
    "summarization": summarization,
    "idiom": idiom,
}
#: What each task can be measured on; the first is the default. A release that was trained on fold 1 of the
#: ADE corpus has seen the test sentences of the other folds.
SPLITS: dict[str, tuple[str, ...]] = {task: module.SPLITS for task, module in _TASKS.items()}
#: The score by which two releases of a task are compared; higher is better.
PRIMARY: dict[str, str] = {task: module.PRIMARY for task, module in _TASKS.items()}


@dataclass(frozen=True)
class Evaluation:
    """What a release scores on a split, with 95 % bootstrap intervals, beside a trivial method."""

    task: str
    release: str
    data: str
    split: str
    scores: Mapping[str, float]
    definitions: Mapping[str, str]
    baselines: Mapping[str, float]
    """of the scores for which there is a trivial method"""
    baseline_definitions: Mapping[str, str]
    intervals: Mapping[str, Interval]
    records: int
    seconds: float
    """of prediction alone"""
    parts: Mapping[str, Part]
    """the records of the scores that are not over all"""
    counts: Counts = field(repr=False, compare=False)
    """(records, columns), for a paired comparison; not in the JSON form"""
    measures: tuple[Measure, ...] = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: numbers rounded, without the counts of each record."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in {"counts", "measures"}}
        return plain | {
            "scores": {name: _rounded(value) for name, value in self.scores.items()},
            "baselines": {name: _rounded(value) for name, value in self.baselines.items()},
            "intervals": {name: [_rounded(v) for v in ends] for name, ends in self.intervals.items()},
            "seconds": round(self.seconds, 3),
            "parts": {name: part._asdict() for name, part in self.parts.items()},
        }

    def part(self, score: str) -> Part:
        """The records that a score is over."""
        return self.parts.get(score, Part(self.data, self.records))


def evaluate(
    task: str, model: Any, version: str, data: Path, split: str | None = None, limit: int = 0
) -> Evaluation:
    """Scores of a loaded model on a split of the corpora under `data`, the task's first where none is named.

    `limit` takes the first records of every part only; 0: all. Raises EvaluationError where the split is
    unknown or cannot be read.
    """
    if task not in _TASKS:
        raise EvaluationError(f"no task {task!r}: {', '.join(_TASKS)}")
    split = split or SPLITS[task][0]
    if split not in SPLITS[task]:
        raise EvaluationError(f"{task} has no split {split!r}: {', '.join(SPLITS[task])}")
    corpus = _read(task, data, split, limit)
    measured: Measured = _TASKS[task].measure(model, corpus)
    return Evaluation(
        task=task,
        release=version,
        data=corpus.data,
        split=split,
        scores={m.name: m.of(measured.counts) for m in measured.measures},
        definitions={m.name: m.definition for m in measured.measures},
        baselines={
            m.name: m.of(measured.baseline)
            for m in measured.measures
            if m.name in measured.baseline_definitions
        },
        baseline_definitions=dict(measured.baseline_definitions),
        intervals=bootstrap(measured.counts, measured.measures),
        records=len(measured.counts),
        seconds=measured.seconds,
        parts=dict(measured.parts),
        counts=measured.counts,
        measures=measured.measures,
    )


def compare(candidate: Evaluation, live: Evaluation) -> Comparison:
    """By the task's primary score; raises EvaluationError unless both were measured on the same records."""
    for name in ("task", "data", "split", "records"):
        one, other = getattr(candidate, name), getattr(live, name)
        if one != other:
            raise EvaluationError(f"two evaluations of different {name}: {one} and {other}")
    (measure,) = (m for m in live.measures if m.name == PRIMARY[live.task])
    found = paired_bootstrap(candidate.counts, live.counts, [measure])[measure.name]
    part = live.part(measure.name)
    return Comparison(
        score=measure.name,
        definition=measure.definition,
        data=part.data,
        split=live.split,
        records=part.records,
        candidate=candidate.scores[measure.name],
        live=live.scores[measure.name],
        difference=found.difference,
        low=found.low,
        high=found.high,
    )


def as_scores(evaluation: Evaluation) -> list[Score]:
    """The rows of a manifest."""
    return [
        Score(
            name=name,
            value=_rounded(value),
            definition=evaluation.definitions[name],
            data=evaluation.part(name).data,
            records=evaluation.part(name).records,
            baseline=_rounded(evaluation.baselines[name]) if name in evaluation.baselines else None,
            baseline_definition=evaluation.baseline_definitions.get(name, "none"),
        )
        for name, value in evaluation.scores.items()
    ]


def manifest_scores(task: str, model: Any, data: Path, splits: Sequence[str], limit: int = 0) -> list[Score]:
    """The rows of the manifest of a release that is being made, split by split."""
    return [s for split in splits for s in as_scores(evaluate(task, model, "", data, split, limit))]


def _read(task: str, data: Path, split: str, limit: int) -> Any:
    try:
        corpus = _TASKS[task].read(data, split, limit)
    except FileNotFoundError as error:
        raise EvaluationError(f"{task} {split}: no file {error.filename}") from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise EvaluationError(f"{task} {split}: {data}: {type(error).__name__}: {error}") from None
    if not corpus.records:
        raise EvaluationError(f"{task} {split}: {data}: no record in it")
    return corpus


def _rounded(value: float) -> float:
    """Four digits of a share, two of a percentage and of other numbers above 1."""
    return round(value, 4 if abs(value) <= 1 else 2)
