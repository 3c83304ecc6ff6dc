"""An encoder in two halves: lower layers that two spaces share, and upper layers that are fed with what the
lower ones gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder, Words, padded


def layers_of(model: Any) -> nn.ModuleList:
    """The transformer layers of an encoder, lowest first; raises ValueError where there is no list of
    them.
    """
    n = model.config.num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == n:
            return module
    raise ValueError("the encoder does not keep its layers in a list")


class Read(NamedTuple):
    """A sentence as an encoder read it."""

    pieces: Words
    vectors: Tensor
    """(words, dimension), as `Encoder.word_vectors`"""
    middle: list[Tensor]
    """(pieces + 2, dimension) of each window: what the lower half gave, in the encoder's number format"""


class Lower(Encoder):
    """A whole encoder that also tells what its first `below` layers gave."""

    def __init__(self, encoder: Encoder, below: int) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        layers = layers_of(self.model)
        if not 1 <= below < len(layers):
            raise ValueError(f"{below} of {len(layers)} layers is no lower half")
        self._last_below = layers[below - 1]

    def read(self, sentences: Sequence[Sequence[str]]) -> list[Read]:
        """Every sentence, given as words; nothing is truncated."""
        split = self.split(sentences)
        windows = [self.windows(s) for s in split]
        states = iter(self._both([w for ws in windows for w in ws]))
        found = []
        for pieces, own in zip(split, windows, strict=True):
            pairs = [next(states) for _ in own]
            found.append(Read(pieces, self._pool_words(pieces, [p[0] for p in pairs]), [p[1] for p in pairs]))
        return found

    def _both(self, sequences: Sequence[Sequence[int]]) -> list[tuple[Tensor, Tensor]]:
        """Hidden states (pieces, dimension) of the last layer, and of the middle one with the special
        tokens.
        """
        caught: list[Tensor] = []
        # Only while this runs: encoders of a base share their modules.
        hook = self._last_below.register_forward_hook(lambda _, __, out: caught.append(_states(out)))
        found: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(sequences)
        try:
            for batch in self._batches([len(s) + 2 for s in sequences]):
                hidden = self.forward([sequences[i] for i in batch])
                middle = caught.pop()
                for row, i in enumerate(batch):
                    end = len(sequences[i]) + 2
                    found[i] = hidden[row, 1 : end - 1], middle[row, :end]
        finally:
            hook.remove()
        return found


class _Given(nn.Module):
    """Stands where lower layers stood: passes on the states that it was handed, whatever comes in."""

    def __init__(self, as_tuple: bool) -> None:
        super().__init__()
        self.as_tuple = as_tuple
        self.states = torch.empty(0)

    def forward(self, *_: Any, **__: Any) -> Any:
        return (self.states,) if self.as_tuple else self.states


class Upper(Encoder):
    """The layers above the first `below` of a model, which loses those and is changed by it."""

    def __init__(self, encoder: Encoder, below: int) -> None:
        super().__init__(encoder.model, encoder.tokenizer, encoder.max_pieces)
        layers = layers_of(self.model)
        self._given = _Given(_gives_tuples(self, layers[0]))
        for i in range(below):
            layers[i] = self._given

    def forward_states(self, states: Sequence[Tensor]) -> Tensor:
        """Hidden states (batch, padded pieces, dimension), 32-bit, from those of the lower half, (pieces + 2,
        dimension) each; gradients flow.
        """
        width = padded(max(len(s) for s in states))
        given = torch.zeros((len(states), width, self.dimension), dtype=self.model.dtype)
        mask = torch.zeros((len(states), width), dtype=torch.long)
        for row, state in enumerate(states):
            given[row, : len(state)] = state
            mask[row, : len(state)] = 1
        device = self.model.device
        self._given.states = given.to(device)
        # The embeddings of these numbers are never looked at.
        hidden = self.model(input_ids=torch.zeros_like(mask).to(device), attention_mask=mask.to(device))
        return cast(Tensor, hidden.last_hidden_state.float())

    def word_vectors_above(self, sentences: Sequence[Read]) -> list[Tensor]:
        """(words, dimension) for each sentence that `Lower` read."""
        windows = [state for s in sentences for state in s.middle]
        last: list[Tensor] = [torch.empty(0)] * len(windows)
        for batch in self._batches([len(w) for w in windows]):
            hidden = self.forward_states([windows[i] for i in batch])
            for row, i in enumerate(batch):
                last[i] = hidden[row, 1 : len(windows[i]) - 1]
        states = iter(last)
        return [self._pool_words(s.pieces, [next(states) for _ in s.middle]) for s in sentences]


def _states(output: Any) -> Tensor:
    """Some layers give their states alone, some in a tuple."""
    return cast(Tensor, output[0] if isinstance(output, tuple) else output)


def _gives_tuples(encoder: Encoder, layer: nn.Module) -> bool:
    kinds: list[bool] = []
    hook = layer.register_forward_hook(lambda _, __, out: kinds.append(isinstance(out, tuple)))
    with torch.no_grad():
        encoder.forward([[0]])
    hook.remove()
    return kinds[0]
