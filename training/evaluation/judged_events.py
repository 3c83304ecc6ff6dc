"""Evaluation of a judge: the events that it leaves of what the bundled tagger finds, beside the tagger's own.

An event is a mention labelled ADE or WITHDRAWAL without a flag; it is right where it shares a character with
a gold event of the writer's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, Measure, divide_or_zero, f1_of, ratio
from models.types import CODED_LABELS, Case, Mention, Stated
from training.common.bundled_tagger import bundled_tagger
from training.common.corpora import read_psytar
from training.common.marked_reviews import SOURCES, Part, Source, read_marked
from training.evaluation.result import Result

MARKED: dict[str, tuple[Source, Part]] = {
    f"{kind}_{part}": (source, part) for kind, source in SOURCES.items() for part in ("development", "test")
}
SPLITS = ("psytar_test", "psytar_dev", *MARKED)
PRIMARY = "event_f1"
BASELINE = "the statuses of the bundled tagger"
_NAMES = {"psytar_test": "PsyTAR test", "psytar_dev": "PsyTAR dev"}


class JudgedText(NamedTuple):
    """A text with its gold events as (start, end), and what its source states."""

    text: str
    events: tuple[tuple[int, int], ...]
    stated: Stated = Stated()


class Corpus(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: list[JudgedText]


def read(data: Path, split: str, limit: int) -> Corpus:
    """The texts of a split."""
    if split in MARKED:
        source, part = MARKED[split]
        records = marked(data, part, source)
    else:
        records = psytar(data, split.removeprefix("psytar_"))
    name = _NAMES.get(split, f"marked {split.replace('_', ', ')}")
    return Corpus(name, records[:limit] if limit else records)


def psytar(data: Path, part: str) -> list[JudgedText]:
    """The sentences of a part of PsyTAR."""
    texts = read_psytar(data / f"psytar/ner_{part}.conll")
    return [
        JudgedText(t.text, tuple((m.start, m.end) for m in t.mentions if m.label in CODED_LABELS))
        for t in texts
    ]


def marked(data: Path, part: Part, source: Source) -> list[JudgedText]:
    """The marked texts of a part, with the medicine and the condition that they are about."""
    found = read_marked(part, data, source)
    return [JudgedText(r.text, tuple(r.events), r.stated) for r in found if r.text.strip()]


def cases_of(texts: Sequence[JudgedText], tagger: Any) -> list[Case]:
    """The texts with what the tagger finds in them."""
    found: list[Sequence[Mention]] = tagger.predict([t.text for t in texts], [t.stated for t in texts])
    return [Case(t.text, tuple(own), t.stated) for t, own in zip(texts, found, strict=True)]


def measure(model: Any, corpus: Corpus) -> Result:
    """Evaluates the mentions that `model.predict` makes of those of the bundled tagger."""
    cases = cases_of(corpus.records, bundled_tagger())
    started = time.perf_counter()
    found = model.predict(cases)
    seconds = time.perf_counter() - started
    return Result(
        counts=_counts(corpus.records, found),
        baseline=_counts(corpus.records, [case.mentions for case in cases]),
        measures=MEASURES,
        baseline_definitions={m.name: BASELINE for m in MEASURES},
        seconds=seconds,
    )


def _counts(texts: Sequence[JudgedText], found: Sequence[Sequence[Mention]]) -> Counts:
    """(texts, 8): right events, events, gold events that were found, gold events; texts with an event that
    have a right one, texts with an event; texts without one that have one all the same, texts without.
    """
    from training.evaluation.alarms import alarms, overlaps  # noqa: PLC0415  it imports torch

    rows = []
    for text, mentions in zip(texts, found, strict=True):
        own = alarms(text.text, mentions, text.stated)
        gold = text.events
        right = sum(overlaps(one, gold) for one in own)
        hit = sum(overlaps(one, own) for one in gold)
        some = bool(gold)
        texts_of = some and right > 0, some, not some and bool(own), not some
        rows.append([right, len(own), hit, len(gold), *map(int, texts_of)])
    return np.array(rows, np.float64)


def _f1(sums: Counts) -> Counts:
    precision, recall = divide_or_zero(sums[:, 0], sums[:, 1]), divide_or_zero(sums[:, 2], sums[:, 3])
    # The harmonic mean is F1 of these as counts: 2 PR / (P + R).
    return f1_of(precision * recall, precision, recall)


MEASURES: tuple[Measure, ...] = (
    Measure(PRIMARY, "harmonic mean of event_precision and event_recall", _f1),
    ratio("event_precision", "share of the events that share a character with a gold one", (0, 1)),
    ratio("event_recall", "share of the gold events that share a character with an event", (2, 3)),
    ratio("hit", "share of the texts with a gold event that have a right one", (4, 5)),
    ratio("alarmed", "share of the texts without a gold event that have an event", (6, 7)),
)
