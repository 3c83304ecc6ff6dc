"""The losses of ECL by hand, the queue and the key encoder."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.training.summarization.short_pairs import PAIRS, examples, network, trainee_of
from training.summarization.data import Pair
from training.summarization.ecl.losses import Queue, contrast, with_positive
from training.summarization.networks.network import Encoded, pooled


def unit(*rows: list[float]) -> Tensor:
    return torch.nn.functional.normalize(torch.tensor(rows), dim=-1)


def test_the_contrast_of_a_question_is_that_of_eq_5() -> None:
    query, right = unit([1.0, 0.0], [0.0, 1.0]), unit([1.0, 1.0], [0.0, 1.0])
    wrong = unit([0.0, 1.0], [1.0, 0.0], [-1.0, 0.0])
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    # The second question has no negative and does not count.
    expected = -math.log(math.exp(math.sqrt(0.5) / 0.5) / (math.exp(0.0) + math.exp(-1 / 0.5)))
    assert float(contrast(query, right, wrong, allowed, 0.5)) == pytest.approx(expected, abs=1e-6)
    own = wrong.expand(2, -1, -1)
    assert float(contrast(query, right, own, allowed, 0.5)) == pytest.approx(expected, abs=1e-6)
    assert float(contrast(query, right, wrong, torch.zeros(2, 3, dtype=torch.bool), 0.5)) == 0


def test_the_mean_of_states_leaves_padding_out() -> None:
    states = torch.tensor([[[3.0, 0.0], [0.0, 3.0], [9.0, 9.0]], [[0.0, 2.0], [9.0, 9.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    vectors = pooled(Encoded(states, mask, None))
    assert vectors.flatten().tolist() == pytest.approx([math.sqrt(0.5)] * 2 + [0.0, 1.0])


def test_the_oldest_keys_leave_the_queue() -> None:
    queue = Queue(3)
    queue.put(torch.eye(2), torch.tensor([0, 1]))
    queue.put(2 * torch.eye(2), torch.tensor([2, 3]))
    assert queue.owners.tolist() == [1, 2, 3]
    assert queue.keys.tolist() == [[0, 1], [2, 0], [0, 2]]


def test_a_summary_is_no_negative_of_its_own_question(tiny_bert: str) -> None:
    trainee = trainee_of(tiny_bert, swap=0.0, hard=0.0)
    # The queue holds the batch itself: twice the same summary leaves no negative.
    twice = [PAIRS[0], Pair("other", "what else?", "IS the drug aspirin bad")]
    assert trainee.losses(examples(twice), True)["simple"].item() == 0
    assert trainee.losses(examples(PAIRS[:2]), True)["simple"].item() != 0


def test_a_loss_whose_weight_is_zero_is_not_computed(tiny_bert: str) -> None:
    def names(simple: float, hard: float) -> set[str]:
        trainee = trainee_of(tiny_bert, simple=simple, hard=hard)
        losses = trainee.losses(examples(PAIRS[:2]), True)
        assert (trainee.keys is None) is (simple == hard == 0)
        assert all(bool(torch.isfinite(v)) for v in losses.values())
        return set(losses)

    assert names(1.0, 1.0) == {"ce", "simple", "hard"}
    assert names(0.0, 1.0) == {"ce", "hard"}
    assert names(1.0, 0.0) == {"ce", "simple"}
    assert names(0.0, 0.0) == {"ce"}


def test_hard_negatives_are_the_questions_own_and_never_queued(
    tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainee = trainee_of(tiny_bert, swap=0.0)
    seen: list[tuple[Tensor, Tensor]] = []

    def watched(query: Tensor, right: Tensor, wrong: Tensor, allowed: Tensor) -> Tensor:
        seen.append((wrong, allowed))
        return query.sum() * 0

    monkeypatch.setattr(trainee, "contrast", watched)
    lonely = Pair("none", "is tea fine?", "is tea fine?")
    trainee.losses(examples([PAIRS[0], lonely]), True)
    (queue, _), (wrong, allowed) = seen
    assert queue.shape == (2, 32) == trainee.queue.keys.shape
    # Three drugs are not aspirin; a summary without an entity has no hard negative.
    assert wrong.shape == (2, 3, 32)
    assert allowed.tolist() == [[True] * 3, [False] * 3]
    assert wrong[1].abs().max() == 0
    assert len({tuple(row.tolist()) for row in wrong[0]}) == 3


def test_the_right_summary_can_be_in_the_denominator(tiny_bert: str) -> None:
    query, right, wrong = unit([1.0, 0.0]), unit([1.0, 1.0]), unit([0.0, 1.0])
    trainee = trainee_of(tiny_bert, positive=True)
    near, other = math.exp(math.sqrt(0.5) / 0.07), math.exp(0 / 0.07)
    expected = -math.log(near / (near + other))
    allowed = torch.tensor([[True]])
    assert float(trainee.contrast(query, right, wrong, allowed)) == pytest.approx(expected, abs=1e-6)
    assert float(trainee.contrast(query, right, wrong, ~allowed)) == 0
    own = wrong.unsqueeze(0)
    assert contrast(query, right, *with_positive(right, own, allowed)).item() == pytest.approx(
        expected, abs=1e-6
    )


def test_the_key_encoder_is_a_moving_average_of_what_is_trained(tiny_bert: str) -> None:
    net = network(tiny_bert)
    keys = net.key_encoder()
    before = {n: p.clone() for n, p in keys.model.named_parameters()}
    trained = net.encoder_state()
    assert trained and all("layer.1." in name for name in trained)
    with torch.no_grad():
        for parameter in trained.values():
            parameter.add_(1.0)
    keys.follow(net.encoder_state(), 0.9)
    for name, parameter in keys.model.named_parameters():
        change = 0.1 if name in trained else 0.0
        assert torch.allclose(parameter, before[name] + change, atol=1e-6)
        assert not parameter.requires_grad


def test_a_key_is_the_encoders_vector_whatever_else_is_in_the_batch(tiny_bert: str) -> None:
    net = network(tiny_bert)
    keys = net.key_encoder()
    texts = ["is it bad?", "x", "is the drug aspirin bad for the pain?"]
    together = keys(texts)
    assert torch.allclose(together.norm(dim=1), torch.ones(3), atol=1e-5)
    for text, key in zip(texts, together, strict=True):
        assert torch.allclose(keys([text])[0], key, atol=1e-5)
        assert torch.allclose(pooled(net.encode([text]))[0], key, atol=1e-5)
