"""Training ECL: its losses in an epoch, which epoch is kept, and a run that is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.training.resumed import killed_and_resumed
from tests.training.summarization import tiny_seq2seq
from tests.training.summarization.short_pairs import loop_of, trainee_of
from training.common.loop import TrainingLoop


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_seq2seq.bart(tmp_path_factory.mktemp("bart"))


def test_without_validation_the_last_epoch_is_kept(bart: str) -> None:
    curve = list(loop_of(trainee_of(bart, epochs=3)).epochs())
    assert [e.kept for e in curve] == [False, False, True]
    assert [set(e.losses) for e in curve] == [{"ce", "simple", "hard"}] * 3
    assert curve[2].losses["ce"] < curve[0].losses["ce"]


def test_a_killed_run_resumes_to_the_same_weights(bart: str, tmp_path: Path) -> None:
    def fresh(folder: Path | None) -> TrainingLoop:
        return loop_of(trainee_of(bart, epochs=3), folder)

    whole, resumed = (run.trainee for run in killed_and_resumed(fresh, tmp_path, 2))
    assert torch.equal(whole.queue.keys, resumed.queue.keys)  # type: ignore[attr-defined]
