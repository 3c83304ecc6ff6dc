"""Coding: PsyTAR's mapped mentions against a release's own terminology, or its encoder against SIDER's
names.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, Measure, ratio
from models.terminology import Term
from models.types import Coding, Query
from training.evaluations.measured import Measured, Part
from training.readers import GoldCoding, read_psytar_codes

SPLITS = ("heldout", "all", "sider")
PRIMARY = "acc@1"
SIDER = "terminology/sider_llt_pt.csv"
#: Columns: a gold preferred term is the best, is among the 5 best, the terminology knows a gold term, a gold
#: name is literally the best term's (counted on SIDER only), one.
_BEST, _FIVE, _KNOWN, _NAMED, _ONE, _COLUMNS = range(6)
EXACT = "the mention is itself a lowest-level term (exact, case ignored)"
LITERAL = "the mention is itself a gold name, case ignored"


class Corpus(NamedTuple):
    data: str
    records: list[GoldCoding]
    sider: list[Term] | None
    """terms to code to instead of the release's own"""


def read(data: Path, split: str, limit: int) -> Corpus:
    golds = list(read_psytar_codes(data / "psytar/normalization.csv"))
    name = "PsyTAR, mentions with a mapped term"
    if split == "heldout":
        _, golds = halves(golds)
        name += ", the half of the drugs without influence on NIL"
    sider = read_sider(data / SIDER) if split == "sider" else None
    return Corpus(name, golds[:limit] if limit else golds, sider)


def halves(golds: Sequence[GoldCoding]) -> tuple[list[GoldCoding], list[GoldCoding]]:
    """By drug, every other one in alphabetical order: (for the NIL threshold, held out)."""
    calibrating = set(sorted({g.drug for g in golds})[::2])
    return [g for g in golds if g.drug in calibrating], [g for g in golds if g.drug not in calibrating]


def read_sider(path: Path) -> list[Term]:
    """Lowest-level and preferred names of side effects (SIDER 4.1): for evaluation only, never shipped."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Term(row["llt"], row["pt"], "-") for row in csv.DictReader(file)]


def query(gold: GoldCoding) -> Query:
    """The mention alone; its place in the sentence does not matter to a zero-shot model."""
    return Query(gold.mention, 0, len(gold.mention), gold.mention)


def pts_by_term(terms: Sequence[Term]) -> dict[str, set[str]]:
    """Lowest-level term, lower case, to its preferred terms."""
    found: dict[str, set[str]] = {}
    for term in terms:
        found.setdefault(term.llt.lower(), set()).add(term.pt)
    return found


def right_terms(gold: GoldCoding, by_term: dict[str, set[str]]) -> set[str]:
    """Preferred terms of the gold terms; none where the terminology knows no gold term by name."""
    return {pt for t in gold.terms for pt in by_term.get(t.lower(), ())}


def measure(model: Any, corpus: Corpus) -> Measured:
    sider = None if corpus.sider is None else _Sider(model.encoder, corpus.sider)
    coder = model if sider is None else sider.model
    started = time.perf_counter()
    found = coder.predict([query(g) for g in corpus.records])
    seconds = time.perf_counter() - started
    by_term = pts_by_term(coder.terms)
    counts = _counts(corpus.records, found, by_term)
    if sider is not None:
        counts[:, _NAMED] = sider.by_name(corpus.records)
    known = Part(f"{corpus.data}, gold terms that the terminology knows", int(counts[:, _KNOWN].sum()))
    measures = _measures(sider is not None)
    baselines = {m.name: EXACT for m in measures if m.name.startswith("acc@")}
    if sider is not None:
        baselines["acc@1_by_name"] = LITERAL
    return Measured(
        counts,
        _exact(corpus.records, by_term),
        measures,
        baselines,
        seconds,
        {"acc@1_known": known, "acc@5_known": known},
    )


class _Sider:
    """The release's encoder over SIDER's names."""

    def __init__(self, encoder: Any, terms: Sequence[Term]) -> None:
        from models.normalization import NormalizationModel  # noqa: PLC0415  it imports torch

        self.encoder, self.terms = encoder, terms
        self.vectors = encoder.embed([t.llt for t in terms])
        self.model = NormalizationModel(encoder, terms, self.vectors, 10, 0.0)

    def by_name(self, golds: Sequence[GoldCoding]) -> list[bool]:
        """Whether the best term's name, or its preferred term's, is a gold name. A lowest-level term that
        stands in several rows has only its first: the figure that is known is counted so.
        """
        from models.index import CosineIndex  # noqa: PLC0415  seconds to import

        mentions = self.encoder.embed([g.mention for g in golds])
        _, best = CosineIndex(self.vectors.numpy()).search(mentions.numpy(), 1)
        named = ({self.terms[row].llt, self.terms[row].pt} for (row,) in best.tolist())
        return [bool(names & set(g.terms)) for names, g in zip(named, golds, strict=True)]


def _counts(golds: Sequence[GoldCoding], found: Sequence[Coding], by_term: dict[str, set[str]]) -> Counts:
    counts = np.ones((len(golds), _COLUMNS))
    for row, gold, coding in zip(counts, golds, found, strict=True):
        right = right_terms(gold, by_term)
        row[_BEST] = bool({c.pt for c in coding.candidates[:1]} & right)
        row[_FIVE] = bool({c.pt for c in coding.candidates[:5]} & right)
        row[_KNOWN] = bool(right)
    return counts


def _exact(golds: Sequence[GoldCoding], by_term: dict[str, set[str]]) -> Counts:
    """Look-up of the mention among the lowest-level terms."""
    counts = np.ones((len(golds), _COLUMNS))
    for row, gold in zip(counts, golds, strict=True):
        right = right_terms(gold, by_term)
        row[[_BEST, _FIVE]] = bool(by_term.get(gold.mention.lower(), set()) & right)
        row[_KNOWN] = bool(right)
        row[_NAMED] = gold.mention.capitalize() in gold.terms
    return counts


def _measures(sider: bool) -> tuple[Measure, ...]:
    against = "SIDER 4.1 names (licensed, not shipped)" if sider else "the release's own terminology"
    how = f"NIL ignored, the mention alone, against {against}"
    every = f"{how}; a gold term unknown by name is a miss"
    known = f"{how}; over the mentions with a gold term known by name"
    best = "share of gold mentions with a gold preferred term as the best"
    five = "share of gold mentions with a gold preferred term among the 5 best"
    rows = [
        ratio("acc@1", f"{best}; {every}", (_BEST, _ONE)),
        ratio("acc@5", f"{five}; {every}", (_FIVE, _ONE)),
        ratio("acc@1_known", f"{best}; {known}", (_BEST, _KNOWN)),
        ratio("acc@5_known", f"{five}; {known}", (_FIVE, _KNOWN)),
        ratio("known", f"share of gold mentions with a gold term known by name to {against}", (_KNOWN, _ONE)),
    ]
    if sider:
        named = "whose best lowest-level term, or its first preferred term, is literally a gold name"
        rows.append(ratio("acc@1_by_name", f"share of gold mentions {named}; {how}", (_NAMED, _ONE)))
    return tuple(rows)
