"""Training sentences of CLNER, CLDR and CLGS: pieces, the words that they make up, tags, and the last words
of related mentions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.encoder.split.layers import Layers
from models.encoder.word_pieces import WordPieces
from models.ner.decoding import tags_of
from models.relation.neighbours import Numbers
from models.relation.pairs import LABELS
from models.text import word_texts, words
from models.types import ADE, DRUG, Span
from training.common.batching import length_batches
from training.common.corpora import CorpusError, GoldText, hold_out
from training.common.tagging.word_tags import word_tags
from training.evaluation.relation import split_negatives, split_texts
from training.teaching.readers import gold_texts, sample

TAGS = tags_of(LABELS)
#: The tag of a word that is neither trained on nor a sample for others.
UNKNOWN = -1
#: Sentences without an event on which false effects and false relations are counted in validation.
VALID_NEGATIVES = 1000
#: Batches out of which sentences of similar length are put together.
POOL = 20


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
    drug: NDArray[np.bool_]
    """(words,): within a drug"""
    effect: NDArray[np.bool_]


class Corpus(NamedTuple):
    """Sentences with (`train`, `valid`) and without an adverse event: of the ADE corpus, where `train` may
    end with sentences of the teaching corpus, or of the teaching corpus alone.
    """

    train: list[GoldText]
    valid: list[GoldText]
    negatives: list[GoldText]
    """without an event, for training"""
    valid_negatives: list[GoldText]
    """without an event, for validation"""


def read(data: Path, split: str, seed: int, limit: int = 0, teaching: float = 0.0) -> Corpus:
    """Training and validation sentences of a split (10 %, as in the paper), none of which is tested.
    `teaching`: share of the teaching corpus' clinical sentences that is trained on in addition, those without
    an effect too, because their drugs are all marked. Raises CorpusError for a corpus without sentences.
    """
    train, test = split_texts(data / "ade", split)
    negatives, _ = split_negatives(data / "ade", split)
    for name, texts in (("with an event", train), ("without an event", negatives)):
        if not texts:
            raise CorpusError(f"{data / 'ade'} has no sentence {name} to train on")
    tested = {t.text for t in test}
    rest, valid = hold_out([t for t in train if t.text not in tested], 0.1, seed)
    share = min(0.1, VALID_NEGATIVES / max(1, len(negatives)))
    train_negatives, valid_negatives = hold_out(negatives, share, seed)
    last = limit or None
    taught = sample(gold_texts("clinical", "train", labels=LABELS), teaching, seed) if teaching else []
    return Corpus(rest[:last] + taught[:last], valid[:last], train_negatives[:last], valid_negatives[:last])


def read_taught(seed: int, limit: int = 0, share: float = 1.0) -> Corpus:
    """Clinical sentences of the teaching corpus alone, with and without an effect, none of what it holds
    out for evaluation. As many whole author batches, in random order, are for validation as have a tenth of
    all sentences or more. `share`: of the others. Raises CorpusError where there are none, as in an
    installed wheel.
    """
    texts = gold_texts("clinical", "train", labels=LABELS)
    if not texts:
        raise CorpusError("the texts of training/teaching are only in the source tree")
    batches = sorted({_batch(t) for t in texts})
    random.Random(seed).shuffle(batches)
    valid = list[GoldText]()
    while 10 * len(valid) < len(texts):
        valid += [t for t in texts if _batch(t) == batches[0]]
        del batches[0]
    train, last = sample([t for t in texts if _batch(t) in batches], share, seed), limit or None
    parts = [
        [t for t in part if has_effect(t) == own][:last] for own in (True, False) for part in (train, valid)
    ]
    return Corpus(*parts)


def _batch(text: GoldText) -> str:
    """The author batch of a text of the teaching corpus."""
    return text.id.rpartition("-")[0]


def has_effect(text: GoldText) -> bool:
    """Whether an effect is annotated."""
    return any(m.label == ADE for m in text.mentions)


def corpus_of(training: Mapping[str, Any], data: Path | None) -> Corpus:
    """What a run is trained on; `training`: its settings as a manifest records them. `data` is needed for the
    ADE corpus.
    """
    seed, limit, teaching = training["seed"], training.get("limit", 0), training.get("teaching", 0.0)
    if training.get("corpora") == "teaching":
        return read_taught(seed, limit, teaching)
    if data is None:
        raise CorpusError("the release was trained on the ADE corpus, which needs --data")
    return read(data, training["split"], seed, limit, teaching)


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
    if not text.mentions:
        for lexicon in lexicons:
            for span, _ in lexicon.find(text.text):
                tags[_within(spans, span.start, span.end)] = UNKNOWN
    # A word of which the tokenizer leaves nothing has no vector to learn from.
    tags[count == 0] = UNKNOWN
    last = [last_word(spans, m.end) for m in text.mentions]
    related = {(last[d], last[e]) for d, e in text.relations}
    rest = every_pair([(m.label, place) for m, place in zip(text.mentions, last, strict=True)]) - related
    inside = {label: np.zeros(n, bool) for label in LABELS}
    for m in text.mentions:
        inside[m.label] |= _within(spans, m.start, m.end)
    return Example(
        text,
        split.pieces[: int(count.sum())],
        np.repeat(np.arange(n), count),
        tags,
        _pair_rows(related),
        _pair_rows(rest),
        inside[DRUG],
        inside[ADE],
    )


def every_pair(last: Sequence[tuple[str, int]]) -> set[tuple[int, int]]:
    """Each drug's last word with each effect's, from labels and last words."""
    return {(d, e) for label, d in last if label == DRUG for other, e in last if other == ADE}


def paired(example: Example, mentions: Sequence[tuple[int, int, str]]) -> Example:
    """A sentence with the pairs of the mentions that a tagger found in place of the gold pairs; a pair is
    related where its two mentions are exactly those of a gold relation.
    """
    gold = example.gold.mentions
    wanted = {(gold[d].start, gold[d].end, gold[e].start, gold[e].end) for d, e in example.gold.relations}
    spans = words(example.gold.text)[: len(example.tags)]
    pairs: dict[bool, set[tuple[int, int]]] = {True: set(), False: set()}
    for drug in (m for m in mentions if m[2] == DRUG):
        for effect in (m for m in mentions if m[2] == ADE):
            kind = (*drug[:2], *effect[:2]) in wanted
            pairs[kind].add((last_word(spans, drug[1]), last_word(spans, effect[1])))
    return replace(example, pairs=_pair_rows(pairs[True]), unrelated=_pair_rows(pairs[False]))


class ValidationPairs(NamedTuple):
    """Validation sentences with the pairs that the entity space finds in them."""

    examples: list[Example]
    """with and without an event"""
    gold_relations: int
    weight: float
    """of a sentence without an event, so that both kinds count in the corpus' proportion"""

    def weights(self) -> Tensor:
        """(pairs,), in the order of `pairs_of`."""
        counts = torch.tensor([len(e.pairs) + len(e.unrelated) for e in self.examples], dtype=torch.long)
        weights = torch.tensor([1.0 if has_effect(e.gold) else self.weight for e in self.examples])
        return weights.repeat_interleave(counts)


def _pair_rows(pairs: set[tuple[int, int]]) -> Numbers:
    """(pairs, 2) without those whose word was cut off, or of which both words are the same."""
    return np.array(sorted(p for p in pairs if min(p) >= 0 and p[0] != p[1]), np.int64).reshape(-1, 2)


def last_word(spans: Sequence[Span], end: int) -> int:
    """The index of the word in which a mention ends; -1 where it was cut off."""
    return next((i for i, s in enumerate(spans) if s.start < end <= s.end), -1)


def _within(spans: Sequence[Span], start: int, end: int) -> NDArray[np.bool_]:
    return np.array([s.start < end and start < s.end for s in spans], dtype=bool)


def sentence_batches(data: Sequence[Example], size: int, rng: random.Random) -> list[list[Example]]:
    """Shuffled batches of sentences of similar length."""
    return length_batches(data, size=size, pool=POOL, length=lambda e: len(e.pieces), rng=rng)


def train_layers(encoder: Encoder, frozen: int) -> None:
    """Leaves only the layers above the first `frozen` layers trainable."""
    for name, parameter in encoder.model.named_parameters():
        parameter.requires_grad_("embeddings." not in name and "pooler" not in name)
    # The backward pass through the fused attention takes a fifth of a step on a processor.
    encoder.model.set_attn_implementation("eager")
    Layers(encoder.model).freeze(frozen)


def word_states(hidden: Tensor, batch: Sequence[Example]) -> Tensor:
    """(words of the batch, d): the mean of each word's pieces, from hidden states (sentences, pieces, d) with
    the special token first; sentence after sentence. Gradients flow.
    """
    lengths = [len(e.pieces) for e in batch]
    rows = torch.repeat_interleave(torch.arange(len(batch)), torch.tensor(lengths))
    columns = torch.cat([torch.arange(1, n + 1) for n in lengths])
    first = offsets(batch)
    numbers = torch.from_numpy(
        np.concatenate([e.word_of + f for e, f in zip(batch, first.tolist(), strict=True)])
    )
    n_words = int(sum(len(e.tags) for e in batch))
    device = hidden.device
    sums = hidden.new_zeros((n_words, hidden.shape[-1]))
    sums = sums.index_add(0, numbers.to(device), hidden[rows.to(device), columns.to(device)])
    counts = torch.bincount(numbers, minlength=n_words).clamp(min=1).unsqueeze(1).to(device)
    return sums / counts


def offsets(batch: Sequence[Example]) -> Tensor:
    """(sentences,): the row of each sentence's first word among the words of the batch."""
    counts = torch.tensor([0, *(len(e.tags) for e in batch)])
    return counts.cumsum(0)[:-1]
