"""The packed encoder and the tagger's heads on another device than the processor, by tensors without content:
an operation over tensors of two devices raises an error, and no GPU is needed.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from models.encoder.packed.bert import Linear, PackedBert
from models.encoder.packed.weights import load_packed
from models.ner.status import N_RULES, Pieces, Places, StatusHead
from models.types import STATUSES


def on_gpu(part: Any, dtype: torch.dtype = torch.float32) -> Any:
    """Weights of the same shapes on a GPU, products in 16 bits."""
    if isinstance(part, Tensor):
        return torch.empty(part.shape, dtype=dtype, device="cuda")
    if isinstance(part, Linear):
        return Linear(
            tuple(on_gpu(w, torch.bfloat16) for w in part.weights), on_gpu(part.bias, torch.bfloat16)
        )
    if isinstance(part, tuple):
        return type(part)(*map(on_gpu, part))
    return type(part)(**{f.name: on_gpu(getattr(part, f.name)) for f in fields(part)})


def moved(model: PackedBert) -> PackedBert:
    return PackedBert(model.config, on_gpu(model.embeddings), [on_gpu(layer) for layer in model.layers])


def test_all_of_a_pass_is_on_the_device_of_the_weights(
    tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied to the device is pinned first: pieces and positions, or hidden states."""
    pinned: list[tuple[int, ...]] = []

    def pin(values: Tensor) -> Tensor:
        pinned.append(tuple(values.shape))
        return values

    monkeypatch.setattr(Tensor, "pin_memory", pin)
    model = load_packed(tiny_bert)
    assert model is not None
    with FakeTensorMode(allow_non_fake_inputs=True):
        packed = moved(model)
        assert (packed.device.type, packed.dtype) == ("cuda", torch.bfloat16)
        groups = list(packed.run([[2, 5, 3], [2, 6, 3], [2, 5, 6, 3]], split=1))
        groups += packed.above(1).run_states([torch.zeros(5, 32)])
    assert pinned == [(10,), (10,), (5, 32)]
    assert [g.members for g in groups] == [[0, 1], [2], [0]]
    assert [tuple(g.last.shape) for g in groups] == [(2, 3, 32), (1, 4, 32), (1, 5, 32)]
    for group in groups:
        assert {t.device.type for t in (group.last, group.at_split)} == {"cuda"}
        assert group.last.dtype == torch.float32


def test_the_head_of_statuses_computes_where_the_hidden_states_are() -> None:
    places = [Places(Pieces(0, 4), [Pieces(0, 2)], []), Places(Pieces(4, 9), [Pieces(5, 6)], [Pieces(7, 9)])]
    with FakeTensorMode(), torch.device("cuda"):
        head = StatusHead(16)
        logits = head.statuses(torch.empty(9, 16), places, torch.empty(2, N_RULES))
    assert (logits.device.type, tuple(logits.shape)) == ("cuda", (2, len(STATUSES)))


def test_attention_on_a_gpu_is_not_given_to_cudnn_first() -> None:
    # The name is PyTorch's: a library that does not know it would ignore it.
    assert os.environ["TORCH_CUDNN_SDPA_DEPRIORITIZED"] == "1"
    library = Path(torch.__file__).parent / "lib/libtorch_cuda.so"
    if not library.exists():
        pytest.skip("this PyTorch is without CUDA")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        assert content.find(b"TORCH_CUDNN_SDPA_DEPRIORITIZED") >= 0
