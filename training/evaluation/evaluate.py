"""Evaluates a release on a split of a public corpus, and compares two releases on the same records.

Importing this module imports no model library: the model is passed in, and what only some splits need is
imported when they are evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from models.releases.manifest import Score
from models.scores import Comparison, Counts, Interval, Measure, bootstrap, paired_bootstrap
from training.evaluation import (
    acronym,
    case_fields,
    idiom,
    judged_events,
    ner,
    normalization,
    relation,
    statuses,
)
from training.evaluation.files import FIELDS as FILE_FIELDS
from training.evaluation.files import corpus_of, gold_of
from training.evaluation.posts import measure as posts
from training.evaluation.posts.found import PostModels
from training.evaluation.result import EvaluationError, Part, Result
from training.evaluation.summarization import measure as summarization

__all__ = [
    "FILE",
    "FILE_FIELDS",
    "POSTS",
    "PRIMARY",
    "SPLITS",
    "Evaluation",
    "EvaluationError",
    "PostModels",
    "as_scores",
    "compare",
    "corpus_of",
    "evaluate",
    "evaluate_on",
    "gold_of",
    "manifest_scores",
]

#: Tagging and normalization together, by a PostModels; no task of a release.
POSTS = "posts"
_TASKS: dict[str, Any] = {
    "ner": ner,
    "acronym": acronym,
    "relation": relation,
    "normalization": normalization,
    "summarization": summarization,
    "idiom": idiom,
    "judge": judged_events,
    POSTS: posts,
}
#: The splits of each task; the first is the default. A release trained on fold 1 of the ADE corpus has seen
#: the test sentences of the other folds, also the bundled tagger, by which relations are measured.
SPLITS: dict[str, tuple[str, ...]] = {task: module.SPLITS for task, module in _TASKS.items()}
SPLITS["ner"] += statuses.SPLITS + case_fields.SPLITS
_OF_SPLIT = {split: module for module in (statuses, case_fields) for split in module.SPLITS}
#: What `--split` is of a file of the user's.
FILE = "file"
#: The score by which two releases of a task are compared; higher is better.
PRIMARY: dict[str, str] = {task: module.PRIMARY for task, module in _TASKS.items()}


@dataclass(frozen=True)
class Evaluation:
    """The scores of a release on a split with 95 % bootstrap intervals and a trivial baseline."""

    task: str
    release: str
    data: str
    split: str
    scores: Mapping[str, float]
    definitions: Mapping[str, str]
    baselines: Mapping[str, float]
    """of the scores that have a baseline"""
    baseline_definitions: Mapping[str, str]
    intervals: Mapping[str, Interval]
    records: int
    seconds: float
    """of prediction alone"""
    parts: Mapping[str, Part]
    """the records of the scores that are not computed over all of them"""
    counts: Counts = field(repr=False, compare=False)
    """(records, columns), for a paired comparison; not in the JSON form"""
    measures: tuple[Measure, ...] = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: numbers are rounded, the counts of the records left out."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in {"counts", "measures"}}
        return plain | {
            "scores": {name: _rounded(value) for name, value in self.scores.items()},
            "baselines": {name: _rounded(value) for name, value in self.baselines.items()},
            "intervals": {name: [_rounded(v) for v in ends] for name, ends in self.intervals.items()},
            "seconds": round(self.seconds, 3),
            "parts": {name: part._asdict() for name, part in self.parts.items()},
        }

    def part(self, score: str) -> Part:
        """The records that a score is computed over."""
        return self.parts.get(score, Part(self.data, self.records))


def evaluate(
    task: str, model: Any, version: str, data: Path, split: str | None = None, limit: int = 0
) -> Evaluation:
    """The scores of a loaded model on a split of the corpora under `data`, by default the task's first split.

    `limit`: only the first records of every part; 0: all. Raises EvaluationError where the split is unknown
    or cannot be read.
    """
    if task not in _TASKS:
        raise EvaluationError(f"no task {task!r}: {', '.join(_TASKS)}")
    split = split or SPLITS[task][0]
    if split not in SPLITS[task]:
        raise EvaluationError(f"{task} has no split {split!r}: {', '.join(SPLITS[task])}")
    return evaluate_on(task, model, version, split, _read(task, data, split, limit))


def evaluate_on(task: str, model: Any, version: str, split: str, corpus: Any) -> Evaluation:
    """The scores of a loaded model on a corpus in the form of the task's own."""
    result: Result = _module(task, split).measure(model, corpus)
    return Evaluation(
        task=task,
        release=version,
        data=corpus.data,
        split=split,
        scores={m.name: m.of(result.counts) for m in result.measures},
        definitions={m.name: m.definition for m in result.measures},
        baselines={
            m.name: m.of(result.baseline) for m in result.measures if m.name in result.baseline_definitions
        },
        baseline_definitions=dict(result.baseline_definitions),
        intervals=bootstrap(result.counts, result.measures),
        records=len(result.counts),
        seconds=result.seconds,
        parts=dict(result.parts),
        counts=result.counts,
        measures=result.measures,
    )


def compare(candidate: Evaluation, live: Evaluation) -> Comparison:
    """Compares two evaluations of the same records by the primary score; raises EvaluationError."""
    for name in ("task", "data", "split", "records"):
        new, old = getattr(candidate, name), getattr(live, name)
        if new != old:
            raise EvaluationError(f"two evaluations of different {name}: {new} and {old}")
    (measure,) = (m for m in live.measures if m.name == PRIMARY[live.task])
    difference = paired_bootstrap(candidate.counts, live.counts, [measure])[measure.name]
    part = live.part(measure.name)
    return Comparison(
        score=measure.name,
        definition=measure.definition,
        data=part.data,
        split=live.split,
        records=part.records,
        candidate=candidate.scores[measure.name],
        live=live.scores[measure.name],
        difference=difference.difference,
        low=difference.low,
        high=difference.high,
    )


def as_scores(evaluation: Evaluation) -> list[Score]:
    """The scores as a manifest holds them."""
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
    """The scores of a release that is being made as its manifest holds them, split by split."""
    return [s for split in splits for s in as_scores(evaluate(task, model, "", data, split, limit))]


def _module(task: str, split: str) -> Any:
    return _OF_SPLIT.get(split, _TASKS[task])


def _read(task: str, data: Path, split: str, limit: int) -> Any:
    try:
        corpus = _module(task, split).read(data, split, limit)
    except FileNotFoundError as error:
        raise EvaluationError(f"{task} {split}: no file {error.filename}") from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise EvaluationError(f"{task} {split}: {data}: {type(error).__name__}: {error}") from None
    if not corpus.records:
        raise EvaluationError(f"{task} {split}: {data}: no record in it")
    return corpus


def _rounded(value: float) -> float:
    """Rounded to four decimals up to 1 (shares), to two above (percentages and other numbers)."""
    return round(value, 4 if abs(value) <= 1 else 2)
