"""Sentences as CONORM-NER is trained on them: pieces, tags and sub-word flags, in batches of like length."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.drugs import DrugLexicon
from models.encoder.model import Encoder, WordPieces
from models.ner.decoding import CONTINUATION
from models.ner.head import Head
from models.text import words
from training.common.corpora import GoldText
from training.common.spans import word_tags


@dataclass(frozen=True, slots=True)
class Scheme:
    """How pieces are tagged; the defaults are the paper's, the others its ablations."""

    biox: bool = True
    """A piece inside a word is X; without it the piece has its word's tag (B becomes I)."""
    flag: bool = True
    """The head is told which pieces begin no word."""


PAPER = Scheme()


@dataclass(frozen=True, slots=True)
class Example:
    """Pieces of a sentence, their gold tags, and 1 for every piece that does not begin a word."""

    pieces: list[int]
    tags: list[int]
    flags: list[int]


def examples(
    texts: Sequence[GoldText],
    encoder: Encoder,
    tags: Sequence[str],
    lexicon: DrugLexicon | None,
    scheme: Scheme = PAPER,
) -> list[Example]:
    spans = [words(t.text) for t in texts]
    surfaces = [[t.text[s.start : s.end] for s in ws] for t, ws in zip(texts, spans, strict=True)]
    made = []
    for text, ws, split in zip(texts, spans, encoder.split(surfaces), strict=True):
        made.append(_example(split, word_tags(text, ws, lexicon), tags, scheme, encoder.max_pieces - 2))
    return made


def _example(
    split: WordPieces, gold: Sequence[str], tags: Sequence[str], scheme: Scheme, limit: int
) -> Example:
    numbers, flags = [], []
    for tag, count in zip(gold, split.count, strict=True):
        inside = CONTINUATION if scheme.biox else tag.replace("B-", "I-")
        numbers += ([tags.index(tag)] + [tags.index(inside)] * (count - 1))[:count]
        flags += ([0] + [int(scheme.flag)] * (count - 1))[:count]
    return Example(split.pieces[:limit], numbers[:limit], flags[:limit])


def batches(data: Sequence[Example], size: int, rng: random.Random) -> Iterator[list[Example]]:
    """Shuffled, with sentences of like length together so that little padding is computed."""
    order = list(data)
    rng.shuffle(order)
    pool = size * 20
    made = []
    for start in range(0, len(order), pool):
        near = sorted(order[start : start + pool], key=lambda e: len(e.pieces))
        made += [near[i : i + size] for i in range(0, len(near), size)]
    rng.shuffle(made)
    yield from made


def loss_of(encoder: Encoder, head: Head, batch: Sequence[Example]) -> Tensor:
    """Cross-entropy over every piece of the batch, X pieces included."""
    hidden = encoder.forward([e.pieces for e in batch])
    inside = torch.cat([hidden[row, 1 : 1 + len(e.pieces)] for row, e in enumerate(batch)])
    flags = torch.tensor([f for e in batch for f in e.flags], dtype=inside.dtype, device=inside.device)
    tags = torch.tensor([t for e in batch for t in e.tags], device=inside.device)
    return nn.functional.cross_entropy(head(inside, flags).float(), tags)
