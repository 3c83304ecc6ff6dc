"""Transformer decoder layers with cached keys and values, and the encoded question that they attend to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as attention


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The sizes of a decoder; they must be those of the encoder where it is initialised from its layers."""

    dimension: int
    layers: int = 3
    heads: int = 12
    inner: int = 1536
    """dimension between the two dense layers"""
    longest: int = 64
    """pieces of a summary with its beginning and its end"""
    dropout: float = 0.1


class Source(NamedTuple):
    """A batch of encoded questions; see `ExtendedVocabulary` for numbers."""

    memory: Tensor
    """(batch, pieces, dimension): hidden states of the encoder"""
    mask: Tensor
    """(batch, pieces): True where there is a piece"""
    copy_numbers: Tensor
    """(batch, pieces): the number as which a piece is copied, -1 where it cannot be"""
    preceding: Tensor
    """(batch, 2, pieces): the pieces one and two positions earlier; -1 where there is none"""
    continues_word: Tensor
    """(batch, pieces): True where a piece continues a word"""

    def select(self, questions: Tensor) -> Source:
        """The questions with these indices."""
        return Source(*(part.index_select(0, questions) for part in self))


class Masks(NamedTuple):
    """Which positions may be attended to; None: all."""

    own: Tensor | None
    cross: Tensor


class Attention(nn.Module):
    """Multi-head attention over keys and values that may come from a cache."""

    def __init__(self, dimension: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(dimension, dimension) for _ in range(4))
        self.heads, self.dropout = heads, dropout

    def keys_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """From (batch, pieces, dimension) to keys and values, (batch, heads, pieces, head dimension) each."""
        return self._split(self.key(states)), self._split(self.value(states))

    def forward(self, states: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """(batch, pieces, dimension) from as many."""
        dropout = self.dropout if self.training else 0.0
        mixed = attention(self._split(self.query(states)), keys, values, attn_mask=mask, dropout_p=dropout)
        out: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return out

    def _split(self, states: Tensor) -> Tensor:
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)


class DecoderLayer(nn.Module):
    """Self-attention over the summary, cross-attention to the question and a dense layer; norms after each,
    as in BERT. The attribute names are tensor names of a release's decoder file.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        d = config.dimension
        self.own, self.cross = (Attention(d, config.heads, config.dropout) for _ in range(2))
        self.inner, self.outer = nn.Linear(d, config.inner), nn.Linear(config.inner, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d, eps=1e-12) for _ in range(3))
        self.drop = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, own: tuple[Tensor, Tensor], cross: tuple[Tensor, Tensor], masks: Masks
    ) -> Tensor:
        """(rows, steps, dimension) from as many; `own` and `cross` are keys and values."""
        x = self.norms[0](x + self.drop(self.own(x, *own, masks.own)))
        # The hypotheses of one question follow each other: they attend to it as one longer sequence.
        by_question = x.reshape(len(cross[0]), -1, x.shape[-1])
        x = self.norms[1](x + self.drop(self.cross(by_question, *cross, masks.cross).view_as(x)))
        out: Tensor = self.norms[2](x + self.drop(self.outer(nn.functional.gelu(self.inner(x)))))
        return out


@dataclass(slots=True)
class Cache:
    """The state of decoding step by step, for hypotheses grouped by question."""

    cross: list[tuple[Tensor, Tensor]]
    """of each layer the keys and values of the questions"""
    own: list[tuple[Tensor, Tensor]]
    """of each layer the keys and values of the pieces so far; empty before the first step"""
    copy_keys: Tensor
    """(questions, pieces, dimension)"""
    source: Source
    last: Tensor | None = None
    """(rows,): the piece before the current one"""

    def select(self, rows: Tensor) -> None:
        """Keeps these hypotheses, equally many of each question that has any left; the other questions are
        dropped.
        """
        hypotheses = len(self.own[0][0]) // len(self.copy_keys)
        questions = rows[::hypotheses] // hypotheses
        if len(questions) < len(self.copy_keys):
            self.cross = [(k.index_select(0, questions), v.index_select(0, questions)) for k, v in self.cross]
            self.copy_keys = self.copy_keys.index_select(0, questions)
            self.source = self.source.select(questions)
        self.last = None if self.last is None else self.last.index_select(0, rows)
        self.own = [(k.index_select(0, rows), v.index_select(0, rows)) for k, v in self.own]
