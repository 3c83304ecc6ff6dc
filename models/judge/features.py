"""What a judge knows of a mention: means of hidden states over it, over what is around it, and over all that
is read of its text.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from models.encoder.model import Encoder
from models.encoder.word_pieces import PlacedPieces
from models.rules.sentences import whole_sentences
from models.text import readable
from models.types import Case, Mention, Span

#: Of what is around a mention: characters on each side.
REACH = 120
#: Share of the pieces that are read together which drug and indication may have.
_PREFIX_SHARE = 1 / 4
#: Share of the room beside a mention's sentence that what precedes it has in a long text.
_BEFORE = 1 / 3
#: Parts of a text that are read, which bounds the time of a batch; mentions behind them have no vector.
MOST_PARTS = 16


@dataclass(frozen=True, slots=True)
class HowToRead:
    """What is read of a text."""

    around: Literal["sentence", "characters"] = "sentence"
    """what the second part of a vector is the mean of: the mention's sentence, or REACH characters a side"""
    prefix: bool = True
    """whether the stated drug and indication are read before the text"""
    texts: Literal["effects", "events"] = "effects"
    """which texts are read: with a mention of any effect, or only those where the tagger found an event"""


class Pieces(NamedTuple):
    """Half-open range of the word pieces of a text."""

    first: int
    last: int


class _Part(NamedTuple):
    """Pieces that are encoded together, and the mentions whose vectors come from them."""

    pieces: list[int]
    skipped: int
    """pieces of the prefix less those of the text before the part: what a place in the text is moved by"""
    mentions: list[tuple[int, Pieces, Pieces]]
    """number of the vector, the mention, and what is around it, by their places in the text"""


class Features:
    """Vectors of mentions. Each text is encoded once for all its mentions; one with more than the encoder's
    `max_pieces` in parts of whole sentences around the mentions.
    """

    def __init__(self, encoder: Encoder, how: HowToRead) -> None:
        self.encoder = encoder
        self.how = how

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return 3 * self.encoder.dimension

    @torch.inference_mode()
    def of(self, cases: Sequence[Case]) -> list[list[Tensor | None]]:
        """The vector (size,), 32-bit, of each mention of each case; None where the tokenizer drops it, and
        behind MOST_PARTS parts. In any batch a mention has the same vector to 1e-5.
        """
        if not cases:
            return []
        texts = [readable(case.text) for case in cases]
        placed = self.encoder.pieces_at(texts)
        prefixes = self.encoder.pieces_at([self._prefix(case) for case in cases])
        vectors: list[list[Tensor | None]] = [[None] * len(case.mentions) for case in cases]
        parts: list[tuple[int, _Part]] = []
        for number, case in enumerate(cases):
            prefix = prefixes[number].pieces[: int(self.encoder.max_pieces * _PREFIX_SHARE)]
            found = self._parts(texts[number], placed[number], prefix, case.mentions)
            parts += [(number, part) for part in found]
        for batch, hidden in self.encoder.hidden([part.pieces for _, part in parts]):
            for row, i in enumerate(batch):
                number, part = parts[i]
                states = hidden[row, 1 : 1 + len(part.pieces)]
                for mention, own, around in part.mentions:
                    moved = [states[r.first + part.skipped : r.last + part.skipped] for r in (own, around)]
                    vectors[number][mention] = torch.cat([s.mean(0) for s in (*moved, states)]).cpu()
        return vectors

    def _prefix(self, case: Case) -> str:
        if not self.how.prefix:
            return ""
        drugs, indication = ", ".join(case.stated.drugs), case.stated.indication
        said = [f"medicine: {drugs}."] if drugs else []
        return " ".join([*said, *([f"taken for: {indication}."] if indication else [])])

    def _parts(
        self, text: str, placed: PlacedPieces, prefix: list[int], mentions: Sequence[Mention]
    ) -> list[_Part]:
        limit, sentences = self.encoder.max_pieces - 2 - len(prefix), whole_sentences(text)
        parts: list[_Part] = []
        read = Pieces(0, 0)
        for number in sorted(range(len(mentions)), key=lambda i: mentions[i].start):
            mention = mentions[number]
            own = pieces_in(placed, mention.start, mention.end)
            if own is None:
                continue
            inside = [s for s in sentences if s.start < mention.end and mention.start < s.end]
            span = Span(inside[0].start, inside[-1].end) if inside else Span(mention.start, mention.end)
            sentence = pieces_in(placed, span.start, span.end) or own
            if not (read.first <= sentence.first and sentence.last <= read.last):
                if len(parts) == MOST_PARTS:
                    break
                ends = [last for s in sentences if (last := pieces_in(placed, s.start, s.end))]
                read = _read(len(placed.pieces), ends, sentence, own, limit)
                pieces = [*prefix, *placed.pieces[read.first : read.last]]
                parts.append(_Part(pieces, len(prefix) - read.first, []))
            if self.how.around == "characters":
                around = pieces_in(placed, max(0, mention.start - REACH), mention.end + REACH) or own
            else:
                around = sentence
            parts[-1].mentions.append((number, _inside(own, read), _inside(around, read)))
        return parts


def pieces_in(placed: PlacedPieces, start: int, end: int) -> Pieces | None:
    """The pieces that overlap characters of a text; None where there are none."""
    first = bisect.bisect_right(placed.places, start, key=itemgetter(1))
    last = bisect.bisect_left(placed.places, end, key=itemgetter(0))
    return Pieces(first, last) if first < last else None


def _inside(pieces: Pieces, read: Pieces) -> Pieces:
    return Pieces(max(pieces.first, read.first), min(pieces.last, read.last))


def _read(n: int, sentences: Sequence[Pieces], sentence: Pieces, own: Pieces, limit: int) -> Pieces:
    """What is read of the `n` pieces of a text for a mention, `own`, and for those that follow it: at most
    `limit` pieces, all where they suffice, else whole sentences around its `sentence`, else the middle of it.
    """
    if n <= limit:
        return Pieces(0, n)
    if sentence.last - sentence.first > limit:
        first = max(sentence.first, min((own.first + own.last - limit) // 2, sentence.last - limit))
        return Pieces(first, first + limit)
    before = [*(s.first for s in sentences if s.first < sentence.first), sentence.first]
    room = max(0, limit - (sentence.last - sentence.first))
    first = next(f for f in before if sentence.first - f <= room * _BEFORE)
    last = max(sentence.last, *(s.last for s in sentences if s.last - first <= limit))
    return Pieces(next(f for f in before if last - f <= limit), last)
