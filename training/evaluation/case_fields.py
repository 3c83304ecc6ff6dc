"""Evaluation of the fields of a case in sentences of case reports (PHEE, Sun et al. 2022), beside a pattern
for each field. The mentions are those of a tagger, which most of the sentences have trained.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.case_fields.fields import case_fields
from models.scores import Counts, Measure, Spans, micro_f1, span_counts
from models.types import Mention
from training.common.corpora import in_form, phee_pieces, read_phee
from training.evaluation.result import Result

SPLITS, FILE = ("phee_fields",), "phee/dev.jsonl"
#: Arguments of PHEE's events, and their fields. An age is one in years or a word such as "infant".
FIELDS = {
    ("Subject", "Age"): "age", ("Subject", "Gender"): "sex", ("Treatment", "Dosage"): "dose",
    ("Treatment", "Route"): "route", ("Treatment", "Duration"): "duration",
    ("Treatment", "Time_elapsed"): "onset",
}  # fmt: skip
NAMES = tuple(FIELDS.values())
_TIME = r"(?:\d+(?:\.\d+)?|an?|one|two|three|four|five|six|several) (?:hour|day|week|month|year)s?"
PATTERNS = {
    "age": r"\d+[- ](?:day|week|month|year)s?[- ]old",
    "sex": r"(?:wo)?man|boy|girl|(?:fe)?male",
    "dose": r"\d[\d.,]* ?(?:mg|g|mcg|microg|ml|mL|IU|U|units?)(?:/(?:kg|m2|day|d|h|week))*",
    "route": r"oral(?:ly)?|intravenous(?:ly)?|topical(?:ly)?|intra[a-z]+|subcutaneous(?:ly)?",
    "duration": rf"(?<=for ){_TIME}",
    "onset": rf"{_TIME}(?= (?:after|later|following))",
}
BASELINE = "one pattern a field, such as a number and mg"


class Sentence(NamedTuple):
    """A sentence, and its fields as (start, end, field)."""

    text: str
    fields: frozenset[tuple[int, int, str]]


class Cases(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: list[Sentence]


def read(data: Path, _split: str, limit: int) -> Cases:
    """The sentences of PHEE's file. Raises CorpusError, and FileNotFoundError."""
    with in_form(data / FILE):
        sentences = [Sentence(text, frozenset(_fields(events))) for text, events in read_phee(data / FILE)]
    return Cases("PHEE dev, sentences of case reports", sentences[:limit] if limit else sentences)


def _fields(events: Sequence[Any]) -> Iterator[tuple[int, int, str]]:
    for event in events:
        for (part, kind), field in FIELDS.items():
            for pieces in phee_pieces(event.get(part, {}).get(kind)):
                yield pieces[0][0], pieces[-1][1], field


def measure(model: Any, cases: Cases) -> Result:
    """Evaluates the fields beside the mentions of `model.predict`."""
    texts = [s.text for s in cases.records]
    started = time.perf_counter()
    found = [list(_found(t, m)) for t, m in zip(texts, model.predict(texts), strict=True)]
    seconds = time.perf_counter() - started
    named = [list(by_patterns(t)) for t in texts]
    return Result(
        _counts(cases.records, found), _counts(cases.records, named), MEASURES,
        {m.name: BASELINE for m in MEASURES}, seconds,
    )  # fmt: skip


def _found(text: str, mentions: Sequence[Mention]) -> Iterator[tuple[int, int, str]]:
    for field in case_fields(text, mentions, clinical=True):
        yield field.start, field.end, "age" if field.field == "age_group" else field.field


def by_patterns(text: str) -> Iterator[tuple[int, int, str]]:
    """What PATTERNS find as whole words."""
    for field, pattern in PATTERNS.items():
        for match in re.finditer(rf"\b(?:{pattern})\b", text):
            yield *match.span(), field


def _counts(sentences: Sequence[Sentence], found: Sequence[Spans]) -> Counts:
    """(sentences, 6 * fields): for each field right, found and gold, with exact boundaries; the same again,
    where each found one has become the first gold one that it overlaps.
    """
    gold = [s.fields for s in sentences]
    moved = [_moved(spans, own) for spans, own in zip(found, gold, strict=True)]
    return np.hstack([span_counts(found, gold, NAMES), span_counts(moved, gold, NAMES)])


def _moved(found: Spans, gold: frozenset[tuple[int, int, str]]) -> Spans:
    left = sorted(gold)
    for one in sorted(found, key=lambda f: (f not in gold, f)):
        over = [g for g in left if g[2] == one[2] and g[0] < one[1] and one[0] < g[1]]
        place = one if one in gold else over[0] if over else one
        left = [g for g in left if g != place]
        yield place


def _measures() -> Iterator[Measure]:
    places = range(0, 3 * len(NAMES), 3)
    kinds = (
        ("overlap", 3 * len(NAMES), "a character shared with one of the corpus"),
        ("exact", 0, "exact boundaries"),
    )
    for kind, first, what in kinds:
        yield micro_f1(f"{kind}_f1", f"{what}; micro F1 over {', '.join(NAMES)}", [first + i for i in places])
        for name, place in zip(NAMES, places, strict=True):
            yield micro_f1(f"{name}_{kind}_f1", f"{what}; F1 of the field", [first + place])


MEASURES = tuple(_measures())
