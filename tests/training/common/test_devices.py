"""What a run does on a GPU, as far as it can be seen without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from models.encoder.weights import merge_adapter
from training.common import precision
from training.common.checkpoint import Checkpoint


class Gpus:
    """GPUs that exist for the generators of torch only."""

    def __init__(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states = [torch.full((4,), n, dtype=torch.uint8) for n in range(number)]
        monkeypatch.setattr(torch.cuda, "is_available", lambda: number > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)
        monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: list(self.states))
        monkeypatch.setattr(torch.cuda, "set_rng_state_all", self.put)

    def put(self, states: list[torch.Tensor]) -> None:
        self.states = states


def test_the_generators_of_the_gpus_are_where_they_were_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = Gpus(2, monkeypatch)
    run = Checkpoint(tmp_path, {"lr": 1})
    run.save({"epoch": 1})
    before, gpus.states = gpus.states, [torch.zeros(4, dtype=torch.uint8)] * 2
    assert Checkpoint(tmp_path, {"lr": 1}).load() == {"epoch": 1}
    assert all(torch.equal(a, b) for a, b in zip(gpus.states, before, strict=True))


@pytest.mark.parametrize("number", [0, 1])
def test_a_run_continues_on_fewer_gpus(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Gpus(2, monkeypatch)
    Checkpoint(tmp_path, {}).save({"epoch": 1})
    other = Gpus(number, monkeypatch)
    own = list(other.states)
    assert Checkpoint(tmp_path, {}).load() == {"epoch": 1}
    assert other.states == own


@pytest.mark.parametrize(("supported", "expected"), [(True, "bfloat16"), (False, "float32")])
def test_a_gpu_computes_in_16_bits(supported: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: supported)
    assert precision.resolved("auto", torch.device("cuda")) == expected
    assert precision.resolved("float32", "cuda") == "float32"


def test_products_on_a_gpu_are_in_16_bits_where_the_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Any, bool]] = []
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype, enabled: asked.append((kind, dtype, enabled)))
    precision.mixed("bfloat16", torch.device("cuda", 1))
    precision.mixed("float32", "cuda")
    assert asked == [("cuda", torch.bfloat16, True), ("cuda", torch.bfloat16, False)]


def test_an_adapter_is_merged_on_the_device_of_the_model() -> None:
    # A tensor without storage refuses to be added to one with it, as one on a GPU does.
    model = torch.nn.Sequential(torch.nn.Linear(4, 3, device="meta"))
    merge_adapter(model, {"0.lora_a": torch.ones(2, 4), "0.lora_b": torch.ones(3, 2)})
    merge_adapter(model, {"0.bias.delta": torch.ones(3)})
    assert model[0].weight.device.type == "meta"
