"""An encoder split at a layer: a base's lower layers run once, and layers trained apart from it run on their
cached hidden states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from models.encoder.model import Encoder, padded
from models.encoder.packed.bert import PackedBert
from models.encoder.split.layers import Layers
from models.encoder.word_pieces import WordPieces


class EncodedSentence(NamedTuple):
    """A sentence with its word vectors and the hidden states at the split."""

    pieces: WordPieces
    vectors: Tensor
    """(words, dimension), as `Encoder.word_vectors`"""
    split_states: list[Tensor]
    """(pieces + 2, dimension) of each window: hidden states of the last lower layer, in the number format of
    the model's layers"""


class SplitEncoder(Encoder):
    """A whole encoder that also returns the hidden states of its layer number `below`, counted from 1."""

    def __init__(self, encoder: Encoder, below: int) -> None:
        """Raises ValueError unless at least one layer is below the split and one above it."""
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        self._layers, self._below = None, below
        if isinstance(self.model, PackedBert):
            number = len(self.model.layers)
        else:
            self._layers = Layers(self.model)
            number = self._layers.number
        if not 1 <= below < number:
            raise ValueError(f"cannot split {number} layers after layer {below}")

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
        for batch, hidden, at_split in self._hidden_at_split(sequences):
            for row, i in enumerate(batch):
                end = len(sequences[i]) + 2
                states[i] = hidden[row, 1 : end - 1], at_split[row, :end]
        return states

    def _hidden_at_split(
        self, sequences: Sequence[Sequence[int]]
    ) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """What `hidden` gives, and the hidden states at the split."""
        if self._layers is None:
            yield from self.model.run(self.with_special(sequences), self._below)
            return
        with self._layers.states_after(self._below) as caught:
            for batch, hidden in self.hidden(sequences):
                yield batch, hidden, caught.pop()


class UpperLayers(Encoder):
    """The layers above the first `below` of an encoder. A model of transformers is changed in place: its
    lower layers are removed.
    """

    def __init__(self, encoder: Encoder, below: int) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        if isinstance(self.model, PackedBert):
            self.model = self.model.above(below)
            return
        layers = Layers(self.model)
        self._cached = layers.stand_in(self.probe())
        layers.begin_after(below, self._cached)

    def forward_states(self, states: Sequence[Tensor]) -> Tensor:
        """Hidden states (batch, padded pieces, dimension), 32-bit, from those at the split, (pieces + 2,
        dimension) each; gradients flow through the upper layers. Not for a packed model.
        """
        width = padded(max(len(s) for s in states))
        cached = torch.zeros((len(states), width, self.dimension), dtype=self.model.dtype)
        mask = torch.zeros((len(states), width), dtype=torch.long)
        for row, state in enumerate(states):
            cached[row, : len(state)] = state
            mask[row, : len(state)] = 1
        device = self.model.device
        self._cached.set(cached.to(device))
        # The token numbers give the shape only: their embeddings are replaced by the cached states.
        hidden = self.model(input_ids=torch.zeros_like(mask).to(device), attention_mask=mask.to(device))
        return cast(Tensor, hidden.last_hidden_state.float())

    def word_vectors_above(self, sentences: Sequence[EncodedSentence]) -> list[Tensor]:
        """(words, dimension) of each sentence, by the upper layers."""
        windows = [states for s in sentences for states in s.split_states]
        last: list[Tensor] = [torch.empty(0)] * len(windows)
        for batch, hidden in self._hidden_above(windows):
            for row, i in enumerate(batch):
                last[i] = hidden[row, 1 : len(windows[i]) - 1]
        states = iter(last)
        return [self._pool_words(s.pieces, [next(states) for _ in s.split_states]) for s in sentences]

    def _hidden_above(self, states: Sequence[Tensor]) -> Iterator[tuple[list[int], Tensor]]:
        """What `hidden` gives, from the hidden states at the split."""
        if isinstance(self.model, PackedBert):
            for group in self.model.run_states(states):
                yield group.members, group.last
            return
        for batch in self._batches([len(s) for s in states]):
            yield batch, self.forward_states([states[i] for i in batch])
