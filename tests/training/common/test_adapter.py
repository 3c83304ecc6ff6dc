"""What a whole training run changed, as a low-rank adapter."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter
from training.common import adapter

RANK = 3


@pytest.fixture
def base(tiny_bert: str) -> nn.Module:
    model: nn.Module = Encoder.load(tiny_bert).model
    return model


def changed(base: nn.Module, rank: int) -> nn.Module:
    """A copy whose attention and first dense layer moved by a matrix of this rank."""
    model, numbers = copy.deepcopy(base), torch.Generator().manual_seed(1)
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and ("query" in name or "intermediate" in name):
            left = torch.randn(module.out_features, rank, generator=numbers)
            right = torch.randn(rank, module.in_features, generator=numbers)
            module.weight.data += 0.01 * left @ right
    return model


def test_a_change_of_low_rank_comes_back_through_the_merge(base: nn.Module) -> None:
    trained = changed(base, RANK)
    tensors = adapter.factored(base, trained, RANK)
    merged = copy.deepcopy(base)
    merge_adapter(merged, tensors)
    assert {name.rsplit(".", 2)[-2] for name in tensors} == {"query", "dense"}
    assert all(t.dtype == torch.float16 for t in tensors.values())
    for (name, one), other in zip(merged.named_parameters(), trained.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-4), name


def test_the_nearest_adapter_is_kept_where_the_rank_is_too_small(base: nn.Module) -> None:
    trained = changed(base, RANK)
    layer = "encoder.layer.0.attention.self.query"
    change = (trained.get_parameter(f"{layer}.weight") - base.get_parameter(f"{layer}.weight")).detach()
    tensors = adapter.factored(base, trained, 1)
    kept = tensors[f"{layer}.lora_b"].float() @ tensors[f"{layer}.lora_a"].float()
    strength = torch.linalg.svdvals(change)
    # Eckart and Young: what is missing is as large as the singular values that are left out.
    assert torch.linalg.norm(change - kept) == pytest.approx(float(strength[1:].norm()), rel=1e-2)


def test_what_no_adapter_holds_is_refused(base: nn.Module) -> None:
    trained = copy.deepcopy(base)
    with pytest.raises(ValueError, match="nothing"):
        adapter.factored(base, trained, RANK)
    trained.get_parameter("encoder.layer.0.attention.self.query.bias").data += 1
    with pytest.raises(ValueError, match="bias"):
        adapter.factored(base, trained, RANK)


def test_only_the_weights_of_linear_layers_stay_open(tiny_bert: str) -> None:
    model = adapter.trainable(Encoder.load(tiny_bert), 0).model
    adapter.only_linear(model)
    names = {n for n, p in model.named_parameters() if p.requires_grad}
    assert "encoder.layer.1.output.dense.weight" in names
    assert all(n.endswith(".weight") and "LayerNorm" not in n and "pooler" not in n for n in names)


def test_deltas_of_8_bits_come_back_within_half_a_step(base: nn.Module) -> None:
    trained = changed(base, 32)
    trained.get_parameter("encoder.layer.0.output.LayerNorm.weight").data += 0.25
    tensors = adapter.quantized(base, trained)
    assert {t.dtype for n, t in tensors.items() if "LayerNorm" not in n} == {torch.int8, torch.float16}
    merged = copy.deepcopy(base)
    merge_adapter(merged, tensors)
    for (name, one), other in zip(merged.named_parameters(), trained.parameters(), strict=True):
        scale = tensors.get(f"{name}.scale")
        step = float(scale.max()) if scale is not None else 1e-6
        assert (one - other).abs().max() <= 0.51 * step, name
    assert adapter.quantized(base, copy.deepcopy(base)) == {}
