"""Evaluation of relations among the mentions of the bundled tagger: strict mentions and relations on the
folds of the ADE corpus, or on parts that share no abstract, and false relations in sentences without an
adverse event.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts, Measure, Spans, divide_or_zero, f1_of, micro_f1, ratio, span_counts
from models.types import ADE, DRUG, Case, Mention, TaggedText
from training.common.bundled_tagger import tagged
from training.common.corpora import (
    GoldText,
    read_ade,
    read_ade_abstracts,
    read_ade_fold,
    read_ade_negatives,
    read_negative_abstracts,
)
from training.common.tagging.spans import DictionaryTagger, Mentioned, gold_spans, mention_spans
from training.evaluation.measures import macro_f1
from training.evaluation.result import Part, Result

FOLDS, GROUPS = "ade_fold_", "ade_group_"
#: The folds of the papers, and ten parts that share no abstract.
SPLITS = tuple(f"{kind}{number}" for kind in (FOLDS, GROUPS) for number in range(1, 11))
PRIMARY = "re_corpus_f1"
LABELS = (DRUG, ADE)
SEED = 42
Place = tuple[int, int]
Linked = set[tuple[Place, Place]]
NEGATIVES = "ADE corpus negatives of a fifth of the abstracts, never trained on"
#: Columns: triples of DRUG, ADE, relations strict, as the authors count and given the entities; then false
#: relations, false effects, sentences without an event and with one.
_STRICT, _AUTHORS, _GIVEN = 6, 9, 12
_FALSE, _EFFECTS, _NEGATIVE, _POSITIVE, _COLUMNS = 15, 16, 17, 18, 19
#: The corpus' number of sentences without an adverse event for each sentence with one.
PROPORTION = 16695 / 4272
_ONE_TYPE = "macro F1 over the types of relation, of which the corpus has one, so that micro is the same"


def _corpus_f1(sums: Counts) -> Counts:
    right, predicted, gold = sums[:, _STRICT:_AUTHORS].T
    false = PROPORTION * sums[:, _POSITIVE] * divide_or_zero(sums[:, _FALSE], sums[:, _NEGATIVE])
    return f1_of(right, predicted + false, gold)


MEASURES = (
    Measure(
        PRIMARY,
        "strict F1 as if sentences without an adverse event were 3.91 times those with one, as in the whole "
        "corpus: their false relations count, in that proportion",
        _corpus_f1,
    ),
    macro_f1("ner_strict_macro_f1", "exact boundaries and label; macro F1 over DRUG, ADE", [0, 3]),
    micro_f1("ner_strict_micro_f1", "exact boundaries and label; micro F1 over DRUG, ADE", [0, 3]),
    macro_f1(
        "re_strict_macro_f1",
        f"both mentions exact in boundaries and labels, every gold relation counts; {_ONE_TYPE}",
        [_STRICT],
    ),
    micro_f1(
        "re_strict_f1_authors",
        "as the code of CLDR counts: strict, but a gold relation that the space of relations affirms is "
        "never missed; with a wrong mention it is a false one",
        [_AUTHORS],
    ),
    micro_f1("re_given_f1", "relations between the gold mentions; micro F1", [_GIVEN]),
    ratio(
        "false_relations_per_1000",
        "relations found in 1,000 sentences without an adverse event; lower is better",
        (_FALSE, _NEGATIVE),
        times=1000,
    ),
    ratio(
        "false_effects_per_1000",
        "effects found in 1,000 sentences without an adverse event; lower is better",
        (_EFFECTS, _NEGATIVE),
        times=1000,
    ),
)
DICTIONARY = "longest match of training mentions, each with its commonest label"
EVERY_PAIR = "link every pair of predicted mentions"
BASELINES = {
    "ner_strict_macro_f1": DICTIONARY,
    "ner_strict_micro_f1": DICTIONARY,
    PRIMARY: EVERY_PAIR,
    "re_strict_macro_f1": EVERY_PAIR,
    "re_strict_f1_authors": EVERY_PAIR,
    "re_given_f1": "link every pair of gold mentions",
    "false_relations_per_1000": EVERY_PAIR,
    "false_effects_per_1000": DICTIONARY,
}


class Corpus(NamedTuple):
    """What a release is evaluated on; `without` names the sentences without an adverse event."""

    part: str
    training: list[GoldText]
    test: list[GoldText]
    negatives: list[GoldText]
    without: str = NEGATIVES

    @property
    def data(self) -> str:
        return f"{self.part}, and {self.without}"

    @property
    def records(self) -> list[GoldText]:
        """The rows of the counts: the test sentences, then those without an adverse event."""
        return self.test + self.negatives


def split_texts(ade: Path, split: str) -> tuple[list[GoldText], list[GoldText]]:
    """Training and test sentences of a split; the groups share no abstract with each other."""
    if split.startswith(FOLDS):
        return read_ade_fold(ade, int(split.removeprefix(FOLDS)))
    number = int(split.removeprefix(GROUPS)) - 1
    texts, abstract = list(read_ade(ade).values()), read_ade_abstracts(ade)
    order = sorted({abstract[t.id] for t in texts})
    random.Random(SEED).shuffle(order)
    tested = set(order[number::10])
    return (
        [t for t in texts if abstract[t.id] not in tested],
        [t for t in texts if abstract[t.id] in tested],
    )


def split_negatives(ade: Path, split: str) -> tuple[list[GoldText], list[GoldText]]:
    """Sentences without an adverse event: (for training, held out).

    A fifth of their abstracts is held out, the same for all splits. The training part has no sentence of an
    abstract of a test sentence and no sentence that is tested. In a group, no sentence of an abstract that is
    trained on is held out.
    """
    training, test = split_texts(ade, split)
    abstract = read_ade_abstracts(ade)
    tested = {abstract[t.id] for t in test}
    known = {abstract[t.id] for t in training} if split.startswith(GROUPS) else set()
    texts, of = read_ade_negatives(ade / "negatives.txt"), read_negative_abstracts(ade / "negatives.txt")
    order = sorted(set(of))
    random.Random(SEED).shuffle(order)
    held = set(order[: round(len(order) / 5)])
    held_texts = {t.text for t, a in zip(texts, of, strict=True) if a in held} | {t.text for t in test}
    return (
        [
            t
            for t, a in zip(texts, of, strict=True)
            if a not in held and a not in tested and t.text not in held_texts
        ],
        [t for t, a in zip(texts, of, strict=True) if a in held and a not in known],
    )


def read(data: Path, split: str, limit: int) -> Corpus:
    """The test part of a split and the held-out negatives, the first `limit` of each."""
    training, test = split_texts(data / "ade", split)
    _, negatives = split_negatives(data / "ade", split)
    last = limit or None
    name = split.removeprefix("ade_").replace("_", " ")
    return Corpus(f"ADE corpus {name} test", training, test[:last], negatives[:last])


def measure(model: Any, corpus: Corpus) -> Result:
    """Evaluates a model of relations among the mentions of the bundled tagger, and among the gold ones."""
    texts = [t.text for t in corpus.test]
    started = time.perf_counter()
    found = related(model, texts)
    false = related(model, [t.text for t in corpus.negatives])
    seconds = time.perf_counter() - started
    given = model.predict([Case(t.text, gold_mentions(t)) for t in corpus.test])
    dictionary = DictionaryTagger(corpus.training)
    test = Part(corpus.part, len(texts))
    negatives = Part(corpus.without, len(corpus.negatives))
    both = Part(corpus.data, len(corpus.records))
    return Result(
        _counts(
            corpus,
            mention_spans(f.mentions for f in found),
            [
                (relations(f), given_relations(t, g))
                for f, t, g in zip(found, corpus.test, given, strict=True)
            ],
            [(len(relations(a)), effects(mention_spans([a.mentions])[0])) for a in false],
        ),
        _counts(
            corpus,
            dictionary.predict(texts),
            [(pairs(f), every_pair(t)) for f, t in zip(found, corpus.test, strict=True)],
            [
                (len(pairs(a)), effects(d))
                for a, d in zip(false, dictionary.predict(t.text for t in corpus.negatives), strict=True)
            ],
        ),
        MEASURES,
        BASELINES,
        seconds,
        {m.name: negatives if m.name.startswith("false") else test for m in MEASURES} | {PRIMARY: both},
    )


def related(model: Any, texts: Sequence[str]) -> list[TaggedText]:
    """The drugs and effects of the bundled tagger with the relations of a model."""
    mentions = [tuple(m for m in found if m.label in LABELS) for found in tagged(texts)]
    relations = model.predict(list(map(Case, texts, mentions)))
    return [TaggedText(m, tuple(r)) for m, r in zip(mentions, relations, strict=True)]


def gold_mentions(text: GoldText) -> tuple[Mention, ...]:
    """The gold mentions of a text as a tagger would give them."""
    return tuple(Mention(m.start, m.end, text.text[m.start : m.end], m.label, 1.0) for m in text.mentions)


def relations(tagged: TaggedText) -> Linked:
    """The relations of a text as pairs of spans, drug first."""
    return {(span_of(tagged.mentions[r.head]), span_of(tagged.mentions[r.tail])) for r in tagged.relations}


def pairs(tagged: TaggedText) -> Linked:
    """Every drug with every effect of a text as pairs of spans."""
    return _product(tagged.mentions)


def given_relations(text: GoldText, given: Sequence[Any]) -> Linked:
    """Relations among a text's gold mentions as pairs of spans."""
    return {(span_of(text.mentions[r.head]), span_of(text.mentions[r.tail])) for r in given}


def every_pair(text: GoldText) -> Linked:
    """Every gold drug with every gold effect of a text as pairs of spans."""
    return _product(text.mentions)


def gold_relations(text: GoldText) -> Linked:
    """The gold relations of a text as pairs of spans."""
    return {(span_of(text.mentions[d]), span_of(text.mentions[e])) for d, e in text.relations}


def effects(spans: Spans) -> int:
    """The number of effects among mentions."""
    return sum(label == ADE for _, _, label in spans)


def authors_triple(found: Linked, given: Linked, gold: Linked) -> tuple[int, int, int]:
    """(true positives, predicted, gold) as the code of CLDR counts them.

    Every pair of last words that is classified as related counts as predicted, and as right where both
    mentions are found exactly. A gold relation is missed only where its pair of words is classified as
    unrelated.
    """
    right = found & gold
    predicted = {_last_words(r) for r in found | (given & gold)}
    wrong = predicted - {_last_words(r) for r in right}
    missed = gold - given - found
    return len(right), len(right) + len(wrong), len(right) + len(missed)


def _counts(
    corpus: Corpus,
    spans: Sequence[Spans],
    linked: Sequence[tuple[Linked, Linked]],
    false: Sequence[tuple[int, int]],
) -> Counts:
    """`linked`: relations found, and found given the entities; `false`: numbers of relations and effects
    found in each sentence without an event.
    """
    n = len(corpus.test)
    counts = np.zeros((len(corpus.records), _COLUMNS))
    counts[:n, :_STRICT] = span_counts(spans, gold_spans(corpus.test), LABELS)
    for row, text, (found, given) in zip(counts[:n], corpus.test, linked, strict=True):
        gold = gold_relations(text)
        row[_STRICT:_AUTHORS] = _triple(found, gold)
        row[_AUTHORS:_GIVEN] = authors_triple(found, given, gold)
        row[_GIVEN:_FALSE] = _triple(given, gold)
    counts[n:, _FALSE : _EFFECTS + 1] = np.array(false).reshape(-1, 2)
    counts[n:, _NEGATIVE] = 1
    counts[:n, _POSITIVE] = 1
    return counts


def _triple(found: set[Any], gold: set[Any]) -> tuple[int, int, int]:
    return len(found & gold), len(found), len(gold)


def _product(mentions: Sequence[Mentioned]) -> Linked:
    drug, effect = ([span_of(m) for m in mentions if m.label == label] for label in LABELS)
    return {(d, e) for d in drug for e in effect}


def _last_words(relation: tuple[Place, Place]) -> Place:
    """The ends of the last words of both mentions."""
    return relation[0][1], relation[1][1]


def span_of(mention: Mentioned) -> Place:
    """Where a mention is in its text."""
    return mention.start, mention.end
