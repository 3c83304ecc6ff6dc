"""Parts of a network that compute in 32 bits under autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def in_32_bits(device: torch.device | str) -> AbstractContextManager[object]:
    """Context without autocast, for layers with one output.

    Their gradients are products with one row or column. On processors with AMX oneDNN 3.12 (in torch 2.13)
    writes such products out of bounds in 16 bits: training ends with "double free or corruption" or a
    segmentation fault.
    """
    return torch.autocast(torch.device(device).type, enabled=False)
