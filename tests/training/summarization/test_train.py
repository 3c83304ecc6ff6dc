"""Training ECL: its losses in an epoch, which epoch is kept, and a run that is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.models.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import PAIRS, loop_of, trainee_of
from training.common.checkpoint import CheckpointError
from training.summarization import train


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_seq2seq.bart(tmp_path_factory.mktemp("bart"))


def test_without_validation_the_last_epoch_is_kept(bart: str) -> None:
    curve = list(loop_of(trainee_of(bart, epochs=3)).epochs())
    assert [e.kept for e in curve] == [False, False, True]
    assert [set(e.losses) for e in curve] == [{"ce", "simple", "hard"}] * 3
    assert curve[2].losses["ce"] < curve[0].losses["ce"]


@pytest.mark.parametrize("killed_after", [1, 2])
def test_a_killed_run_resumes_to_the_same_weights(bart: str, tmp_path: Path, killed_after: int) -> None:
    whole = trainee_of(bart, epochs=3)
    curve = [e.losses for e in loop_of(whole).epochs()]
    for epoch in loop_of(trainee_of(bart, epochs=3), tmp_path).epochs():
        if epoch.number == killed_after:
            break
    torch.manual_seed(99)
    resumed = trainee_of(bart, epochs=3)
    assert [e.losses for e in loop_of(resumed, tmp_path).epochs()] == curve[killed_after:]
    for one, other in zip(whole.weights(), resumed.weights(), strict=True):
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert torch.equal(whole.queue.keys, resumed.queue.keys)
    with pytest.raises(CheckpointError):
        list(loop_of(trainee_of(bart, epochs=3, hard=0.5), tmp_path).epochs())


def test_the_epoch_with_the_best_score_is_kept(bart: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.3, 0.7, 0.4])
    monkeypatch.setattr(train, "rouge1", lambda *_: next(scores))
    trainee = trainee_of(bart, PAIRS[:1], epochs=3)
    loop = loop_of(trainee)
    weights = [trainee.network.weights() for _ in loop.epochs()]
    assert [e.kept for e in loop.curve] == [True, True, False]
    loop.load_best()
    kept, second, third = (next(iter(w.values())) for w in (trainee.network.weights(), *weights[1:]))
    assert torch.equal(kept, second)
    assert not torch.equal(kept, third)
