"""Linear layers in 16 bits whose products have the same bits in a batch of any size on a given processor."""

from __future__ import annotations

import torch
from torch import Tensor, nn

#: Inputs of one product. oneDNN sums longer rows in parts, whose limits depend on the number of rows.
BLOCK = 384


class BlockedLinear(nn.Module):
    """A linear layer computed as the sum of products over blocks of its inputs."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weights = [w.contiguous() for w in _blocks(layer.weight.detach())]
        self.bias = layer.bias

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., in) to (..., out), in the number format of the inputs; the blocks are summed in 32 bits."""
        parts = _blocks(inputs)
        total = sum(nn.functional.linear(x, w).float() for x, w in zip(parts, self.weights, strict=True))
        if self.bias is not None:
            total = total + self.bias
        return torch.as_tensor(total, dtype=inputs.dtype)


def _blocks(values: Tensor) -> tuple[Tensor, ...]:
    return torch.tensor_split(values, list(range(BLOCK, values.shape[-1], BLOCK)), dim=-1)


def block_linear_layers(model: nn.Module) -> None:
    """Replaces, in place, the linear layers of a 16-bit model that have more than BLOCK inputs."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear) and child.in_features > BLOCK:
                setattr(module, name, BlockedLinear(child))
