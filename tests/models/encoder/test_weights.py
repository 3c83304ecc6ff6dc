"""Weights of a base model: shared without an adapter, changed by an adapter that fits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from models.encoder.base_files import base_digest
from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter


def test_encoders_without_an_adapter_share_their_weights(tiny_bert: str) -> None:
    assert Encoder.load(tiny_bert).model is Encoder.load(tiny_bert, max_pieces=16).model


def test_the_digest_of_a_base_is_a_sha256_that_differs_between_bases(
    tiny_bert: str, tiny_roberta: str
) -> None:
    assert len(base_digest("mini")) == 64
    assert len({base_digest("mini"), base_digest(tiny_bert), base_digest(tiny_roberta)}) == 3


def layers() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 5))


def values(model: nn.Module) -> dict[str, Tensor]:
    return dict(model.state_dict())


def test_merging_adds_b_times_a_to_the_weights_of_the_named_layers_only() -> None:
    model, before = layers(), values(layers())
    a, b = torch.randn(2, 3).half(), torch.randn(5, 2).half()
    merge_adapter(model, {"2.lora_a": a, "2.lora_b": b})
    after = values(model)
    assert torch.allclose(after["2.weight"], before["2.weight"] + b.float() @ a.float())
    assert [name for name in before if not torch.equal(before[name], after[name])] == ["2.weight"]


Change = Callable[[dict[str, Tensor]], dict[str, Tensor]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {"0.lora_a": t["0.lora_a"]}, "pairs"),
        (lambda t: t | {"2.lora_a": torch.ones(2, 3)}, "pairs"),
        (lambda t: t | {"0.bias": torch.ones(3)}, "pairs"),
        (lambda t: t | {"0.other": torch.ones(3, 2)}, "adapter"),
        (lambda t: {"0.lora_a": torch.ones(4), "0.lora_b": torch.ones(3)}, "adapter"),
        (lambda t: {n.replace("0.", "7."): v for n, v in t.items()}, "no linear layer"),
        (lambda t: {n.replace("0.", "1."): v for n, v in t.items()}, "no linear layer"),
        (lambda t: t | {"0.lora_a": torch.ones(2, 5)}, "shapes"),
        (lambda t: t | {"0.lora_b": torch.ones(5, 2)}, "shapes"),
        (lambda t: t | {"0.lora_b": torch.ones(3, 4)}, "shapes"),
        (lambda t: {n: v.T for n, v in t.items()}, "shapes"),
    ],
)
def test_an_adapter_that_does_not_fit_the_model_is_refused(change: Change, message: str) -> None:
    fitting = {"0.lora_a": torch.ones(2, 4), "0.lora_b": torch.ones(3, 2)}
    merge_adapter(layers(), fitting)
    with pytest.raises(ValueError, match=message):
        merge_adapter(layers(), change(fitting))


def test_deltas_are_added_row_by_row_and_beside_low_rank_pairs() -> None:
    model, before = layers(), values(layers())
    steps, scale = torch.tensor([[1, -127, 0]] * 5, dtype=torch.int8), torch.tensor([0.5, 1, 2, 0, 4]).half()
    a, b = torch.randn(2, 3).half(), torch.randn(5, 2).half()
    norm = torch.tensor([1.0, 0.0, -1.0]).half()
    merge_adapter(
        model,
        {
            "2.weight.delta": steps,
            "2.weight.scale": scale,
            "1.bias.delta": norm,
            "2.lora_a": a,
            "2.lora_b": b,
        },
    )
    after = values(model)
    added = scale.float()[:, None] * steps.float() + b.float() @ a.float()
    assert torch.allclose(after["2.weight"], before["2.weight"] + added)
    assert torch.equal(after["1.bias"], before["1.bias"] + norm.float())
    assert [n for n in before if not torch.equal(before[n], after[n])] == ["1.bias", "2.weight"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {"2.weight.delta": t["2.weight.delta"]}, "a scale"),
        (lambda t: {"2.weight.scale": t["2.weight.scale"]}, "a scale"),
        (lambda t: t | {"1.bias.delta": torch.zeros(3), "1.bias.scale": torch.ones(3)}, "a scale"),
        (lambda t: {n.replace("2.", "7."): v for n, v in t.items()}, "no parameter"),
        (lambda t: t | {"2.weight.scale": torch.ones(3)}, "shapes"),
        (lambda t: t | {"2.weight.delta": torch.ones(3, 5, dtype=torch.int8)}, "shapes"),
    ],
)
def test_a_delta_that_does_not_fit_the_model_is_refused(change: Change, message: str) -> None:
    fitting = {"2.weight.delta": torch.ones(5, 3, dtype=torch.int8), "2.weight.scale": torch.ones(5)}
    merge_adapter(layers(), fitting)
    with pytest.raises(ValueError, match=message):
        merge_adapter(layers(), change(fitting))
