"""NIL detection: terms are removed from the terminology, and their mentions are coded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, Measure, ratio
from models.types import Coding
from training.common.codings.removed_terms import Draw, draws
from training.common.codings.split import heldout_split, pts_by_term, query, split_groups
from training.common.corpora import GoldCoding, read_psytar_codes
from training.evaluation.result import Part, Result
from training.teaching.readers import phrases

REMOVED_TERMS = "removed_terms"
DRAWS = 5
DATA = (
    f"{DRAWS} draws of a fifth of the preferred terms of the half that no rule was fitted on, taken out with "
    "their lowest-level terms and phrases; PsyTAR's held-out mentions, the teaching corpus' held-out phrases"
)
BASELINE = "a threshold on the best cosine, the one that the release would have without its rule"
#: Columns: of missing concepts NIL and all, of known ones NIL and all, of the known ones whose best term is
#: right NIL and all.
_WIDTH = 6


class Removed(NamedTuple):
    """The mentions, those of PsyTAR first."""

    data: str
    records: Sequence[GoldCoding]
    psytar: int


def read(data: Path, limit: int) -> Removed:
    """Mentions that no release is trained on, at most `limit` of each source if it is not 0."""
    golds = list(read_psytar_codes(data / "psytar/normalization.csv"))
    test = heldout_split(golds, split_groups()).test
    sources = [list(dict.fromkeys(mentions))[: limit or None] for mentions in (test, phrases("held_out"))]
    return Removed(DATA, [g for mentions in sources for g in mentions], len(sources[0]))


def measure(model: Any, corpus: Removed) -> Result:
    """Evaluates `model.without(terms).predict`; a record is a mention with what it counts in all draws."""
    by_term = pts_by_term(model.terms)
    places = {g: i for i, g in enumerate(corpus.records)}
    counts, baseline = (np.zeros((len(places), 3 * _WIDTH)) for _ in range(2))
    seconds = 0.0
    for draw in draws(corpus.records, by_term, "test", DRAWS, seed=1):
        started = time.perf_counter()
        codings = model.without(draw.removed).predict([query(g) for g in draw.mentions])
        seconds += time.perf_counter() - started
        rows = [places[g] for g in draw.mentions]
        for table, nil in ((counts, [c.nil for c in codings]), (baseline, _below(codings, model.nil_below))):
            _add(table, rows, draw, codings, nil)
    for table in (counts, baseline):
        table[: corpus.psytar, _WIDTH : 2 * _WIDTH] = table[: corpus.psytar, :_WIDTH]
        table[corpus.psytar :, 2 * _WIDTH :] = table[corpus.psytar :, :_WIDTH]
    measures = tuple(_measures())
    parts = {
        m.name: Part(f"{corpus.data}, {name} alone", n)
        for name, n in (("psytar", corpus.psytar), ("phrases", len(places) - corpus.psytar))
        for m in measures
        if m.name.endswith(name)
    }
    return Result(
        counts, baseline, measures, dict.fromkeys((m.name for m in measures), BASELINE), seconds, parts
    )


def _below(codings: Sequence[Coding], threshold: float) -> list[bool]:
    return [not c.candidates or c.candidates[0].score < threshold for c in codings]


def _add(
    table: Counts, rows: Sequence[int], draw: Draw, codings: Sequence[Coding], nil: Sequence[bool]
) -> None:
    for row, coding, right, missing, is_nil in zip(rows, codings, draw.right, draw.missing, nil, strict=True):
        hit = bool(coding.candidates) and coding.candidates[0].pt in right
        table[row, :_WIDTH] += (
            missing and is_nil, missing,
            not missing and is_nil, not missing,
            hit and not missing and is_nil, hit and not missing,
        )  # fmt: skip


def _measures() -> list[Measure]:
    shares = (
        ("nil_of_missing", "share of the mentions of missing concepts that become NIL"),
        ("known_lost", "share of the mentions of known concepts that become NIL"),
        ("right_lost", "share of the mentions of known concepts whose best term is right that become NIL"),
    )
    return [
        ratio(name + suffix, definition, (first + 2 * i, first + 2 * i + 1))
        for suffix, first in (("", 0), ("_psytar", _WIDTH), ("_phrases", 2 * _WIDTH))
        for i, (name, definition) in enumerate(shares)
    ]
