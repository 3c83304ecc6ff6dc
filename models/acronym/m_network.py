"""How well each long form fits in an acronym's place (m-networks: Seneviratne et al. 2022, section 3).

The sentence as it is (anchor) and the sentence with each long form are encoded, pooled and mapped to a few
dimensions; the squared distance to the anchor is a long form's energy, and the lowest wins. Other parts may
stand beside it or in its place: `fit`, how the sentence with the long form reads by itself; `alone`, the
cosines of the anchor, and of what is near the acronym, to the long form read without any sentence; `surface`,
what the letters around the acronym say.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from models.acronym import surface_features
from models.encoder.model import Encoder

Pooling = Literal["mean", "span", "both"]
#: Pieces of a form that are read; the longest of our dictionaries has as many.
LONGEST = 24
#: Pieces to each side of an acronym that its neighbourhood is.
NEAR = 8
NO_ENERGY = float("inf")
#: Long forms whose vectors are kept from batch to batch: 5 kB each with 384 dimensions.
REMEMBERED = 1 << 13


class Place(NamedTuple):
    """A text and where the acronym, or what stands in its place, is in it."""

    text: str
    start: int
    end: int


class Reading(NamedTuple):
    """The pieces of a text, and which of them are the acronym's: from `first` to before `last`."""

    pieces: tuple[int, ...]
    first: int
    last: int


class Shape(NamedTuple):
    """What a head is made of."""

    pooling: Pooling = "both"
    size: int = 64
    distance: bool = True
    fit: bool = False
    alone: bool = False
    surface: bool = False

    @property
    def inside(self) -> bool:
        """Whether sentences with long forms are read at all."""
        return self.distance or self.fit


class Question(NamedTuple):
    """An acronym between two parts of a sentence, and the long forms to choose from."""

    left: str
    short_form: str
    right: str
    long_forms: tuple[str, ...]

    def anchor(self) -> Place:
        return self.replaced(self.short_form)

    def replaced(self, form: str) -> Place:
        """The sentence with a form at the acronym's place."""
        start = len(self.left)
        return Place(f"{self.left}{form}{self.right}", start, start + len(form))

    def places(self, shape: Shape) -> list[Place]:
        """The anchor; the sentence with each long form, and each long form alone, where they are needed."""
        inside = [self.replaced(form) for form in self.long_forms] if shape.inside else []
        alone = [Place(form, 0, len(form)) for form in self.long_forms] if shape.alone else []
        return [self.anchor(), *inside, *alone]

    def features(self, pieces: surface_features.Pieces) -> list[list[float]]:
        around = surface_features.context(self.left, self.right, self.short_form)
        return surface_features.features(around, self.long_forms, pieces)


class Vectors(NamedTuple):
    """Of texts: the mean of all their pieces, of the acronym's, and of those near it; (texts, dimension)
    each.
    """

    mean: Tensor
    span: Tensor
    near: Tensor

    def pooled(self, pooling: Pooling) -> Tensor:
        """(texts, dimension), twice that for `both`."""
        if pooling == "both":
            return torch.cat([self.mean, self.span], 1)
        return self.mean if pooling == "mean" else self.span


def join(vectors: Sequence[Vectors]) -> Vectors:
    return Vectors(*(torch.cat(parts) for parts in zip(*vectors, strict=True)))


class Reader(Encoder):
    """An encoder that knows where the acronym stands."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        self._counts: dict[str, int] = {}
        self._lasting: dict[Reading, Vectors] = {}

    def read(self, places: Sequence[Place]) -> list[Reading]:
        """Pieces to each side are cut alike, whatever stands between them: an anchor and its candidates keep
        the same neighbours.
        """
        if not places:
            return []
        encoded = self.tokenizer(
            [p.text for p in places],
            add_special_tokens=False,
            return_attention_mask=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        rows = zip(encoded["input_ids"], encoded["offset_mapping"], places, strict=True)
        return [self._reading(ids, offsets, place) for ids, offsets, place in rows]

    def _reading(self, ids: list[int], offsets: list[tuple[int, int]], place: Place) -> Reading:
        inside = [i for i, (a, b) in enumerate(offsets) if a < place.end and b > place.start]
        # A form may be of letters that the tokenizer drops; then what follows stands for it.
        first = inside[0] if inside else sum(b <= place.start for _, b in offsets)
        last = inside[-1] + 1 if inside else first
        side = max(1, (self.max_pieces - 2 - LONGEST) // 2)
        begin = max(0, first - side)
        form = ids[first : min(last, first + LONGEST)]
        pieces = (*ids[begin:first], *form, *ids[last : last + side])
        return Reading(pieces[: self.max_pieces - 2], first - begin, first - begin + len(form))

    def count(self, text: str) -> int:
        """Pieces of a text; remembered."""
        if len(self._counts) > 1 << 16:
            self._counts.clear()
        if text not in self._counts:
            self._counts[text] = len(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        return self._counts[text]

    def vectors(self, readings: Sequence[Reading], lasting: Set[Reading] = frozenset()) -> Vectors:
        """Each distinct reading is encoded once, and one of `lasting` only the first time of all."""
        if len(self._lasting) + len(lasting) > REMEMBERED:
            self._lasting.clear()
        unique = list(dict.fromkeys(readings))
        known = [r for r in unique if r in self._lasting]
        new = [r for r in unique if r not in self._lasting]
        found = join([self._lasting[r] for r in known] + self._encoded(new)) if unique else self._nothing()
        at = {reading: row for row, reading in enumerate([*known, *new])}
        for reading in lasting & set(new):
            row = at[reading]
            self._lasting[reading] = Vectors(*(part[row : row + 1].clone() for part in found))
        rows = torch.tensor([at[r] for r in readings], dtype=torch.long)
        return Vectors(*(part[rows] for part in found))

    def _encoded(self, readings: Sequence[Reading]) -> list[Vectors]:
        """In the order of the readings."""
        out = [self._nothing()] * len(readings)
        with torch.inference_mode():
            for batch in self._batches([len(r.pieces) + 2 for r in readings]):
                part = [readings[i] for i in batch]
                found = means(self.forward([r.pieces for r in part]), part)
                for row, i in enumerate(batch):
                    out[i] = Vectors(*(vectors[row : row + 1].cpu() for vectors in found))
        return out

    def _nothing(self) -> Vectors:
        return Vectors(*(torch.zeros((0, self.dimension)) for _ in Vectors._fields))


def means(hidden: Tensor, readings: Sequence[Reading]) -> Vectors:
    """Of (texts, padded pieces, dimension) with the opening token in front; gradients flow. The closing
    tokens and the padding count nowhere.
    """
    at = torch.arange(hidden.shape[1], device=hidden.device)[None] - 1
    first, last, length = torch.tensor(
        [(r.first, r.last, len(r.pieces)) for r in readings], device=hidden.device
    ).T.unsqueeze(-1)
    text = (at >= 0) & (at < length)
    span = (at >= first) & (at < torch.maximum(last, first + 1)) & text
    near = (at >= first - NEAR) & (at < last + NEAR) & text
    return Vectors(*(_mean(hidden, mask) for mask in (text, span, near)))


def _mean(hidden: Tensor, mask: Tensor) -> Tensor:
    weights = mask.to(hidden.dtype)
    return (hidden * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True).clamp(min=1)


class Pointers(NamedTuple):
    """Where the texts of questions stand among vectors."""

    anchors: Tensor
    """(rows,)"""
    inside: Tensor
    """(rows, m): sentences with long forms; 0 where there is no candidate or none is read"""
    alone: Tensor
    """(rows, m): long forms alone, likewise"""
    there: Tensor
    """(rows, m): whether there is a candidate"""


def pointers(counts: Sequence[int], shape: Shape) -> Pointers:
    """Of texts that stand question by question in the order of `Question.places`."""
    most = max(counts)
    inside, alone = (torch.zeros((len(counts), most), dtype=torch.long) for _ in range(2))
    anchors = []
    at = 0
    for row, count in enumerate(counts):
        anchors.append(at)
        at += 1
        for wanted, table in ((shape.inside, inside), (shape.alone, alone)):
            if wanted:
                table[row, :count] = torch.arange(at, at + count)
                at += count
    there = torch.arange(most)[None] < torch.tensor(counts)[:, None]
    return Pointers(torch.tensor(anchors), inside, alone, there)


class Head(nn.Module):
    """From pooled vectors to energies."""

    spread: Tensor
    """(features,): by how much each feature varies; 1 where that is not known"""

    def __init__(self, dimension: int, shape: Shape, dropout: float = 0.5) -> None:
        super().__init__()
        self.shape = shape
        width = 2 * dimension if shape.pooling == "both" else dimension
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, shape.size) if shape.distance else None
        self.fit = nn.Linear(width, 1, bias=False) if shape.fit else None
        self.alone = nn.Parameter(torch.tensor([6.0, 2.0])) if shape.alone else None
        self.surface = nn.Linear(len(surface_features.NAMES), 1, bias=False) if shape.surface else None
        self.register_buffer("spread", torch.ones(len(surface_features.NAMES) if shape.surface else 0))
        for layer in (self.fit, self.surface):
            if layer is not None:
                nn.init.zeros_(layer.weight)

    def forward(self, vectors: Vectors, at: Pointers, seen: Tensor) -> Tensor:
        """(rows, m) energies, infinite where there is no candidate; `seen` (rows, m, len(surface.NAMES))."""
        energies = torch.zeros(at.there.shape, device=at.there.device)
        if self.shape.inside:
            energies = energies + self._inside(self.dropout(vectors.pooled(self.shape.pooling)), at)
        if self.alone is not None:
            mean, near = (nn.functional.normalize(part, dim=-1) for part in (vectors.mean, vectors.near))
            forms = mean[at.alone]
            cosines = [(forms * part[at.anchors].unsqueeze(1)).sum(-1) for part in (mean, near)]
            energies = energies - torch.stack(cosines, -1) @ self.alone
        if self.surface is not None:
            energies = energies - self.surface(seen / self.spread).squeeze(-1)
        found: Tensor = energies.masked_fill(~at.there, NO_ENERGY)
        return found

    def _inside(self, pooled: Tensor, at: Pointers) -> Tensor:
        """(rows, m): what sentences with long forms in them give."""
        energies = torch.zeros(at.there.shape, device=at.there.device)
        if self.dense is not None:
            small = self.dense(pooled)
            energies = (small[at.inside] - small[at.anchors].unsqueeze(1)).square().sum(-1)
        if self.fit is not None:
            energies = energies - self.fit(pooled).squeeze(-1)[at.inside]
        return energies


def padded(rows: Sequence[Sequence[Sequence[float]]]) -> Tensor:
    """(rows, most, features) of each row's features, zeros where there is no candidate."""
    out = torch.zeros(len(rows), max(len(r) for r in rows), len(surface_features.NAMES))
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row)
    return out


class MNetwork:
    """Encoder and head, for answers; not thread-safe."""

    def __init__(self, encoder: Encoder, head: Head) -> None:
        self.reader = Reader(encoder)
        self.head = head.eval()

    def answers(self, questions: Sequence[Question]) -> tuple[list[list[float]], Tensor]:
        """For each question the negative energies of its long forms, and the mean of the pieces near its
        acronym, (questions, dimension).
        """
        if not questions:
            return [], torch.zeros((0, self.reader.dimension))
        shape = self.head.shape
        counts = [len(q.long_forms) for q in questions]
        readings = self.reader.read([p for q in questions for p in q.places(shape)])
        at = pointers(counts, shape)
        # What a dictionary's long forms are without a sentence never changes.
        alone = at.alone[at.there].tolist() if shape.alone else []
        vectors = self.reader.vectors(readings, {readings[i] for i in alone})
        seen = torch.zeros(0)
        if shape.surface:
            seen = padded([q.features(self.reader.count) for q in questions])
        with torch.inference_mode():
            energies = self.head(vectors, at, seen)
        scores = [(-row[:n]).tolist() for row, n in zip(energies, counts, strict=True)]
        return scores, vectors.near[at.anchors]

    def near(self, questions: Sequence[Question]) -> Tensor:
        """(questions, dimension): of the anchors alone the mean of the pieces near the acronym."""
        return self.reader.vectors(self.reader.read([q.anchor() for q in questions])).near
