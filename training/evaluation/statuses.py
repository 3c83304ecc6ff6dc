"""Evaluation of flags on PHEE (Sun et al. 2022): sentences of case reports with adverse effects, some of them
denied or speculated about, effects that were wanted, and disorders that were treated.

Five sixths of the sentences are the ADE corpus', on which releases are trained: what is found is flattered.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.assertion.flags import asserted
from models.scores import Counts, ratio
from models.types import CODED_LABELS, Assertion, Mention
from training.common.corpora import in_form, phee_pieces, read_phee
from training.evaluation.result import Result

SPLITS = ("phee_dev", "phee_train")
#: What is marked of an adverse effect, in the order in which it counts where several events have the effect.
PLAIN, SPECULATED, NEGATED = "plain", "speculated", "negated"
KINDS = (PLAIN, SPECULATED, NEGATED, "therapeutic", "treated")
BASELINE = "every name of the terminology is an event, without a flag"
#: Columns: of each kind all, those with an unflagged event, and those with flagged ones alone.
_COLUMNS = 3
Pieces = tuple[tuple[int, int], ...]


class StatusText(NamedTuple):
    """A sentence and what is marked in it, each as pieces of text with one of KINDS."""

    text: str
    marked: tuple[tuple[Pieces, str], ...]


class Corpus(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: list[StatusText]


def read(data: Path, split: str, limit: int) -> Corpus:
    """The sentences of a split; raises CorpusError."""
    part = split.removeprefix("phee_")
    path = data / "phee" / f"{part}.jsonl"
    with in_form(path):
        records = [_text(*sentence) for sentence in read_phee(path)]
    return Corpus(f"PHEE {part}", records[:limit] if limit else records)


def _text(text: str, events: Sequence[Any]) -> StatusText:
    kinds: dict[Pieces, str] = {}
    for event in events:
        kind = _kind(event)
        for pieces in phee_pieces(event.get("Effect")):
            kinds[pieces] = min(kind, kinds.get(pieces, kind), key=KINDS.index)
    effects = [piece for pieces in kinds for piece in pieces]
    for event in events:
        for pieces in phee_pieces(event.get("Treatment", {}).get("Disorder")):
            if not _overlap(pieces, effects):
                kinds[pieces] = "treated"
    return StatusText(text, tuple(kinds.items()))


def _kind(event: Mapping[str, Any]) -> str:
    if event["event_type"] != "Adverse_event":
        return "therapeutic"
    return NEGATED if event.get("Negated") else SPECULATED if event.get("Speculated") else PLAIN


def _overlap(pieces: Pieces, others: Sequence[tuple[int, int]]) -> bool:
    return any(first < last and start < end for first, end in pieces for start, last in others)


def measure(model: Any, corpus: Corpus) -> Result:
    """Evaluates the effects that a tagger finds, with the flags that are served in clinical sentences."""
    from training.evaluation.alarms import named_terms  # noqa: PLC0415  it imports torch

    texts = [r.text for r in corpus.records]
    started = time.perf_counter()
    found = [_flagged(text, one) for text, one in zip(texts, model.predict(texts), strict=True)]
    seconds = time.perf_counter() - started
    named = [[((m.start, m.end), False) for m in named_terms(text)] for text in texts]
    ours, baseline = (
        np.array([_counts(*one) for one in zip(corpus.records, f, strict=True)]) for f in (found, named)
    )
    return Result(ours, baseline, MEASURES, dict.fromkeys((m.name for m in MEASURES), BASELINE), seconds)


def _flagged(text: str, found: Sequence[Mention]) -> list[tuple[tuple[int, int], bool]]:
    """Each effect with whether it has a flag."""
    effects = [m for m in found if m.label in CODED_LABELS]
    return [((m.start, m.end), asserted(text, m, clinical=True) != Assertion()) for m in effects]


def _counts(record: StatusText, found: Sequence[tuple[tuple[int, int], bool]]) -> Counts:
    row = np.zeros(_COLUMNS * len(KINDS))
    for pieces, kind in record.marked:
        flags = [flagged for span, flagged in found if _overlap(pieces, [span])]
        row[_COLUMNS * KINDS.index(kind) :][:_COLUMNS] += 1, not all(flags), bool(flags) and all(flags)
    return row


_OF = {
    PLAIN: "adverse effects neither denied nor speculated about",
    SPECULATED: "adverse effects whose event is marked as speculated, mostly about its cause",
    NEGATED: "adverse effects whose event is marked as negated",
    "therapeutic": "effects of therapeutic events",
    "treated": "treated disorders that no adverse event has as its effect",
}
_WHAT = ("affirmed", "that an event without a flag overlaps"), ("flagged", "that only flagged ones overlap")
MEASURES = tuple(
    ratio(f"{kind}_{name}", f"share of {_OF[kind]} {what}", (_COLUMNS * i + j, _COLUMNS * i))
    for i, kind in enumerate(KINDS)
    for j, (name, what) in enumerate(_WHAT, 1)
)
