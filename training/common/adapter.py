"""The trained part of an encoder: a low-rank adapter, or whole layers as they are or as 8-bit deltas."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from models.encoder.merging import with_changes
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS

INT8_MAX = 127


def trainable(encoder: Encoder, rank: int) -> Encoder:
    """A copy of the encoder in which an adapter of this rank (0: everything above the embeddings) is
    trainable. The loaded weights are not changed, because all encoders of the process share them.
    """
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415  seconds to import

    model = copy.deepcopy(encoder.model)
    # The pooler's output is not used, so it would get no gradient.
    if rank:
        linear = [n for n, m in model.named_modules() if isinstance(m, nn.Linear) and "pooler" not in n]
        settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=linear)
        model = get_peft_model(model, settings)
    else:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(_is_trained(name))
    return Encoder(model, encoder.tokenizer, encoder.max_pieces)


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that require gradients."""
    return [p for p in model.parameters() if p.requires_grad]


def trained_state(model: nn.Module) -> dict[str, Tensor]:
    """Copies of the trainable parameters by name, on the CPU."""
    return {n: p.detach().to("cpu", copy=True) for n, p in model.named_parameters() if p.requires_grad}


def restore(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Loads a `trained_state`; raises KeyError or ValueError where it is of another model."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in state.items():
            # copy_ would repeat a tensor of size 1.
            if parameters[name].shape != tensor.shape:
                raise ValueError(f"{name} has shape {tuple(tensor.shape)}")
            parameters[name].copy_(tensor)


def files(model: nn.Module) -> dict[str, dict[str, Tensor]]:
    """The tensors that a release holds of a trained encoder, by file name, in 16 bits."""
    if adapter := adapter_tensors(model):
        return {ADAPTER: adapter}
    return {
        WEIGHTS: {n: t.half().cpu().contiguous() for n, t in model.state_dict().items() if _is_trained(n)}
    }


def _is_trained(name: str) -> bool:
    """Not the embeddings, which are half of a small encoder and hardly change, nor the unused pooler."""
    return "embeddings." not in name and "pooler" not in name


def adapter_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The adapter's matrices by the name of their layer in the base, the scale multiplied into b,
    in 16 bits.
    """
    from peft.tuners.lora import LoraLayer  # noqa: PLC0415  seconds to import

    tensors = {}
    for name, module in model.named_modules():
        if isinstance(module, LoraLayer):
            lora_a: Any = module.lora_A["default"]
            lora_b: Any = module.lora_B["default"]
            layer = name.removeprefix("base_model.model.")
            tensors[f"{layer}.lora_a"] = lora_a.weight.detach().half().cpu().contiguous()
            scaled = lora_b.weight.detach() * module.scaling["default"]
            tensors[f"{layer}.lora_b"] = scaled.half().cpu().contiguous()
    return tensors


def quantized(base: nn.Module, trained: nn.Module) -> dict[str, Tensor]:
    """The change of every parameter as `in_8_bits`. Unchanged parameters are left out."""
    before, changes = dict(base.named_parameters()), {}
    for name, parameter in trained.named_parameters():
        change = parameter.detach().float().cpu() - before[name].detach().float().cpu()
        if bool(change.any()):
            changes[name] = change
    return in_8_bits(changes)


def in_8_bits(changes: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Changes of parameters for `merge_adapter`: matrices in 8 bits with a scale for each row (its largest
    change is 127), vectors in 16 bits.
    """
    tensors = {}
    for name, change in changes.items():
        if change.ndim == 1:
            tensors[f"{name}.delta"] = change.half()
            continue
        scale = (change.flatten(1).abs().amax(1) / INT8_MAX).clamp(min=torch.finfo(torch.float16).tiny).half()
        rows = scale.float().reshape(-1, *[1] * (change.ndim - 1))
        tensors[f"{name}.delta"] = (change / rows).round().clamp(-INT8_MAX, INT8_MAX).to(torch.int8)
        tensors[f"{name}.scale"] = scale
    return tensors


def changes_of(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The changes, in 32 bits, that `in_8_bits` stored."""
    deltas = {name.removesuffix(".delta"): t for name, t in tensors.items() if name.endswith(".delta")}
    return {n: with_changes(n, torch.zeros_like(t, dtype=torch.float32), tensors) for n, t in deltas.items()}
