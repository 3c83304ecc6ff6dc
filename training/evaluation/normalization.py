"""Evaluation of normalization: PsyTAR's mapped mentions in their sentences, coded to a release's terms."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, Measure, ratio
from models.terminology import Term
from models.types import Coding, Query
from training.common.codings.ambiguous import Part as AmbiguousPart
from training.common.codings.ambiguous import read_ambiguous
from training.common.codings.split import heldout_split, pts_by_term, query, right_terms, split_groups
from training.common.corpora import GoldCoding, read_psytar_codes
from training.evaluation.coding import end_to_end, removed_terms
from training.evaluation.coding.end_to_end import END_TO_END
from training.evaluation.coding.removed_terms import REMOVED_TERMS
from training.evaluation.measures import accuracy_at
from training.evaluation.result import Part, Result

#: Parts of the mentions whose words alone have several codes; the second is looked at once, after a decision.
AMBIGUOUS: dict[str, AmbiguousPart] = {"ambiguous": "development", "ambiguous_test": "test"}
SPLITS = ("heldout", "all", END_TO_END, REMOVED_TERMS, *AMBIGUOUS)
PRIMARY = "acc@1"
#: Columns: a gold preferred term is the best, is among the 5 and the 10 best; the terminology knows a gold
#: term; the mention is a right term literally; the weight of the context, and whether there was any; of the
#: mentions with a known preferred term that training has, those with the right best and all; the same of
#: those that it never has; one; the confidence, without a rule for NIL the best cosine.
_BEST, _FIVE, _TEN, _KNOWN, _EXACT, _WEIGHT, _CONTEXT = range(7)
_SEEN_BEST, _SEEN, _UNSEEN_BEST, _UNSEEN, _ONE, _CONFIDENCE, _COLUMNS = range(7, 14)
#: Shares of the mentions that are coded, most confident first, in the curve of risk and coverage.
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9)
ALONE = (
    "the same release without sentence and phrases: the mention alone against the terms, zero-shot where "
    "S_isolated is the base"
)


class Corpus(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: Sequence[Any]
    trained: list[GoldCoding]
    """mentions that a release may have been trained on; empty where nobody knows"""


def read(data: Path, split: str, limit: int) -> Corpus | removed_terms.Removed:
    """The mentions, or for `end_to_end` the sentences, of a split."""
    if split == REMOVED_TERMS:
        return removed_terms.read(data, limit)
    path = data / "psytar/normalization.csv"
    golds = list(read_psytar_codes(path))
    parts = heldout_split(golds, split_groups())
    trained = parts.train + parts.valid
    if split == END_TO_END:
        records: Sequence[Any] = end_to_end.read(data, parts.test)
        name = end_to_end.DATA
    elif split in AMBIGUOUS:
        records = read_ambiguous(AMBIGUOUS[split], data)
        name = "PsyTAR's posts and Druglib's reviews, mentions whose words alone have several codes"
    elif split == "heldout":
        records = parts.test
        name = "PsyTAR, mentions of the held-out drugs and preferred terms"
    else:
        records = golds
        name = "PsyTAR, every mention with a mapped term, those of training too"
    return Corpus(name, records[:limit] if limit else records, trained)


def without_context(asked: Query) -> Query:
    """The mention without its sentence."""
    return replace(asked, text=asked.surface, start=0, end=len(asked.surface))


def measure(model: Any, corpus: Corpus | removed_terms.Removed) -> Result:
    """Evaluates the codings that `model.predict` gives."""
    if isinstance(corpus, removed_terms.Removed):
        return removed_terms.measure(model, corpus)
    if corpus.records and isinstance(corpus.records[0], end_to_end.Sentence):
        return end_to_end.measure(model, corpus.data, corpus.records)
    queries = [query(g) for g in corpus.records]
    started = time.perf_counter()
    codings = model.predict(queries)
    seconds = time.perf_counter() - started
    by_term, trained = pts_by_term(model.terms), _trained(corpus, model.terms)
    counts = _counts(corpus.records, codings, by_term, trained)
    bare = _counts(
        corpus.records, model.mention_only().predict([without_context(q) for q in queries]), by_term, trained
    )
    measures = _measures()
    if not corpus.trained:
        measures = tuple(m for m in measures if not m.name.endswith("seen"))
    if not counts[:, _CONTEXT].any():
        # No sentence was read, so none has a weight.
        measures = tuple(m for m in measures if m.name != "context_weight")
    baselines = {m.name: ALONE for m in measures if m.name.startswith("acc@")}
    parts = {
        name: Part(f"{corpus.data}, {what}", int(counts[:, column].sum()))
        for name, what, column in (
            ("acc@1_known", "gold terms that the terminology knows", _KNOWN),
            ("acc@5_known", "gold terms that the terminology knows", _KNOWN),
            *((_at(c), "gold terms that the terminology knows", _KNOWN) for c in COVERAGES),
            ("acc@1_seen", "known preferred terms that training has", _SEEN),
            ("acc@1_unseen", "known preferred terms that training never has", _UNSEEN),
            ("context_weight", "mentions with words around them", _CONTEXT),
        )
    }
    return Result(counts, bare, measures, baselines, seconds, parts)


def _trained(corpus: Corpus, terms: Sequence[Term]) -> set[str]:
    """The preferred terms that occur in the training part."""
    by_term = pts_by_term(terms)
    return {pt for g in corpus.trained for pt in right_terms(g, by_term)}


def _counts(
    golds: Sequence[GoldCoding], codings: Sequence[Coding], by_term: dict[str, set[str]], trained: set[str]
) -> Counts:
    counts = np.zeros((len(golds), _COLUMNS))
    for row, gold, coding in zip(counts, golds, codings, strict=True):
        right = right_terms(gold, by_term)
        pts = [c.pt for c in coding.candidates]
        for column, k in ((_BEST, 1), (_FIVE, 5), (_TEN, 10)):
            row[column] = bool(set(pts[:k]) & right)
        row[_KNOWN] = bool(right)
        row[_EXACT] = bool(by_term.get(gold.mention.strip().lower(), set()) & right)
        row[_SEEN] = bool(right & trained)
        row[_UNSEEN] = row[_KNOWN] - row[_SEEN]
        row[_SEEN_BEST], row[_UNSEEN_BEST] = row[_BEST] * row[_SEEN], row[_BEST] * row[_UNSEEN]
        row[_CONTEXT] = coding.context_weight is not None
        row[_WEIGHT] = coding.context_weight or 0.0
        row[_ONE] = 1
        if coding.candidates:
            best = coding.candidates[0].score
            row[_CONFIDENCE] = best if coding.confidence is None else coding.confidence
    return counts


def _at(coverage: float) -> str:
    return f"acc@1_at_{100 * coverage:.0f}"


def _measures() -> tuple[Measure, ...]:
    against = "the release's own terminology"
    how = f"NIL ignored, the mention in its sentence, against {against}"
    every = f"{how}; a gold term unknown by name is a miss"
    known = f"{how}; over the mentions with a gold term known by name"
    best = "share of gold mentions with a gold preferred term as the best"
    five, ten = (f"share of gold mentions with a gold preferred term among the {k} best" for k in (5, 10))
    never = "over the mentions whose known preferred terms training"
    rows: list[Measure] = [
        ratio("acc@1", f"{best}; {every}", (_BEST, _ONE)),
        ratio("acc@5", f"{five}; {every}", (_FIVE, _ONE)),
        ratio("acc@10", f"{ten}; {every}; as acc@5 where a release keeps 5", (_TEN, _ONE)),
        ratio("acc@1_known", f"{best}; {known}", (_BEST, _KNOWN)),
        ratio("acc@5_known", f"{five}; {known}", (_FIVE, _KNOWN)),
        ratio("acc@1_seen", f"{best}; {how}; {never} has", (_SEEN_BEST, _SEEN)),
        ratio("acc@1_unseen", f"{best}; {how}; {never} never has", (_UNSEEN_BEST, _UNSEEN)),
        ratio("exact", f"share of gold mentions that are a right lowest-level term, case ignored; {every}",
              (_EXACT, _ONE)),
        ratio("known", f"share of gold mentions with a gold term known by name to {against}", (_KNOWN, _ONE)),
        ratio("context_weight", "mean weight of the sentence in a mention's vector, over those that have one",
              (_WEIGHT, _CONTEXT)),
    ]  # fmt: skip
    rows += [
        accuracy_at(_at(c), f"{best}, of the {c:.0%} with the highest confidence (without a rule for NIL the "
                    f"best cosine); {known}", (_BEST, _CONFIDENCE, _KNOWN), c)
        for c in COVERAGES
    ]  # fmt: skip
    return tuple(rows)
