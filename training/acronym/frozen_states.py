"""Hidden states of the layers that are not trained, computed once for each text of a run."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor

from models.acronym.acronym_encoder import AcronymEncoder, MarkedPieces
from models.acronym.m_network import HeadConfig, texts_of
from models.acronym.questions import question
from models.encoder.model import Encoder, padded
from models.encoder.split.layer_split import LowerLayers
from models.types import Span
from training.evaluation.acronym import Row

console = Console()
#: Pieces, padding included, of one forward pass.
CHUNK = 3072


class Example(NamedTuple):
    """A row whose texts are given as numbers of the cache; the right long form comes first."""

    anchor: int
    others: list[int]
    """the rest of what `Question.places` gives"""
    features: list[list[float]]
    """(m, len(surface_features.NAMES))"""
    acronym: str
    sense: int
    """the same number for rows with the same acronym and long form"""


class StateCache:
    """Hidden states of the frozen layers for each distinct text, in 16 bits, on the CPU.

    The dropout of the frozen layers is off, so that one pass is enough.
    """

    def __init__(
        self,
        encoder: Encoder,
        below: int,
        shape: HeadConfig,
        precision: str,
        device: torch.device | str = "cpu",
    ) -> None:
        """`below`: how many layers are frozen."""
        self.shape = shape
        copied = Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces)
        lower = LowerLayers(copied, below)
        # Nothing here needs gradients: weights in 16 bits save the casts.
        lower.model.to(device=device, dtype=getattr(torch, precision))
        self.lower, self.reader = lower, AcronymEncoder(lower)
        self.readings: list[MarkedPieces] = []
        self.states: list[Tensor] = []
        self._number: dict[MarkedPieces, int] = {}

    def examples(self, rows: Sequence[Row]) -> list[Example]:
        """Encodes the texts that are not in the cache yet."""
        questions = [question(r.text, r.span, Span(0, len(r.text)), r.senses) for r in rows]
        places = [texts_of(q, self.shape) for q in questions]
        readings = self.reader.tokenize([place for own in places for place in own])
        self._encode([r for r in dict.fromkeys(readings) if r not in self._number])
        senses: dict[tuple[str, str], int] = {}
        examples, at = [], 0
        for row, q, own in zip(rows, questions, places, strict=True):
            numbers = [self._number[r] for r in readings[at : at + len(own)]]
            at += len(numbers)
            sense = senses.setdefault((row.short_form, row.gold), len(senses))
            features = q.features(self.reader.count)
            examples.append(Example(numbers[0], numbers[1:], features, row.short_form, sense))
        return examples

    def megabytes(self) -> float:
        """The memory that the states take."""
        return sum(s.numel() * s.element_size() for s in self.states) / 1e6

    def _encode(self, readings: Sequence[MarkedPieces]) -> None:
        start = len(self.readings)
        self.readings += readings
        self._number |= {r: start + i for i, r in enumerate(readings)}
        self.states += [torch.empty(0)] * len(readings)
        chunks = chunked([len(r.pieces) + 2 for r in readings])
        with torch.inference_mode():
            for part in track(chunks, "frozen layers", console=console, transient=True):
                hidden = self.lower.forward([readings[i].pieces for i in part])
                for row, i in enumerate(part):
                    end = len(readings[i].pieces) + 2
                    self.states[start + i] = hidden[row, :end].to("cpu", torch.bfloat16)


def chunked(lengths: Sequence[int]) -> list[list[int]]:
    """Indices of texts in passes of at most CHUNK pieces with padding (more only for one text alone),
    shortest first.
    """
    chunks: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not chunks or (len(chunks[-1]) + 1) * padded(lengths[i]) > CHUNK:
            chunks.append([])
        chunks[-1].append(i)
    return chunks
