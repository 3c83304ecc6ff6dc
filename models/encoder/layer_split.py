"""An encoder split at a layer: a base's lower layers run once, and layers trained apart from it run on their
cached hidden states.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder, WordPieces, padded


def layers_of(model: Any) -> nn.ModuleList:
    """The transformer layers of a Hugging Face encoder, lowest first.

    Raises ValueError when the model does not keep them in a list.
    """
    n = model.config.num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == n:
            return module
    raise ValueError("the encoder does not keep its layers in a list")


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
        layers = layers_of(self.model)
        if not 1 <= below < len(layers):
            raise ValueError(f"cannot split {len(layers)} layers after layer {below}")
        self._split_layer = layers[below - 1]

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
        caught: list[Tensor] = []
        own = threading.get_ident()

        def catch(_: Any, __: Any, out: Any) -> None:
            # Another thread may run the same layer meanwhile.
            if threading.get_ident() == own:
                caught.append(_states(out))

        # Registered only during the call: the encoders of a base share its modules.
        hook = self._split_layer.register_forward_hook(catch)
        states: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(sequences)
        try:
            for batch in self._batches([len(s) + 2 for s in sequences]):
                hidden = self.forward([sequences[i] for i in batch])
                at_split = caught.pop()
                for row, i in enumerate(batch):
                    end = len(sequences[i]) + 2
                    states[i] = hidden[row, 1 : end - 1], at_split[row, :end]
        finally:
            hook.remove()
        return states


class _CachedStates(nn.Module):
    """Takes the place of a lower layer: returns the states that the same thread has set, whatever its
    input.
    """

    def __init__(self, as_tuple: bool) -> None:
        super().__init__()
        self.as_tuple = as_tuple
        self._states: dict[int, Tensor] = {}

    def set(self, states: Tensor) -> None:
        self._states[threading.get_ident()] = states

    def forward(self, *_: Any, **__: Any) -> Any:
        states = self._states[threading.get_ident()]
        return (states,) if self.as_tuple else states


class UpperLayers(Encoder):
    """The layers above the first `below` of an encoder, whose model is changed in place: its lower layers
    are removed.
    """

    def __init__(self, encoder: Encoder, below: int) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        layers = layers_of(self.model)
        self._cached = _CachedStates(returns_tuples(self, layers[0]))
        for i in range(below):
            layers[i] = self._cached

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
        self._cached.set(cached.to(device))
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


def _states(output: Any) -> Tensor:
    """Some layers return their hidden states alone, some in a tuple."""
    return cast(Tensor, output[0] if isinstance(output, tuple) else output)


def returns_tuples(encoder: Encoder, layer: nn.Module) -> bool:
    """Whether the layer returns its hidden states in a tuple, observed in one forward pass."""
    kinds: list[bool] = []
    hook = layer.register_forward_hook(lambda _, __, out: kinds.append(isinstance(out, tuple)))
    with torch.no_grad():
        encoder.forward([[0]])
    hook.remove()
    return kinds[0]
