"""The network in training: a step, the smoothing, and the key encoder."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.training.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import loop_of, network, trainee_of
from training.summarization.decoder import Search
from training.summarization.network import Encoded, KeyEncoder, pooled


@pytest.mark.parametrize("make", [tiny_seq2seq.bart, tiny_seq2seq.t5])
def test_a_bart_and_a_t5_take_a_step_and_write(make: Callable[[Path], str], tmp_path: Path) -> None:
    trainee = trainee_of(make(tmp_path), lr=1e-2)
    net = trainee.network
    before = {n: p.detach().clone() for n, p in net.model.named_parameters()}
    (epoch,) = loop_of(trainee).epochs()
    assert set(epoch.losses) == {"ce", "simple", "hard"}
    assert all(math.isfinite(v) for v in epoch.losses.values())
    for part in ("encoder", "decoder"):
        assert any(not torch.equal(p, before[n]) for n, p in net.model.named_parameters() if part in n)
    ((written, *_),) = net.decoder(Search(beams=2, longest=6)).write(["is the drug aspirin bad?"])
    assert 0 <= written.score <= 1


def test_the_smoothing_is_that_of_eq_3(tmp_path: Path) -> None:
    net = network(tiny_seq2seq.bart(tmp_path))
    net.model.eval()
    with torch.no_grad():
        loss = net.cross_entropy(net.encode(["tea"]), ["fine"], 0.2)
        labels = net.tokens(["fine"])["input_ids"]
        logs = net.model(**net.tokens(["tea"]), labels=labels).logits[0].log_softmax(-1)
    right = logs.gather(1, labels[0].unsqueeze(1)).squeeze(1)
    others = (logs.sum(1) - right) / (logs.shape[1] - 1)
    assert float(loss) == pytest.approx(float(-(0.8 * right + 0.2 * others).mean()), rel=1e-4)


def test_the_mean_of_states_leaves_padding_out() -> None:
    states = torch.tensor([[[3.0, 0.0], [0.0, 3.0], [9.0, 9.0]], [[0.0, 2.0], [9.0, 9.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    vectors = pooled(Encoded(states, mask))
    assert vectors.flatten().tolist() == pytest.approx([math.sqrt(0.5)] * 2 + [0.0, 1.0])


def test_the_key_encoder_is_a_moving_average_of_what_is_trained(tmp_path: Path) -> None:
    net = network(tiny_seq2seq.bart(tmp_path))
    keys = KeyEncoder(net)
    before = {n: p.clone() for n, p in keys.model.named_parameters()}
    trained = net.encoder_state()
    frozen = next(iter(trained))
    with torch.no_grad():
        for parameter in trained.values():
            parameter.add_(1.0)
    keys.follow({n: p for n, p in net.encoder_state().items() if n != frozen}, 0.9)
    for name, parameter in keys.model.named_parameters():
        change = 0.0 if name == frozen else 0.1
        assert torch.allclose(parameter, before[name] + change, atol=1e-6)
        assert not parameter.requires_grad


def test_a_key_is_the_encoders_vector_whatever_else_is_in_the_batch(tmp_path: Path) -> None:
    net = network(tiny_seq2seq.bart(tmp_path))
    net.model.eval()
    keys = KeyEncoder(net)
    texts = ["is it bad?", "x", "is the drug aspirin bad for the pain?"]
    together = keys(texts)
    assert torch.allclose(together.norm(dim=1), torch.ones(3), atol=1e-5)
    for text, key in zip(texts, together, strict=True):
        assert torch.allclose(keys([text])[0], key, atol=1e-5)
        assert torch.allclose(pooled(net.encode([text]))[0], key, atol=1e-5)
