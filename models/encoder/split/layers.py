"""The transformer layers of a Hugging Face encoder of any family: a list of layers, or one layer that runs
again and again (ALBERT).
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

#: The attribute in which an ALBERT keeps its only layer, and that of what its first layer reads.
SHARED, SHARED_INPUT = "albert_layer_groups", "embedding_hidden_mapping_in"


class Layers:
    """The layers of a model, lowest first; `modules` are they in a list, or the only one where all of them
    share their weights.
    """

    def __init__(self, model: Any) -> None:
        """Raises ValueError when the model keeps its layers in an unknown way."""
        self.model = model
        # Looked up in `_modules`: the wrapper of an adapter passes attributes on.
        self._repeating: Any = next((m for m in model.modules() if SHARED in m._modules), None)
        config = model.config if self._repeating is None else self._repeating.config
        self.number = int(config.num_hidden_layers)
        self.modules = self._modules()

    @property
    def shared(self) -> bool:
        """Whether all layers have the same weights."""
        return self._repeating is not None

    def _modules(self) -> nn.ModuleList:
        if self._repeating is not None:
            groups = cast(nn.ModuleList, getattr(self._repeating, SHARED))
            if len(groups) == 1:
                return groups
            raise ValueError(f"its layers are in {len(groups)} groups that share weights; one can be split")
        for module in self.model.modules():
            if isinstance(module, nn.ModuleList) and len(module) == self.number:
                return module
        raise ValueError("the encoder does not keep its layers in a list")

    def freeze(self, number: int) -> None:
        """Freezes the first layers; shared ones only where all are frozen."""
        if not self.shared:
            for layer in list(self.modules)[: max(0, number)]:
                layer.requires_grad_(False)
        elif number >= self.number:
            self.modules.requires_grad_(False)

    @contextmanager
    def states_after(self, number: int) -> Iterator[list[Tensor]]:
        """Within the context each forward pass appends the hidden states after that layer, counted from 1."""
        caught: list[Tensor] = []
        runs, own = 0, threading.get_ident()

        def catch(_: Any, __: Any, output: Any) -> None:
            nonlocal runs
            if threading.get_ident() != own:  # another thread runs the same layer meanwhile
                return
            runs = runs % self.number + 1
            if not self.shared or runs == number:
                caught.append(output[0] if isinstance(output, tuple) else output)

        # Registered only during the context: the encoders of a base share its modules.
        hook = self.modules[0 if self.shared else number - 1].register_forward_hook(catch)
        try:
            yield caught
        finally:
            hook.remove()

    def begin_after(self, number: int, beginning: StandIn) -> None:
        """Removes the first layers, in place; the next one reads what `beginning` holds."""
        if self.shared:
            setattr(self._repeating, SHARED_INPUT, beginning)
            self._repeat(self.number - number)
        else:
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
        # The stand-in of ALBERT's only layer is in the place of a linear one.
        return StandIn(0 if self.shared else sizes[0], getattr(self.modules[0], "attention_type", None))

    def _repeat(self, times: int) -> None:
        self._repeating.config = copy.copy(self._repeating.config)
        self._repeating.config.num_hidden_layers = times
        self.number = times


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
