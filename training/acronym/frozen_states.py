"""The texts of a run, each read once by the layers that are not trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from models.acronym.acronym_encoder import AcronymEncoder, MarkedPieces
from models.acronym.m_network import HeadConfig, texts_of
from models.acronym.questions import question
from models.encoder.layer_split import layers_of
from models.encoder.model import Encoder, padded
from models.types import Span
from training.evaluation.acronym import Row

console = Console()
#: Pieces, padding included, of one pass; texts of like length go together.
CHUNK = 3072


class Item(NamedTuple):
    """A row as numbers of readings in a bank; the right long form comes first."""

    anchor: int
    others: list[int]
    """the rest of what `texts_of` gives"""
    seen: list[list[float]]
    acronym: str
    sense: int
    """rows of one number mean the same"""


class Bank:
    """What the frozen layers gave for each distinct text, in 16 bits; their dropout is off, so that once is
    enough.
    """

    def __init__(self, encoder: Encoder, below: int, shape: HeadConfig, precision: str) -> None:
        self.shape = shape
        lower = _lower(encoder, below)
        if precision == "bfloat16":
            # Nothing here needs gradients: 16 bits throughout spare the casts.
            lower.model.to(torch.bfloat16)
        self.reader = AcronymEncoder(lower)
        self.readings: list[MarkedPieces] = []
        self.states: list[Tensor] = []
        self._at: dict[MarkedPieces, int] = {}

    def items(self, rows: Sequence[Row]) -> list[Item]:
        """A text that is known already is not read again."""
        questions = [question(r.text, r.span, Span(0, len(r.text)), r.senses) for r in rows]
        places = [texts_of(q, self.shape) for q in questions]
        readings = self.reader.tokenize([place for own in places for place in own])
        self._read([r for r in dict.fromkeys(readings) if r not in self._at])
        senses: dict[tuple[str, str], int] = {}
        found, at = [], 0
        for row, q, own in zip(rows, questions, places, strict=True):
            numbers = [self._at[r] for r in readings[at : at + len(own)]]
            at += len(numbers)
            sense = senses.setdefault((row.short_form, row.gold), len(senses))
            found.append(Item(numbers[0], numbers[1:], q.features(self.reader.count), row.short_form, sense))
        return found

    def megabytes(self) -> float:
        """Of memory that the states take."""
        return sum(s.numel() * s.element_size() for s in self.states) / 1e6

    def _read(self, readings: Sequence[MarkedPieces]) -> None:
        start = len(self.readings)
        self.readings += readings
        self._at |= {r: start + i for i, r in enumerate(readings)}
        self.states += [torch.empty(0)] * len(readings)
        chunks = chunked([len(r.pieces) + 2 for r in readings])
        with torch.inference_mode():
            for part in track(chunks, "frozen layers", console=console, transient=True):
                hidden = self.reader.forward([readings[i].pieces for i in part])
                for row, i in enumerate(part):
                    end = len(readings[i].pieces) + 2
                    self.states[start + i] = hidden[row, :end].to(torch.bfloat16)


def chunked(lengths: Sequence[int]) -> list[list[int]]:
    """Numbers of texts in passes of at most CHUNK pieces with padding, shortest first."""
    out: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not out or (len(out[-1]) + 1) * padded(lengths[i]) > CHUNK:
            out.append([])
        out[-1].append(i)
    return out


class _Through(nn.Module):
    """Stands where an upper layer stood: passes on what it was given."""

    def __init__(self, as_tuple: bool) -> None:
        super().__init__()
        self.as_tuple = as_tuple

    def forward(self, states: Tensor, *_: Any, **__: Any) -> Any:
        return (states,) if self.as_tuple else states


def _lower(encoder: Encoder, below: int) -> Encoder:
    """The embeddings and the first `below` layers of a copy."""
    model = copy.deepcopy(encoder.model)
    layers = layers_of(model)
    kinds: list[bool] = []
    hook = layers[0].register_forward_hook(lambda _, __, out: kinds.append(isinstance(out, tuple)))
    lower = Encoder(model, encoder.tokenizer, encoder.max_pieces)
    with torch.no_grad():
        lower.forward([[0]])
    hook.remove()
    for i in range(below, len(layers)):
        layers[i] = _Through(kinds[0])
    return lower
