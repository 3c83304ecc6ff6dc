"""Training ECL: its losses in an epoch, which epoch is kept, and a run that is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.models.summarization import tiny_seq2seq
from tests.training.resumed import killed_and_resumed
from tests.training.summarization.short_pairs import PAIRS, loop_of, trainee_of
from training.common.loop import TrainingLoop
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
    def fresh(folder: Path | None) -> TrainingLoop:
        return loop_of(trainee_of(bart, epochs=3), folder)

    whole, resumed = (run.trainee for run in killed_and_resumed(fresh, tmp_path, killed_after))
    assert torch.equal(whole.queue.keys, resumed.queue.keys)  # type: ignore[attr-defined]


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
