"""Evaluation of normalization: PsyTAR's mapped mentions in their sentences, coded to the release's own
terminology, or by its encoders to SIDER's names.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, Measure, ratio
from models.terminology import Term
from models.types import Coding, Query
from training.common.codings.split import heldout_split, pts_by_term, query, right_terms, split_groups
from training.common.corpora import ENCODING, GoldCoding, in_form, read_psytar_codes
from training.evaluation.coding import end_to_end, removed_terms
from training.evaluation.coding.end_to_end import END_TO_END
from training.evaluation.coding.removed_terms import REMOVED_TERMS
from training.evaluation.measures import accuracy_at
from training.evaluation.result import Part, Result

SPLITS = ("heldout", "heldout_sider", "all", "sider", END_TO_END, REMOVED_TERMS)
PRIMARY = "acc@1"
SIDER = "terminology/sider_llt_pt.csv"
#: Columns: a gold preferred term is the best, is among the 5 and the 10 best; the terminology knows a gold
#: term; the mention is a right term literally; the weight of the context, and whether there was any; of the
#: mentions with a known preferred term that training has, those with the right best and all; the same of
#: those that it never has; a gold name is literally the best term's (counted on SIDER only); one; the
#: confidence, without a rule for NIL the best cosine.
_BEST, _FIVE, _TEN, _KNOWN, _EXACT, _WEIGHT, _CONTEXT = range(7)
_SEEN_BEST, _SEEN, _UNSEEN_BEST, _UNSEEN, _NAMED, _ONE, _CONFIDENCE, _COLUMNS = range(7, 15)
#: Shares of the mentions that are coded, most confident first, in the curve of risk and coverage.
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9)
ALONE = (
    "the same release without sentence and phrases: the mention alone against the terms, zero-shot where "
    "S_isolated is the base"
)
LITERAL = "the mention is itself a gold name, case ignored"


class Corpus(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: Sequence[Any]
    sider: list[Term] | None
    """terms to code to instead of the release's own"""
    trained: list[GoldCoding]
    """mentions that a release may have been trained on"""


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
    elif split.startswith("heldout"):
        records = parts.test
        name = "PsyTAR, mentions of the held-out drugs and preferred terms"
    else:
        records = golds
        name = "PsyTAR, every mention with a mapped term, those of training too"
    sider = read_sider(data / SIDER) if split.endswith("sider") else None
    return Corpus(name, records[:limit] if limit else records, sider, trained)


def read_sider(path: Path) -> list[Term]:
    """Lowest-level and preferred names of side effects (SIDER 4.1): for evaluation only, never shipped.
    Raises CorpusError.
    """
    with in_form(path), path.open(encoding=ENCODING, newline="") as file:
        return [Term(row["llt"], row["pt"], "-") for row in csv.DictReader(file)]


def without_context(asked: Query) -> Query:
    """The mention without its sentence."""
    return replace(asked, text=asked.surface, start=0, end=len(asked.surface))


def measure(model: Any, corpus: Corpus | removed_terms.Removed) -> Result:
    """Evaluates the codings that `model.predict` gives."""
    if isinstance(corpus, removed_terms.Removed):
        return removed_terms.measure(model, corpus)
    if corpus.records and isinstance(corpus.records[0], end_to_end.Sentence):
        return end_to_end.measure(model, corpus.data, corpus.records, _trained(corpus, model.terms))
    coder = model if corpus.sider is None else model.with_terms(corpus.sider, 10)
    queries = [query(g) for g in corpus.records]
    started = time.perf_counter()
    found = coder.predict(queries)
    seconds = time.perf_counter() - started
    by_term, trained = pts_by_term(coder.terms), _trained(corpus, coder.terms)
    counts = _counts(corpus.records, found, by_term, trained)
    bare = _counts(
        corpus.records, coder.mention_only().predict([without_context(q) for q in queries]), by_term, trained
    )
    measures = _measures(corpus.sider is not None)
    if not counts[:, _CONTEXT].any():
        # No sentence was read, so none has a weight.
        measures = tuple(m for m in measures if m.name != "context_weight")
    baselines = {m.name: ALONE for m in measures if m.name.startswith("acc@")}
    if corpus.sider is not None:
        counts[:, _NAMED] = _by_name(coder, corpus.records)
        bare[:, _NAMED] = [g.mention.capitalize() in g.terms for g in corpus.records]
        baselines["acc@1_by_name"] = LITERAL
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


def _by_name(coder: Any, golds: Sequence[GoldCoding]) -> list[bool]:
    """Whether the name of the best term of the mention alone, or of its preferred term, is a gold name. Of a
    lowest-level term in several rows only the first row counts, as in the published figure.
    """
    from models.encoder.faiss_index import CosineIndex  # noqa: PLC0415  seconds to import

    vectors = coder.encoder.embed([t.llt for t in coder.terms])
    mentions = coder.encoder.embed([g.mention for g in golds])
    _, best = CosineIndex(vectors.numpy()).search(mentions.numpy(), 1)
    named = ({coder.terms[row].llt, coder.terms[row].pt} for (row,) in best.tolist())
    return [bool(names & set(g.terms)) for names, g in zip(named, golds, strict=True)]


def _counts(
    golds: Sequence[GoldCoding], found: Sequence[Coding], by_term: dict[str, set[str]], trained: set[str]
) -> Counts:
    counts = np.zeros((len(golds), _COLUMNS))
    for row, gold, coding in zip(counts, golds, found, strict=True):
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


def _measures(sider: bool) -> tuple[Measure, ...]:
    against = "SIDER 4.1 names (licensed, not shipped)" if sider else "the release's own terminology"
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
    if sider:
        named = "whose best lowest-level term, or its first preferred term, is literally a gold name"
        alone_ = f"the mention alone, against {against}"
        rows.append(ratio("acc@1_by_name", f"share of gold mentions {named}; {alone_}", (_NAMED, _ONE)))
    return tuple(rows)
