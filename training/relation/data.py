"""Training sentences of CLNER, CLDR and CLGS: pieces, words, tags, last words of related mentions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.encoder.word_pieces import WordPieces
from models.ner.decoding import Numbers, spans_of, tags_of
from models.relation.pairs import LABELS
from models.relation.support_set import Floats, NamedPair
from models.text import word_texts, words
from models.types import ADE, DRUG, Span
from training.common.corpora import (
    CorpusError,
    GoldText,
    hold_out,
    read_ade_abstracts,
    read_negative_abstracts,
)
from training.common.tagging.word_tags import word_tags
from training.evaluation.relation import split_negatives, split_texts
from training.teaching.readers import gold_texts, sample

TAGS = tags_of(LABELS)
#: The tag of a word that is neither trained on nor a sample for others.
UNKNOWN = -1
#: Sentences without an event on which false relations are counted in validation.
VALID_NEGATIVES = 1000


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence; words are those whose pieces are all within the encoder's limit."""

    gold: GoldText
    pieces: list[int]
    word_of: Numbers
    """(pieces,): which word a piece belongs to"""
    tags: Numbers
    """(words,)"""
    pairs: Numbers
    """(relations, 2): last words of drug and effect"""
    unrelated: Numbers
    """(pairs, 2): last words of a drug and an effect that it did not cause"""
    wrong: NDArray[np.bool_]
    """(2, words): outside of every drug, and outside of every effect"""


class Corpus(NamedTuple):
    """Sentences with (`train`, `valid`) and without an adverse event; `train` may have written ones."""

    train: list[GoldText]
    valid: list[GoldText]
    negatives: list[GoldText]
    """without an event, for training"""
    valid_negatives: list[GoldText]
    """without an event, for validation"""
    sources: Mapping[str, str] = MappingProxyType({})
    """of sentence ids: a written sentence itself; where others stand, because they may not be copied"""


def read(data: Path, training: Mapping[str, Any]) -> Corpus:
    """Training and validation sentences of a split (10 %, as in the paper), none of which is tested.
    `training`: settings, or those in a manifest. Sentences of the teaching corpus without an effect are
    trained on too, because their drugs are all marked. Raises CorpusError for a corpus without sentences.
    """
    split, seed, last = training["split"], training["seed"], training["limit"] or None
    train, test = split_texts(data / "ade", split)
    negatives = split_negatives(data / "ade", split)[0] if training["negatives"] else []
    if not train or (training["negatives"] and not negatives):
        kind = "without" if train else "with"
        raise CorpusError(f"{data / 'ade'} has no sentence {kind} an event to train on")
    tested = {t.text for t in test}
    rest, valid = hold_out([t for t in train if t.text not in tested], 0.1, seed)
    share = min(0.1, VALID_NEGATIVES / max(1, len(negatives)))
    train_negatives, valid_negatives = hold_out(negatives, share, seed)
    taught = sample(gold_texts("clinical", "train", labels=LABELS), training["teaching"], seed)
    sources = {t.id: " ".join(t.text.split()) for t in taught} | _abstracts(data / "ade")
    lists = rest[:last] + taught[:last], valid[:last], train_negatives[:last], valid_negatives[:last]
    return Corpus(*lists, sources)


def _abstracts(ade: Path) -> dict[str, str]:
    """Sentence id to its abstract, with and without an event."""
    negatives = ade / "negatives.txt"
    without = read_negative_abstracts(negatives) if negatives.exists() else []
    numbers = read_ade_abstracts(ade) | {f"neg-{i}": number for i, number in enumerate(without)}
    return {id_: f"PubMed {number}" for id_, number in numbers.items()}


def has_effect(text: GoldText) -> bool:
    """Whether an effect is annotated."""
    return any(m.label == ADE for m in text.mentions)


def known_drugs(texts: Sequence[GoldText]) -> list[DrugLexicon]:
    """The bundled lexicon, and what is a drug in these texts."""
    named = {t.text[m.start : m.end].lower() for t in texts for m in t.mentions if m.label == DRUG}
    return [DrugLexicon.load(), DrugLexicon({name: name for name in named})]


def examples(
    texts: Sequence[GoldText], encoder: Encoder, lexicons: Sequence[DrugLexicon] = ()
) -> list[Example]:
    """`lexicons`: in a sentence without a gold mention, their drugs are not trained on as words outside of
    mentions, because the corpus annotates a drug only where it caused an event.
    """
    split = encoder.split([word_texts(t.text) for t in texts])
    limit = encoder.max_pieces - 2
    return [_example(t, words(t.text), s, limit, lexicons) for t, s in zip(texts, split, strict=True)]


def _example(
    text: GoldText, spans: Sequence[Span], split: WordPieces, limit: int, lexicons: Sequence[DrugLexicon]
) -> Example:
    count = np.array(split.count, dtype=np.int64)
    n = int((np.array(split.first, dtype=np.int64) + count <= limit).sum())
    spans, count = spans[:n], count[:n]
    tags = np.array([TAGS.index(t) for t in word_tags(text, spans, None)], dtype=np.int64)
    for lexicon in () if text.mentions else lexicons:
        for span, _ in lexicon.find(text.text):
            tags[_within(spans, span.start, span.end)] = UNKNOWN
    # A word of which the tokenizer leaves nothing has no vector to learn from.
    tags[count == 0] = UNKNOWN
    wrong = np.ones((len(LABELS), n), bool)
    for m in text.mentions:
        wrong[LABELS.index(m.label)] &= ~_within(spans, m.start, m.end)
    every = [(m.start, m.end, m.label) for m in text.mentions]
    pieces = split.pieces[: int(count.sum())]
    none = _pair_rows(set())
    return paired(Example(text, pieces, np.repeat(np.arange(n), count), tags, none, none, wrong), every)


def paired(example: Example, mentions: Sequence[tuple[int, int, str]]) -> Example:
    """A sentence with the pairs of these mentions; a pair is related where its two mentions are exactly those
    of a gold relation.
    """
    gold = example.gold.mentions
    wanted = {(gold[d].start, gold[d].end, gold[e].start, gold[e].end) for d, e in example.gold.relations}
    spans = words(example.gold.text)[: len(example.tags)]
    pairs: dict[bool, set[tuple[int, int]]] = {True: set(), False: set()}
    for drug in (m for m in mentions if m[2] == DRUG):
        for effect in (m for m in mentions if m[2] == ADE):
            kind = (*drug[:2], *effect[:2]) in wanted
            pairs[kind].add((_last_word(spans, drug[1]), _last_word(spans, effect[1])))
    return replace(example, pairs=_pair_rows(pairs[True]), unrelated=_pair_rows(pairs[False] - pairs[True]))


def _pair_rows(pairs: set[tuple[int, int]]) -> Numbers:
    """(pairs, 2) without those whose word was cut off, or of which both words are the same."""
    return np.array(sorted(p for p in pairs if min(p) >= 0 and p[0] != p[1]), np.int64).reshape(-1, 2)


def _last_word(spans: Sequence[Span], end: int) -> int:
    """The index of the word in which a mention ends; -1 where it was cut off."""
    return next((i for i, s in enumerate(spans) if s.start < end <= s.end), -1)


def _within(spans: Sequence[Span], start: int, end: int) -> NDArray[np.bool_]:
    return np.array([s.start < end and start < s.end for s in spans], dtype=bool)


def mentions_of(tags: Numbers, data: Sequence[Example]) -> list[list[tuple[int, int, str]]]:
    """The mentions of each sentence as spans, from the tags of the words of all sentences in turn."""
    by_sentence, at = [], 0
    for example in data:
        names = [TAGS[t] for t in tags[at : at + len(example.tags)]]
        at += len(names)
        spans = words(example.gold.text)
        by_sentence.append([(spans[a].start, spans[b - 1].end, label) for label, a, b in spans_of(names)])
    return by_sentence


def pair_places(data: Sequence[Example]) -> tuple[Numbers, NDArray[np.bool_]]:
    """(pairs, 2): the rows of both words among the words of all sentences, and which pairs are related; of
    each sentence the related ones first.
    """
    both = [
        (rows + first, np.full(len(rows), kind))
        for e, first in zip(data, offsets(data).tolist(), strict=True)
        for rows, kind in ((e.pairs, True), (e.unrelated, False))
    ]
    rows, kinds = zip(*both, strict=True) if both else ([_pair_rows(set())], [np.zeros(0, bool)])
    return np.concatenate(rows), np.concatenate(kinds)


def named_pairs(data: Sequence[Example], sources: Mapping[str, str]) -> list[NamedPair]:
    """The pairs of `pair_places` in words: whole gold mentions, of others their last words."""
    found = []
    for e in data:
        text, spans = e.gold.text, words(e.gold.text)
        names = {(m.label, _last_word(spans, m.end)): text[m.start : m.end] for m in e.gold.mentions}
        for pair in (*e.pairs.tolist(), *e.unrelated.tolist()):
            drug, effect = (
                " ".join(names.get((label, word), text[spans[word].start : spans[word].end]).split())
                for label, word in zip(LABELS, pair, strict=True)
            )
            found.append(NamedPair(e.gold.id, drug, effect, sources.get(e.gold.id, "")))
    return found


def joined(vectors: Floats, rows: Numbers) -> Floats:
    """(pairs, 2 d): the vectors of both words of each pair (pairs, 2), from (words, d)."""
    return vectors[rows].reshape(len(rows), 2 * vectors.shape[1])


def offsets(batch: Sequence[Example]) -> Tensor:
    """(sentences,): the row of each sentence's first word among the words of the batch."""
    return torch.tensor([0, *(len(e.tags) for e in batch)]).cumsum(0)[:-1]
