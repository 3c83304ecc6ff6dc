"""An encoder split at a layer: a base's lower layers run once, and layers trained apart from it run on their
cached hidden states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from models.encoder.layers import Layers
from models.encoder.model import Encoder, WordPieces, padded


class EncodedSentence(NamedTuple):
    """A sentence with its word vectors and the hidden states at the split."""

    pieces: WordPieces
    vectors: Tensor
    """(words, dimension), as `Encoder.word_vectors`"""
    split_states: list[Tensor]
    """(pieces + 2, dimension) of each window: hidden states of the last lower layer, in the encoder's number
    format"""


class SplitEncoder(Encoder):
    """A whole encoder that also returns the hidden states of its layer number `below`, counted from 1."""

    def __init__(self, encoder: Encoder, below: int) -> None:
        """Raises ValueError unless at least one layer is below the split and one above it."""
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        self._layers, self._below = Layers(self.model), below
        if not 1 <= below < self._layers.number:
            raise ValueError(f"cannot split {self._layers.number} layers after layer {below}")

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[EncodedSentence]:
        """Each sentence, given as its words; nothing is truncated."""
        split = self.split(sentences)
        windows = [self.windows(s) for s in split]
        states = iter(self._states_of([w for ws in windows for w in ws]))
        encoded = []
        for pieces, own in zip(split, windows, strict=True):
            pairs = [next(states) for _ in own]
            vectors = self._pool_words(pieces, [last for last, _ in pairs])
            encoded.append(EncodedSentence(pieces, vectors, [at_split for _, at_split in pairs]))
        return encoded

    def _states_of(self, sequences: Sequence[Sequence[int]]) -> list[tuple[Tensor, Tensor]]:
        """Of each sequence the hidden states of the last layer (pieces, dimension), and those at the split
        with the special tokens (pieces + 2, dimension).
        """
        states: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(sequences)
        with self._layers.states_after(self._below) as caught:
            for batch in self._batches([len(s) + 2 for s in sequences]):
                hidden = self.forward([sequences[i] for i in batch])
                at_split = caught.pop()
                for row, i in enumerate(batch):
                    end = len(sequences[i]) + 2
                    states[i] = hidden[row, 1 : end - 1], at_split[row, :end]
        return states


class LowerLayers(Encoder):
    """The layers up to number `below` of an encoder, whose model is changed in place: those above are
    removed. The hidden states of `forward` are those of layer `below`.
    """

    def __init__(self, encoder: Encoder, below: int) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        self._layers, self._below = Layers(self.model), below
        self._whole = below == self._layers.number
        self._layers.end_after(below, self._layers.stand_in(self.probe()))

    def forward(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        # A norm after the last layer belongs to the layers above the split.
        if self._whole:
            return super().forward(sequences)
        with self._layers.states_after(self._below) as caught:
            super().forward(sequences)
        return caught[0].float()


class UpperLayers(Encoder):
    """The layers above the first `below` of an encoder, whose model is changed in place: its lower layers
    are removed.
    """

    def __init__(self, encoder: Encoder, below: int) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        layers = Layers(self.model)
        self._cached = layers.stand_in(self.probe())
        layers.begin_after(below, self._cached)

    def forward_states(self, states: Sequence[Tensor]) -> Tensor:
        """Hidden states (batch, padded pieces, dimension), 32-bit, from those at the split, (pieces + 2,
        dimension) each; gradients flow through the upper layers.
        """
        width = padded(max(len(s) for s in states))
        cached = torch.zeros((len(states), width, self.dimension), dtype=self.model.dtype)
        mask = torch.zeros((len(states), width), dtype=torch.long)
        for row, state in enumerate(states):
            cached[row, : len(state)] = state
            mask[row, : len(state)] = 1
        device = self.model.device
        self._cached.states = cached.to(device)
        # The token numbers give the shape only: their embeddings are replaced by the cached states.
        hidden = self.model(input_ids=torch.zeros_like(mask).to(device), attention_mask=mask.to(device))
        return cast(Tensor, hidden.last_hidden_state.float())

    def word_vectors_above(self, sentences: Sequence[EncodedSentence]) -> list[Tensor]:
        """(words, dimension) of each sentence, by the upper layers."""
        windows = [states for s in sentences for states in s.split_states]
        last: list[Tensor] = [torch.empty(0)] * len(windows)
        for batch in self._batches([len(w) for w in windows]):
            hidden = self.forward_states([windows[i] for i in batch])
            for row, i in enumerate(batch):
                last[i] = hidden[row, 1 : len(windows[i]) - 1]
        states = iter(last)
        return [self._pool_words(s.pieces, [next(states) for _ in s.split_states]) for s in sentences]
