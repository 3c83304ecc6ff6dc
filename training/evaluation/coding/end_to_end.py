"""Evaluation of tagging and normalization together: the preferred terms of a sentence from its text alone."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, micro_f1, ratio
from models.types import ADE, Coding, Query
from training.common.bundled_tagger import bundled_tagger
from training.common.codings.split import pts_by_term, right_terms
from training.common.corpora import GoldCoding, letters_and_digits, read_psytar, read_psytar_codes
from training.evaluation.result import Result

END_TO_END = "end_to_end"
DATA = (
    "PsyTAR, held-out sentences without an unmapped effect that are not among the training sentences of the "
    "bundled tagger"
)
#: Columns: right, predicted and gold pairs of sentence and preferred term.
_RIGHT, _PREDICTED, _GOLD = range(3)


class Sentence(NamedTuple):
    """A sentence with the codings of all its effects."""

    text: str
    golds: tuple[GoldCoding, ...]


def read(data: Path, test: Sequence[GoldCoding]) -> list[Sentence]:
    """Sentences of which every annotated effect is a test mention."""
    tagged = {letters_and_digits(t.text) for t in read_psytar(data / "psytar/ner_train.conll")}
    wanted = set(test)
    by_text: dict[str, list[GoldCoding]] = {}
    for gold in read_psytar_codes(data / "psytar/normalization.csv", unmapped=True):
        by_text.setdefault(gold.sentence, []).append(gold)
    return [
        Sentence(text, tuple(golds))
        for text, golds in by_text.items()
        if letters_and_digits(text) not in tagged and all(g in wanted for g in golds)
    ]


def measure(model: Any, data: str, sentences: Sequence[Sentence], tagger: Any = None) -> Result:
    """Evaluates tagger and coder together. `tagger`: by default the bundled one."""
    started = time.perf_counter()
    tagged = (tagger or bundled_tagger()).predict([s.text for s in sentences])
    effects = [[m for m in mentions if m.label == ADE] for mentions in tagged]
    rows = [(i, m) for i, of_sentence in enumerate(effects) for m in of_sentence]
    queries = [Query(sentences[i].text, m.start, m.end, m.text) for i, m in rows]
    places = [i for i, _ in rows]
    codings = model.predict(queries)
    seconds = time.perf_counter() - started
    bare = [replace(q, text=q.surface, start=0, end=len(q.surface)) for q in queries]
    by_term = pts_by_term(model.terms)
    counts, baseline = (
        _counts(sentences, _by_place(places, answers, len(sentences)), by_term)
        for answers in (codings, model.mention_only().predict(bare))
    )
    definition = (
        "distinct pairs of sentence and preferred term, mentions predicted by the bundled tagger, NIL is no "
        "prediction; a gold mention with several terms is right with any of them, one with a term unknown by "
        "name is a miss"
    )
    measures = (
        micro_f1("f1", f"micro F1 of {definition}", (_RIGHT,)),
        ratio("precision", f"precision of {definition}", (_RIGHT, _PREDICTED)),
        ratio("recall", f"recall of {definition}", (_RIGHT, _GOLD)),
    )
    alone = "the same tagger and coder, each mention coded without its sentence and without phrases"
    return Result(counts, baseline, measures, dict.fromkeys((m.name for m in measures), alone), seconds)


def _by_place(places: Sequence[int], codings: Sequence[Coding], n: int) -> list[set[str]]:
    by_sentence: list[set[str]] = [set() for _ in range(n)]
    for i, coding in zip(places, codings, strict=True):
        if not coding.nil and coding.candidates:
            by_sentence[i].add(coding.candidates[0].pt)
    return by_sentence


def _counts(sentences: Sequence[Sentence], coded: Sequence[set[str]], by_term: dict[str, set[str]]) -> Counts:
    counts = np.zeros((len(sentences), 3))
    for row, sentence, pts in zip(counts, sentences, coded, strict=True):
        gold = {frozenset(right_terms(g, by_term) or g.terms) for g in sentence.golds}
        row[:] = matched_terms(gold, pts), len(pts), len(gold)
    return counts


def matched_terms(gold: Set[frozenset[str]], found: Set[str]) -> int:
    """The most gold mentions that can be found with each predicted term counting for one."""
    taken: dict[str, frozenset[str]] = {}

    def has_term(wanted: frozenset[str], tried: set[str]) -> bool:
        """Takes a term for a gold mention, for which another one may change its term."""
        for pt in wanted & found - tried:
            tried.add(pt)
            if pt not in taken or has_term(taken[pt], tried):
                taken[pt] = wanted
                return True
        return False

    return sum(has_term(wanted, set()) for wanted in gold)
