"""Parts of a network that compute in 32 bits while the rest may not."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def in_32_bits(device: torch.device | str) -> AbstractContextManager[object]:
    """Context of the layers with one output, without autocast.

    Their gradients are products with one row or column. On processors with AMX oneDNN 3.12 (in torch 2.13)
    writes such products of 16 bits beyond their memory: training ends with "double free or corruption" or a
    segmentation fault.
    """
    return torch.autocast(torch.device(device).type, enabled=False)
