"""What of an encoder is trained: a low-rank adapter on its linear layers, or its whole layers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS


def trainable(encoder: Encoder, rank: int, dropout: float = 0.05) -> Encoder:
    """A copy whose adapter of this rank (0: everything above the embeddings) can be trained. The weights that
    were loaded stay as they are: every encoder of the process shares them.
    """
    model = copy.deepcopy(encoder.model)
    # The pooler's output is not used: what is trained there would learn nothing.
    if rank:
        linear = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and "pooler" not in n]
        settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=linear, lora_dropout=dropout)
        model = get_peft_model(model, settings)
    else:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(_is_trained(name))
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
    return {WEIGHTS: {n: t.half().contiguous() for n, t in model.state_dict().items() if _is_trained(n)}}


def _is_trained(name: str) -> bool:
    """The embeddings are half of a small encoder and hardly move; the pooler's output is not used."""
    return "embeddings." not in name and "pooler" not in name


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


def only_linear(model: nn.Module) -> None:
    """Closes what an adapter cannot hold: of what is trained the weights of linear layers alone stay open."""
    weights = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.requires_grad and id(parameter) in weights)


def factored(base: nn.Module, trained: nn.Module, rank: int) -> dict[str, Tensor]:
    """The adapter of this rank that is nearest to what training changed in the weights of linear layers: the
    first `rank` singular directions of W_trained - W_base, both halves scaled alike, in 16 bits.

    Layers that did not change are left out. Raises ValueError where biases, norms or embeddings changed,
    which no adapter holds (`only_linear` keeps them as they are), or nothing did.
    """
    before, tensors = dict(base.named_parameters()), {}
    linear = {f"{n}.weight" for n, m in trained.named_modules() if isinstance(m, nn.Linear)}
    for name, parameter in trained.named_parameters():
        change = parameter.detach().float() - before[name].detach().float()
        if not bool(change.any()):
            continue
        if name not in linear:
            raise ValueError(f"{name} changed, which an adapter cannot hold")
        u, s, v = torch.linalg.svd(change, full_matrices=False)
        root = s[:rank].sqrt()
        layer = name.removesuffix(".weight")
        tensors[f"{layer}.lora_a"] = (root[:, None] * v[:rank]).half().contiguous()
        tensors[f"{layer}.lora_b"] = (u[:, :rank] * root).half().contiguous()
    if not tensors:
        raise ValueError("nothing was trained")
    return tensors
