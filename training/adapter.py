"""What of an encoder is trained: a low-rank adapter on its linear layers, or everything."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn

from models.encoder import ADAPTER, WEIGHTS, Encoder


def trainable(encoder: Encoder, rank: int, dropout: float = 0.05) -> Encoder:
    """A copy whose adapter of this rank (0: everything) can be trained. The weights that were loaded stay as
    they are: every encoder of the process shares them.
    """
    model = copy.deepcopy(encoder.model)
    # The pooler's output is not used: what is trained there would learn nothing.
    if rank:
        linear = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and "pooler" not in n]
        settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=linear, lora_dropout=dropout)
        model = get_peft_model(model, settings)
    else:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_("pooler" not in name)
    return Encoder(model, encoder.tokenizer, encoder.max_pieces)


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad]


def trained_state(model: nn.Module) -> dict[str, Tensor]:
    """A copy of what can be trained, by name, in 32 bits."""
    return {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}


def restore(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Puts `trained_state` back; raises KeyError where it is of another model."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in state.items():
            parameters[name].copy_(tensor)


def files(model: nn.Module) -> dict[str, dict[str, Tensor]]:
    """What a release holds of a trained encoder: file name to tensors, in 16 bits."""
    if adapter := adapter_tensors(model):
        return {ADAPTER: adapter}
    return {WEIGHTS: {n: t.half().contiguous() for n, t in model.state_dict().items() if "pooler" not in n}}


def adapter_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The trained pairs by name of their layer in the base, the scale folded into b, in 16 bits."""
    tensors = {}
    for name, module in model.named_modules():
        if isinstance(module, LoraLayer):
            lora_a: Any = module.lora_A["default"]
            lora_b: Any = module.lora_B["default"]
            layer = name.removeprefix("base_model.model.")
            tensors[f"{layer}.lora_a"] = lora_a.weight.detach().half().contiguous()
            scaled = lora_b.weight.detach() * module.scaling["default"]
            tensors[f"{layer}.lora_b"] = scaled.half().contiguous()
    return tensors
