"""What a whole training run changed, in 8 bits."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter
from training.common import adapter


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
