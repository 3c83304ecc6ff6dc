"""The losses of ECL by hand, the queue and the hard negatives of a batch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.training.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import PAIRS, trainee_of
from training.summarization import train
from training.summarization.data import Pair
from training.summarization.losses import Queue, contrast


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_seq2seq.bart(tmp_path_factory.mktemp("bart"))


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


def test_the_oldest_keys_leave_the_queue() -> None:
    queue = Queue(3)
    queue.put(torch.eye(2), torch.tensor([0, 1]))
    queue.put(2 * torch.eye(2), torch.tensor([2, 3]))
    assert queue.owners.tolist() == [1, 2, 3]
    assert queue.keys.tolist() == [[0, 1], [2, 0], [0, 2]]


def test_a_summary_is_no_negative_of_its_own_question(bart: str) -> None:
    trainee = trainee_of(bart, hard=0.0)
    # The queue holds the batch itself: twice the same summary leaves no negative.
    twice = [PAIRS[0], Pair("other", "what else?", "IS the drug aspirin bad")]
    assert trainee.losses(twice)["simple"].item() == 0
    assert trainee.losses(PAIRS[:2])["simple"].item() != 0


@pytest.mark.parametrize(
    ("simple", "hard", "names"),
    [(1.0, 1.0, {"simple", "hard"}), (0.0, 1.0, {"hard"}), (1.0, 0.0, {"simple"}), (0.0, 0.0, set())],
)
def test_a_loss_of_weight_0_is_not_computed(bart: str, simple: float, hard: float, names: set[str]) -> None:
    trainee = trainee_of(bart, simple=simple, hard=hard)
    losses = trainee.losses(PAIRS[:2])
    assert set(losses) == {"ce", *names}
    assert (trainee.keys is None) is (names == set())
    assert all(bool(torch.isfinite(v)) for v in losses.values())


def test_hard_negatives_are_a_questions_own_never_queued(bart: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trainee = trainee_of(bart)
    seen: list[tuple[Tensor, Tensor]] = []

    def watched(query: Tensor, right: Tensor, wrong: Tensor, allowed: Tensor) -> Tensor:
        seen.append((wrong, allowed))
        return query.sum() * 0

    monkeypatch.setattr(train, "contrast", watched)
    lonely = Pair("none", "is tea fine?", "is tea fine?")
    trainee.losses([PAIRS[0], lonely])
    (queue, _), (wrong, allowed) = seen
    assert queue.shape == (2, 16) == trainee.queue.keys.shape
    # Three drugs are not aspirin; a summary without an entity has no hard negative.
    assert wrong.shape == (2, 3, 16)
    assert allowed.tolist() == [[True] * 3, [False] * 3]
    assert wrong[1].abs().max() == 0
    assert len({tuple(row.tolist()) for row in wrong[0]}) == 3
