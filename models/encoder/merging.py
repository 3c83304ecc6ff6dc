"""What a release adds to the parameters of its base: low-rank pairs and deltas."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

_MATRIX = 2


def check_changes(shapes: Mapping[str, torch.Size], changes: Mapping[str, Tensor]) -> None:
    """Raises ValueError for other tensors than `with_changes` reads, names of parameters that are not among
    `shapes`, and shapes that are not the parameters'.
    """
    low_rank = {n: t for n, t in changes.items() if not n.endswith((".delta", ".scale"))}
    _check_pairs(shapes, low_rank)
    _check_deltas(shapes, {n: t for n, t in changes.items() if n not in low_rank})


def changed_parameters(changes: Mapping[str, Tensor]) -> set[str]:
    """Names of the parameters that changes name."""
    return {_parameter(name) for name in changes}


def with_changes(name: str, value: Tensor, changes: Mapping[str, Tensor]) -> Tensor:
    """The parameter `name` in 32 bits with its changes, which `check_changes` must have accepted.

    A pair `LAYER.lora_a` (r, in), `LAYER.lora_b` (out, r) adds b a to the weight of a linear layer (LoRA, Hu
    et al. 2021). `PARAMETER.delta` adds itself, or, if it is of 8 bits, itself times `PARAMETER.scale` (out,)
    row by row. Both may change the same layer.
    """
    value, layer = value.float(), name.removesuffix(".weight")
    if name == f"{layer}.weight" and f"{layer}.lora_a" in changes:
        value = value + changes[f"{layer}.lora_b"].float() @ changes[f"{layer}.lora_a"].float()
    if f"{name}.delta" in changes:
        delta = changes[f"{name}.delta"].float()
        if f"{name}.scale" in changes:
            delta = delta * changes[f"{name}.scale"].float().reshape(-1, *[1] * (delta.ndim - 1))
        value = value + delta
    return value


def _parameter(name: str) -> str:
    owner, kind = name.rsplit(".", 1)
    return owner if kind in ("delta", "scale") else f"{owner}.weight"


def _check_pairs(shapes: Mapping[str, torch.Size], tensors: Mapping[str, Tensor]) -> None:
    names = {name.rsplit(".", 1)[0] for name in tensors}
    pairs = {f"{name}.{half}" for name in names for half in ("lora_a", "lora_b")}
    if pairs != tensors.keys() or any(t.ndim != _MATRIX for t in tensors.values()):
        raise ValueError("an adapter holds pairs lora_a, lora_b and deltas, and nothing else")
    for name in sorted(names):
        shape = shapes.get(f"{name}.weight", torch.Size())
        if len(shape) != _MATRIX:
            raise ValueError(f"the adapter names {name}, which is no linear layer of the base")
        a, b = tensors[f"{name}.lora_a"], tensors[f"{name}.lora_b"]
        if (b.shape[0], a.shape[1]) != tuple(shape) or a.shape[0] != b.shape[1]:
            raise ValueError(f"the adapter's shapes for {name} do not fit the base")


def _check_deltas(shapes: Mapping[str, torch.Size], tensors: Mapping[str, Tensor]) -> None:
    names = {name.removesuffix(".delta") for name in tensors if name.endswith(".delta")}
    rounded = {n for n in names if tensors[f"{n}.delta"].dtype == torch.int8}
    if tensors.keys() != {f"{n}.delta" for n in names} | {f"{n}.scale" for n in rounded}:
        raise ValueError("an adapter holds a scale for each delta of 8 bits and for no other")
    for name in sorted(names):
        delta = tensors[f"{name}.delta"]
        if name not in shapes:
            raise ValueError(f"the adapter names {name}, which is no parameter of the base")
        scale = tensors.get(f"{name}.scale")
        if delta.shape != shapes[name] or (scale is not None and scale.shape != delta.shape[:1]):
            raise ValueError(f"the adapter's shapes for {name} do not fit the base")
