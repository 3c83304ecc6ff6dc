"""An encoder of texts with an acronym: vectors of the text and of the pieces near the acronym."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

import torch
from torch import Tensor

from models.acronym.questions import MarkedText
from models.encoder.model import Encoder
from models.encoder.word_pieces import PlacedPieces

#: Pieces of a form that are read; the longest of our dictionaries has as many.
LONGEST = 24
#: Pieces on each side of the acronym that belong to its neighbourhood.
NEAR = 8
#: Texts whose vectors are kept from batch to batch: 5 kB each with 384 dimensions.
CACHE_SIZE = 1 << 13
#: Texts whose number of pieces is kept.
_COUNT_CACHE_SIZE = 1 << 16


class MarkedPieces(NamedTuple):
    """The pieces of a text; those of the acronym are `first` to `last` - 1."""

    pieces: tuple[int, ...]
    first: int
    last: int


class Vectors(NamedTuple):
    """Of each text the mean of all its pieces, and of the acronym's pieces with NEAR more on each side;
    (texts, dimension) each.
    """

    mean: Tensor
    near: Tensor


def join(vectors: Sequence[Vectors]) -> Vectors:
    """Concatenated along the texts."""
    return Vectors(*(torch.cat(parts) for parts in zip(*vectors, strict=True)))


class AcronymEncoder(Encoder):
    """An encoder of marked texts, with caches that threads share."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        self._counts: dict[str, int] = {}
        self._cache: dict[MarkedPieces, Vectors] = {}

    def tokenize(self, texts: Sequence[MarkedText]) -> list[MarkedPieces]:
        """The pieces of each text. Each side of the acronym is cut at the same length whatever is in its
        place, so that an anchor and its candidates have the same context.
        """
        rows = zip(self.pieces_at([t.text for t in texts]), texts, strict=True)
        return [self._marked(placed, text) for placed, text in rows]

    def _marked(self, placed: PlacedPieces, text: MarkedText) -> MarkedPieces:
        ids, places = placed
        inside = [i for i, (start, end) in enumerate(places) if start < text.end and end > text.start]
        # The tokenizer may drop all letters of a form; the span is then empty, before the next piece.
        first = inside[0] if inside else sum(end <= text.start for _, end in places)
        last = inside[-1] + 1 if inside else first
        side = max(1, (self.max_pieces - 2 - LONGEST) // 2)
        begin = max(0, first - side)
        form = ids[first : min(last, first + LONGEST)]
        pieces = (*ids[begin:first], *form, *ids[last : last + side])
        return MarkedPieces(pieces[: self.max_pieces - 2], first - begin, first - begin + len(form))

    def count(self, text: str) -> int:
        """The number of pieces of a text; cached."""
        if len(self._counts) > _COUNT_CACHE_SIZE:
            self._counts.clear()
        # Another thread may clear the cache at any time.
        count = self._counts.get(text)
        if count is None:
            count = len(self.tokenizer([text], add_special_tokens=False)["input_ids"][0])
            self._counts[text] = count
        return count

    def vectors(self, texts: Sequence[MarkedPieces], cached: Set[MarkedPieces] = frozenset()) -> Vectors:
        """Vectors of each text. Equal texts are encoded once; those of `cached` are kept for later calls."""
        if len(self._cache) + len(cached) > CACHE_SIZE:
            self._cache.clear()
        unique = list(dict.fromkeys(texts))
        # Copied out: another thread may clear the cache at any time.
        known = {t: found for t in unique if (found := self._cache.get(t)) is not None}
        new = [t for t in unique if t not in known]
        all_vectors = join([*known.values(), *self._encoded(new)]) if unique else self._no_vectors()
        row_of = {text: row for row, text in enumerate([*known, *new])}
        for text in cached & set(new):
            row = row_of[text]
            self._cache[text] = Vectors(*(part[row : row + 1].clone() for part in all_vectors))
        rows = torch.tensor([row_of[t] for t in texts], dtype=torch.long)
        return Vectors(*(part[rows] for part in all_vectors))

    def _encoded(self, texts: Sequence[MarkedPieces]) -> list[Vectors]:
        """Vectors of one row for each text, in the order of the texts."""
        out = [self._no_vectors()] * len(texts)
        with torch.inference_mode():
            for batch, hidden in self.hidden([t.pieces for t in texts]):
                pooled = means(hidden, [texts[i] for i in batch])
                for row, i in enumerate(batch):
                    out[i] = Vectors(*(part[row : row + 1].cpu() for part in pooled))
        return out

    def _no_vectors(self) -> Vectors:
        return Vectors(*(torch.zeros((0, self.dimension)) for _ in Vectors._fields))


def means(hidden: Tensor, texts: Sequence[MarkedPieces]) -> Vectors:
    """Vectors from hidden states (texts, padded pieces, dimension) that begin with the opening token;
    gradients flow. Special tokens and padding are left out.
    """
    position = torch.arange(hidden.shape[1], device=hidden.device)[None] - 1
    first, last, length = torch.tensor(
        [(t.first, t.last, len(t.pieces)) for t in texts], device=hidden.device
    ).T.unsqueeze(-1)
    text = (position >= 0) & (position < length)
    near = (position >= first - NEAR) & (position < last + NEAR) & text
    return Vectors(*(_mean(hidden, mask) for mask in (text, near)))


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    weights = mask.to(hidden.dtype)
    return (hidden * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True).clamp(min=1)
