"""The transformer layers of a Hugging Face encoder of any family that keeps them in a list."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class Layers:
    """The layers of a model, lowest first, in the list `modules`."""

    def __init__(self, model: Any) -> None:
        """Raises ValueError for a model without such a list; the layers of an ALBERT are one and the same."""
        self.model = model
        self.number = int(model.config.num_hidden_layers)
        lists = (m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == self.number)
        found = next(lists, None)
        if found is None:
            raise ValueError("the encoder does not keep its layers in a list")
        self.modules = found

    def freeze(self, number: int) -> None:
        """Freezes the first layers."""
        for layer in list(self.modules)[: max(0, number)]:
            layer.requires_grad_(False)

    @contextmanager
    def states_after(self, number: int) -> Iterator[list[Tensor]]:
        """Within the context each forward pass appends the hidden states after that layer, counted from 1."""
        caught: list[Tensor] = []
        own = threading.get_ident()

        def catch(_: Any, __: Any, output: Any) -> None:
            if threading.get_ident() == own:  # another thread may run the same layer meanwhile
                caught.append(output[0] if isinstance(output, tuple) else output)

        # Registered only during the context: the encoders of a base share its modules.
        hook = self.modules[number - 1].register_forward_hook(catch)
        try:
            yield caught
        finally:
            hook.remove()

    def begin_after(self, number: int, beginning: StandIn) -> None:
        """Removes the first layers, in place; the next one reads what `beginning` holds."""
        for i in range(number):
            self.modules[i] = beginning

    def stand_in(self, input_ids: Tensor) -> StandIn:
        """For a layer of this model: whether layers return their hidden states in a tuple is observed in one
        forward pass over `input_ids`.
        """
        sizes: list[int] = []
        hook = self.modules[0].register_forward_hook(
            lambda _, __, out: sizes.append(len(out) if isinstance(out, tuple) else 0)
        )
        with torch.no_grad():
            self.model(input_ids=input_ids, attention_mask=torch.ones_like(input_ids))
        hook.remove()
        return StandIn(sizes[0], getattr(self.modules[0], "attention_type", None))


class StandIn(nn.Module):
    """Takes the place of a layer: returns the states that the same thread has set, whatever its input is, or
    its input where it has set none.
    """

    def __init__(self, size: int, attention_type: str | None) -> None:
        """`size`: of the tuple in which the layers return their hidden states first, 0 where they return them
        alone; `attention_type`: what a ModernBERT asks its layers for.
        """
        super().__init__()
        self.size, self.attention_type = size, attention_type
        self._states: dict[int, Tensor] = {}

    def set(self, states: Tensor) -> None:
        self._states[threading.get_ident()] = states

    def forward(self, hidden_states: Tensor, *_: Any, **__: Any) -> Any:
        states = self._states.get(threading.get_ident(), hidden_states)
        return (states, *[None] * (self.size - 1)) if self.size else states
