"""Reads the tensors of a release; files with numbers that are not finite are refused."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from models.releases.manifest import ReleaseError

#: Number formats that releases may contain.
NUMBERS = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool,
    torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
)  # fmt: skip


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Tensors by name; raises ReleaseError when the file is malformed or a number is infinite or NaN."""
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ReleaseError(f"{path.name}: {error}") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in NUMBERS:
            raise ReleaseError(f"{path.name}: {name} holds numbers of type {tensor.dtype}")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ReleaseError(f"{path.name}: {name} holds numbers that are not finite")
    return tensors


def check_size(tensors: dict[str, torch.Tensor], numbers: int, where: str) -> None:
    """Raises ReleaseError when a model that its configuration describes needs more numbers than are stored:
    to be called before such a model is allocated.
    """
    stored = sum(tensor.numel() for tensor in tensors.values())
    if numbers > stored:
        raise ReleaseError(f"{where}: the configuration needs {numbers} numbers, {stored} are stored")
