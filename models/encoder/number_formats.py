"""Products in 16 bits: whether they are fast, layers whose results do not depend on the batch, and parts of a
network that compute in 32 bits all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

#: Inputs of one product. oneDNN sums longer rows in parts, whose limits depend on the number of rows.
BLOCK = 384


def has_fast_bfloat16() -> bool:
    """Whether this processor multiplies 16-bit numbers faster than 32-bit ones. AVX-512 alone does on AMD,
    but not on the Intel processors that were measured.
    """
    by_vectors = torch.cpu._is_avx512_bf16_supported() and "AMD" in torch.cpu.get_capabilities()["cpu_name"]
    return bool(by_vectors or torch.cpu._is_amx_tile_supported())


class BlockedLinear(nn.Module):
    """A linear layer computed as the sum of products over blocks of its inputs."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weights = [w.contiguous() for w in blocks(layer.weight.detach())]
        self.bias = layer.bias

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., in) to (..., out), in the number format of the inputs; the blocks are summed in 32 bits."""
        return blocked_linear(inputs, self.weights, self.bias).to(inputs.dtype)


def blocked_linear(inputs: Tensor, weights: Sequence[Tensor], bias: Tensor | None) -> Tensor:
    """(..., in) to (..., out), in 32 bits, with the weights (out, BLOCK or less) of each block of inputs."""
    parts = zip(blocks(inputs), weights, strict=True)
    total = sum(nn.functional.linear(part, weight).float() for part, weight in parts)
    return torch.as_tensor(total if bias is None else total + bias)


def blocks(values: Tensor) -> tuple[Tensor, ...]:
    """The values in blocks of at most BLOCK of the last dimension."""
    return torch.tensor_split(values, list(range(BLOCK, values.shape[-1], BLOCK)), dim=-1)


def block_linear_layers(model: nn.Module) -> None:
    """Replaces, in place, the linear layers of a 16-bit model that have more than BLOCK inputs."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear) and child.in_features > BLOCK:
                setattr(module, name, BlockedLinear(child))


def in_32_bits(device: torch.device | str) -> AbstractContextManager[object]:
    """Context without autocast, for layers with one output.

    Their gradients are products with one row or column. On processors with AMX oneDNN 3.12 (in torch 2.13)
    writes such products out of bounds in 16 bits: training ends with "double free or corruption" or a
    segmentation fault.
    """
    return torch.autocast(torch.device(device).type, enabled=False)
