"""Tensors of a release's file, refused where a number is not finite."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from models.release import ReleaseError


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Name to tensor; raises ReleaseError when the file is malformed, or a number is infinite or none."""
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ReleaseError(f"{path.name}: {error}") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ReleaseError(f"{path.name}: {name} holds numbers that are not finite")
    return tensors
