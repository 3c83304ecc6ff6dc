"""A small Transformer decoder with copying: what it cannot say itself, it takes over from the question.

The pointer-generator of See et al. (2017) over word pieces: p(w) = g softmax(generated)(w) + (1 - g) sum of
the copy attention on the source's pieces w. It generates only the pieces of a short list, those of the
training summaries; a drug or a disease that is not among them can only be copied. Embeddings are those of the
encoder, frozen on both sides (tied), so that a release holds none.

Beyond See et al., copying knows what it copied last: a place in the question gains by what stands before it
being what was just said, and a piece inside a word is copied only then. Otherwise a small decoder writes
"levothyroxeneism" of two drugs.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as attention

#: The least probability that a loss looks at.
TINY = 1e-7


@dataclass(frozen=True, slots=True)
class Shape:
    """The measures of a decoder; those of the encoder's layers where it begins as some of them."""

    dimension: int
    layers: int = 3
    heads: int = 12
    inner: int = 1536
    longest: int = 64
    """pieces of a summary, with its beginning and its end"""
    dropout: float = 0.1


class Source(NamedTuple):
    """What the decoder looks at, once for each question."""

    memory: Tensor
    """(batch, pieces, dimension): the encoder's states"""
    mask: Tensor
    """(batch, pieces), True where there is a piece"""
    copied: Tensor
    """(batch, pieces): the number under which a piece is predicted, see `Pieces`"""
    before: Tensor
    """(batch, 2, pieces): the piece one and two places earlier; -1 where there is none"""
    inside: Tensor
    """(batch, pieces), True where a piece goes on with a word"""

    def rows(self, index: Tensor) -> Source:
        return Source(*(part.index_select(0, index) for part in self))


class Attention(nn.Module):
    """Multi-head attention over keys and values that may come from a cache."""

    def __init__(self, dimension: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(dimension, dimension) for _ in range(4))
        self.heads, self.dropout = heads, dropout

    def keys_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, pieces, dimension) to (batch, heads, pieces, head) twice."""
        return self._split(self.key(states)), self._split(self.value(states))

    def forward(self, states: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        found = attention(self._split(self.query(states)), keys, values, attn_mask=mask, dropout_p=dropout)
        mixed: Tensor = self.output(found.transpose(1, 2).flatten(2))
        return mixed

    def _split(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)


class Layer(nn.Module):
    """Attention to what was said, to the question, and a dense layer; norms after each, as in BERT."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        d = shape.dimension
        self.own, self.cross = (Attention(d, shape.heads, shape.dropout) for _ in range(2))
        self.inner, self.outer = nn.Linear(d, shape.inner), nn.Linear(shape.inner, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d, eps=1e-12) for _ in range(3))
        self.drop = nn.Dropout(shape.dropout)

    def forward(
        self, x: Tensor, own: tuple[Tensor, Tensor], cross: tuple[Tensor, Tensor], masks: Masks
    ) -> Tensor:
        x = self.norms[0](x + self.drop(self.own(x, *own, masks.own)))
        # Hypotheses of one question stand side by side: it is looked at once for all of them.
        side = x.reshape(len(cross[0]), -1, x.shape[-1])
        x = self.norms[1](x + self.drop(self.cross(side, *cross, masks.cross).view_as(x)))
        out: Tensor = self.norms[2](x + self.drop(self.outer(nn.functional.gelu(self.inner(x)))))
        return out


class Masks(NamedTuple):
    """What may be looked at; None: everything."""

    own: Tensor | None
    cross: Tensor


@dataclass(slots=True)
class Cache:
    """Keys and values of each layer: of the question, and of what was said so far."""

    cross: list[tuple[Tensor, Tensor]]
    own: list[tuple[Tensor, Tensor]]
    copy: Tensor
    source: Source
    last: Tensor | None = None
    """(rows,): the piece that was said last"""

    def rows(self, index: Tensor) -> None:
        """Keeps these hypotheses, equally many of each question that has any left; questions without one
        leave.
        """
        each = len(self.own[0][0]) // len(self.copy)
        texts = index[::each] // each
        if len(texts) < len(self.copy):
            self.cross = [(k.index_select(0, texts), v.index_select(0, texts)) for k, v in self.cross]
            self.copy, self.source = self.copy.index_select(0, texts), self.source.rows(texts)
        self.last = None if self.last is None else self.last.index_select(0, index)
        self.own = [(k.index_select(0, index), v.index_select(0, index)) for k, v in self.own]


class Pieces:
    """Numbers under which pieces are predicted: 0 to G - 1 the pieces that may be generated, then one for
    each place in the question that holds another piece, equal pieces under the first of their places.
    """

    def __init__(
        self,
        generated: Sequence[int],
        begin: int,
        end: int,
        unknown: int | None = None,
        inside: Container[int] = (),
    ) -> None:
        """`generated`: pieces; the one that ends a summary is the first of them. `inside`: pieces that go on
        with a word.
        """
        if generated[0] != end:
            raise ValueError("the first piece that may be generated is the one that ends a summary")
        self.generated, self.begin, self.end, self.unknown = list(generated), begin, end, unknown
        self._inside = inside
        self._number = {piece: i for i, piece in enumerate(generated)}

    def __len__(self) -> int:
        return len(self.generated)

    def copied(self, source: Sequence[int]) -> list[int]:
        """The number of each piece of a question; -1 for what nobody reads: it is not copied."""
        first: dict[int, int] = {}
        never = (self.unknown, self.begin, self.end)
        for place, piece in enumerate(source):
            first.setdefault(piece, place)
        return [
            -1 if piece in never else self._number.get(piece, len(self) + first[piece]) for piece in source
        ]

    def before(self, source: Sequence[int]) -> list[list[int]]:
        """See `Source.before`; what opens a question is nothing that was said."""
        whole = [-1, -1, -1, *source[1:]]
        return [whole[1 : 1 + len(source)], whole[: len(source)]]

    def inside(self, source: Sequence[int]) -> list[bool]:
        return [piece in self._inside for piece in source]

    def targets(self, summary: Sequence[int], source: Sequence[int]) -> list[int]:
        """The number of each piece of a summary and of its end; -1 for a piece that can neither be said nor
        copied.
        """
        numbers = dict(zip(source, self.copied(source), strict=True))
        return [self._number.get(piece, numbers.get(piece, -1)) for piece in [*summary, self.end]]

    def piece(self, number: int, source: Sequence[int]) -> int:
        return self.generated[number] if number < len(self) else source[number - len(self)]


class Pointer(nn.Module):
    """The decoder; not thread-safe. Embeddings are handed in and neither trained nor stored."""

    words: Tensor
    positions: Tensor
    rows: Tensor

    def __init__(self, shape: Shape, embeddings: Mapping[str, Tensor], generated: Sequence[int]) -> None:
        """`embeddings`: `words` (pieces, dimension), `positions` (at least `longest`, dimension), and `norm`,
        (2, dimension): weight and bias of the norm over their sum.
        """
        super().__init__()
        d = shape.dimension
        self.shape = shape
        for name in ("words", "positions", "norm"):
            self.register_buffer(name, embeddings[name].detach(), persistent=False)
        self.register_buffer("rows", embeddings["words"].detach()[list(generated)], persistent=False)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.say = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d, eps=1e-12))
        self.bias = nn.Parameter(torch.zeros(len(generated)))
        self.copy_query, self.copy_key = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.gate = nn.Linear(2 * d, 1)
        self.follow = nn.Parameter(torch.ones(2))
        self.drop = nn.Dropout(shape.dropout)

    def start(self, source: Source) -> Cache:
        """A cache that holds the questions and nothing said."""
        cross = [layer.cross.keys_values(source.memory) for layer in self._layers()]
        return Cache(cross, [], self.copy_key(source.memory), source)

    def forward(self, source: Source, said: Tensor) -> Tensor:
        """(batch, steps, G + pieces): probabilities after each piece of `said`, (batch, steps)."""
        steps = said.shape[1]
        cache = self.start(source)
        causal = torch.ones(steps, steps, dtype=torch.bool, device=said.device).tril()
        masks = Masks(causal, source.mask[:, None, None])
        x = self._embedded(said, 0)
        for layer, cross in zip(self._layers(), cache.cross, strict=True):
            x = layer(x, layer.own.keys_values(x), cross, masks)
        earlier = nn.functional.pad(said[:, :-1], (1, 0), value=-1)
        return self._probabilities(x, cache, said, earlier)

    def step(self, cache: Cache, last: Tensor) -> Tensor:
        """(rows, G + pieces): probability of each next number, given the last piece of each row, (rows,).

        Rows are the hypotheses of the first question, as many of the second, and so on.
        """
        said = cache.own[0][0].shape[2] if cache.own else 0
        masks = Masks(None, cache.source.mask[:, None, None])
        x = self._embedded(last.unsqueeze(1), said)
        before, cache.own = cache.own, []
        for i, layer in enumerate(self._layers()):
            own = layer.own.keys_values(x)
            if before:
                own = torch.cat([before[i][0], own[0]], 2), torch.cat([before[i][1], own[1]], 2)
            cache.own.append(own)
            x = layer(x, own, cache.cross[i], masks)
        earlier, cache.last = torch.full_like(last, -1) if cache.last is None else cache.last, last
        texts = len(cache.source.mask)
        found = self._probabilities(
            x.reshape(texts, -1, x.shape[-1]), cache, last.view(texts, -1), earlier.view(texts, -1)
        )
        return found.flatten(0, 1)

    def _layers(self) -> list[Layer]:
        return cast(list[Layer], list(self.layers))

    def _embedded(self, pieces: Tensor, first: int) -> Tensor:
        x = self.words[pieces] + self.positions[first : first + pieces.shape[1]]
        norm: Any = self.norm
        dropped: Tensor = self.drop(nn.functional.layer_norm(x, x.shape[-1:], norm[0], norm[1], 1e-12))
        return dropped

    def _probabilities(self, x: Tensor, cache: Cache, said: Tensor, earlier: Tensor) -> Tensor:
        """(texts, steps, G + pieces); `said`, `earlier` (texts, steps): the last piece at each step and the
        one before it.
        """
        source = cache.source
        spoken = (self.say(x) @ self.rows.T + self.bias).float().softmax(-1)
        scores = (self.copy_query(x) @ cache.copy.transpose(1, 2)).float() / math.sqrt(self.shape.dimension)
        one = said.unsqueeze(-1) == source.before[:, :1]
        two = one & (earlier.unsqueeze(-1) == source.before[:, 1:])
        scores = scores + self.follow[0] * one + self.follow[1] * two
        allowed = (source.mask & (source.copied >= 0)).unsqueeze(1) & (one | ~source.inside.unsqueeze(1))
        # A question without a piece that can be copied leaves nothing to point at.
        pointed = scores.masked_fill(~allowed, -1e9).softmax(-1) * allowed
        seen = pointed.to(source.memory.dtype) @ source.memory
        gate = torch.sigmoid(self.gate(torch.cat([x, seen.to(x.dtype)], -1)).float())
        gate = torch.where(allowed.any(-1, keepdim=True), gate, 1.0)
        places = source.copied.clamp(min=0).unsqueeze(1).expand_as(pointed)
        both = nn.functional.pad(gate * spoken, (0, source.memory.shape[1]))
        return both.scatter_add(-1, places, (1 - gate) * pointed)


def embeddings_of(model: Any) -> dict[str, Tensor]:
    """What `Pointer` takes of an encoder of BERT's kind."""
    own = model.embeddings
    positions = own.position_embeddings.weight + own.token_type_embeddings.weight[0]
    norm = torch.stack([own.LayerNorm.weight, own.LayerNorm.bias])
    return {"words": own.word_embeddings.weight, "positions": positions, "norm": norm}


def begin_as(pointer: Pointer, model: Any, chosen: Sequence[int]) -> None:
    """Puts layers of an encoder of BERT's kind in the place of the decoder's random ones, its attention
    twice: to what was said and to the question. Raises ValueError where the shapes differ.
    """
    layers = model.encoder.layer
    for layer, number in zip(pointer.layers, chosen, strict=True):
        theirs, ours = layers[number], layer
        if theirs.intermediate.dense.weight.shape != ours.inner.weight.shape:  # type: ignore[union-attr]
            raise ValueError("the encoder's layers have another shape than the decoder's")
        parts = [(ours.inner, theirs.intermediate.dense), (ours.outer, theirs.output.dense)]
        for mine in (ours.own, ours.cross):
            names = ("query", "key", "value")
            parts += [(getattr(mine, name), getattr(theirs.attention.self, name)) for name in names]
            parts.append((mine.output, theirs.attention.output.dense))  # type: ignore[union-attr]
        norms = [theirs.attention.output.LayerNorm] * 2 + [theirs.output.LayerNorm]
        parts += list(zip(ours.norms, norms, strict=True))  # type: ignore[arg-type]
        for mine, other in parts:
            mine.load_state_dict(other.state_dict())  # type: ignore[union-attr]


def loss(probabilities: Tensor, targets: Tensor, generated: int, smoothing: float) -> Tensor:
    """Cross-entropy with label smoothing (ECL, Eq. 2 and 3), mean over the pieces of the batch.

    (batch, steps, G + pieces) and (batch, steps), -1 where there is nothing to learn. The mass lambda goes to
    the other pieces that may be generated, alpha of them; what can only be copied is no word of the
    dictionary.
    """
    wanted = targets >= 0
    right = probabilities.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    found = -(1 - smoothing) * right.clamp(min=TINY).log()
    if smoothing:
        logs = probabilities[..., :generated].clamp(min=TINY).log()
        own = torch.where(targets < generated, right.clamp(min=TINY).log(), 0.0)
        found = found - smoothing / max(1, generated - 1) * (logs.sum(-1) - own)
    return found[wanted].mean() if bool(wanted.any()) else probabilities.sum() * 0
