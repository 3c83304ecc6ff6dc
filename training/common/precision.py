"""The number format of a run: 16-bit products where the hardware has them, weights in 32 bits."""

from __future__ import annotations

from typing import Any, Literal

import torch

from models.loading import number_formats

Precision = Literal["auto", "float32", "bfloat16"]


def resolved(precision: Precision, device: torch.device | str = "cpu") -> Literal["float32", "bfloat16"]:
    """What `auto` means on this device; a run's settings hold the answer, for its resumption."""
    if precision != "auto":
        return precision
    if torch.device(device).type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if "bfloat16" in number_formats("cpu") else "float32"


def mixed(precision: str, device: torch.device | str = "cpu") -> Any:
    """Context of a forward pass: autocast to bfloat16, or nothing."""
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
