"""Relations: strict mentions and relations on the folds of the ADE corpus, false ones in sentences without an
adverse event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, Spans, macro_f1, micro_f1, ratio, span_counts
from models.types import ADE, DRUG, TaggedText
from training.evaluations.measured import Measured, Part
from training.readers import GoldText, hold_out, read_ade_fold, read_ade_negatives
from training.scores import DictionaryTagger, Mentioned, gold_spans, mention_spans

SPLITS = tuple(f"ade_fold_{fold}" for fold in range(1, 11))
PRIMARY = "re_strict_micro_f1"
LABELS = (DRUG, ADE)
Linked = set[tuple[tuple[int, int], tuple[int, int]]]
NEGATIVES = "ADE corpus negatives, the fifth held out of the support"
#: Columns: a triple for DRUG, one for ADE, one for relations, false relations, sentences without an event.
_RELATION, _FALSE, _NEGATIVE, _COLUMNS = 6, 9, 10, 11
MEASURES = (
    macro_f1("ner_strict_macro_f1", "exact boundaries and label; macro F1 over DRUG, ADE", [0, 3]),
    micro_f1(
        PRIMARY,
        "both mentions exact in boundaries and labels; every gold relation counts; micro F1",
        [_RELATION],
    ),
    ratio(
        "false_relations_per_1000",
        "relations found in 1,000 sentences without an adverse event; lower is better",
        (_FALSE, _NEGATIVE),
        times=1000,
    ),
)
EVERY_PAIR = "link every pair of predicted mentions"
BASELINES = {
    "ner_strict_macro_f1": "longest match of training mentions, each with its commonest label",
    PRIMARY: EVERY_PAIR,
    "false_relations_per_1000": EVERY_PAIR,
}


class Corpus(NamedTuple):
    fold: str
    training: list[GoldText]
    test: list[GoldText]
    negatives: list[GoldText]

    @property
    def data(self) -> str:
        return f"{self.fold}, and {NEGATIVES}"

    @property
    def records(self) -> list[GoldText]:
        """Every row of the counts: the fold's sentences, then those without an adverse event."""
        return self.test + self.negatives


def split_negatives(ade: Path) -> tuple[list[GoldText], list[GoldText]]:
    """Sentences without an adverse event (for a support, held out).

    The same two whatever is trained or measured: without the test sentences of fold 1, seed 42.
    """
    tested = {t.text for t in read_ade_fold(ade, 1)[1]}
    return hold_out([t for t in read_ade_negatives(ade / "negatives.txt") if t.text not in tested], 0.2, 42)


def read(data: Path, split: str, limit: int) -> Corpus:
    """A fold and the held-out negatives, the first `limit` of each."""
    fold = int(split.removeprefix("ade_fold_"))
    training, test = read_ade_fold(data / "ade", fold)
    _, negatives = split_negatives(data / "ade")
    last = limit or None
    return Corpus(f"ADE corpus fold {fold} test", training, test[:last], negatives[:last])


def measure(model: Any, corpus: Corpus) -> Measured:
    texts = [t.text for t in corpus.test]
    started = time.perf_counter()
    found = model.predict(texts)
    alarms = model.predict([t.text for t in corpus.negatives])
    seconds = time.perf_counter() - started
    dictionary = DictionaryTagger(corpus.training).predict(texts)
    fold = Part(corpus.fold, len(texts))
    return Measured(
        _counts(corpus, mention_spans(f.mentions for f in found), *_each(relations, found, alarms)),
        _counts(corpus, dictionary, *_each(pairs, found, alarms)),
        MEASURES,
        BASELINES,
        seconds,
        {
            "ner_strict_macro_f1": fold,
            PRIMARY: fold,
            "false_relations_per_1000": Part(NEGATIVES, len(corpus.negatives)),
        },
    )


def relations(found: TaggedText) -> Linked:
    """The relations of a text as pairs of spans."""
    return {(_span(found.mentions[r.head]), _span(found.mentions[r.tail])) for r in found.relations}


def pairs(found: TaggedText) -> Linked:
    """Every drug with every effect of a text as pairs of spans."""
    drug, effect = ([_span(m) for m in found.mentions if m.label == label] for label in LABELS)
    return {(d, e) for d in drug for e in effect}


def _each(
    link: Callable[[TaggedText], Linked], found: Sequence[TaggedText], alarms: Sequence[TaggedText]
) -> tuple[list[Linked], list[int]]:
    return [link(f) for f in found], [len(link(f)) for f in alarms]


def _counts(
    corpus: Corpus, spans: Sequence[Spans], linked: Sequence[Linked], alarms: Sequence[int]
) -> Counts:
    n = len(corpus.test)
    counts = np.zeros((len(corpus.records), _COLUMNS))
    counts[:n, :_RELATION] = span_counts(spans, gold_spans(corpus.test), LABELS)
    for row, text, found in zip(counts[:n], corpus.test, linked, strict=True):
        gold = {(_span(text.mentions[d]), _span(text.mentions[e])) for d, e in text.relations}
        row[_RELATION:_FALSE] = len(found & gold), len(found), len(gold)
    counts[n:, _FALSE] = alarms
    counts[n:, _NEGATIVE] = 1
    return counts


def _span(mention: Mentioned) -> tuple[int, int]:
    return mention.start, mention.end
