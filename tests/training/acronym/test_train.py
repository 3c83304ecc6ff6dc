"""The training of m-networks: anchors, the order of rows, validation, a run that is killed."""

from __future__ import annotations

import itertools
import random
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from models.types import Span
from tests.training.acronym.corpus import rows, trainee_of
from training.acronym.data import sense_of
from training.acronym.settings import Objective
from training.acronym.train import right_first
from training.common.checkpoint import CheckpointError
from training.common.loop import TrainingLoop
from training.evaluation.acronym import Row


def loop_of(
    base: str, run: Path | None = None, objective: Objective = "softmax", lr: float = 0.01
) -> TrainingLoop:
    trainee = trainee_of(base, objective=objective, epochs=3, lr=lr)
    return TrainingLoop(trainee, asdict(trainee.settings), run)


def test_the_right_long_form_comes_first() -> None:
    row = Row("x is here", Span(0, 1), ("a", "b", "c", "d"), "c")
    assert right_first(row).senses == ("c", "a", "b", "d")


def test_the_anchor_of_the_papers_networks_is_one_sentence_of_the_sense(tiny_bert: str) -> None:
    trainee = trainee_of(tiny_bert, objective="m")
    drawn: dict[tuple[str, str], set[str]] = {}
    for row, anchor in zip(trainee.rows, trainee.anchors, strict=True):
        assert anchor.text in {r.text for r in rows() if sense_of(r) == sense_of(row)}
        drawn.setdefault(sense_of(row), set()).add(anchor.text)
    assert {len(texts) for texts in drawn.values()} == {1}
    own = trainee_of(tiny_bert)
    assert [a.text for a in own.anchors] == [row.text for row in own.rows]


def test_training_lowers_the_loss(tiny_bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.acronym.train.BATCH", 4)
    trainee = trainee_of(tiny_bert, epochs=8, lr=0.01)
    losses = [trainee.epoch(n)["loss"] for n in range(1, 9)]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize(("killed_after", "objective"), [(1, "softmax"), (2, "m")])
def test_a_killed_run_resumes_to_the_same_weights(
    tiny_bert: str, tmp_path: Path, killed_after: int, objective: Objective
) -> None:
    whole = loop_of(tiny_bert, None, objective)
    curve = [(epoch.losses, epoch.scores) for epoch in whole.epochs()]
    for epoch in loop_of(tiny_bert, tmp_path, objective).epochs():
        if epoch.number == killed_after:
            break
    torch.manual_seed(99)
    resumed = loop_of(tiny_bert, tmp_path, objective)
    assert [(epoch.losses, epoch.scores) for epoch in resumed.epochs()] == curve[killed_after:]
    assert [e.kept for e in resumed.curve] == [e.kept for e in whole.curve]
    for one, other in zip(whole.trainee.weights(), resumed.trainee.weights(), strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    with pytest.raises(CheckpointError, match="other settings"):
        loop_of(tiny_bert, tmp_path, objective, lr=0.5).run()


def test_the_curve_begins_with_the_untrained_model_and_macro_f1_decides(tiny_bert: str) -> None:
    loop = loop_of(tiny_bert)
    epoch = next(loop.epochs())
    assert [e.number for e in loop.curve] == [0, 1]
    assert next(iter(epoch.scores)) == "macro_f1"
    assert epoch.scores.keys() == loop.curve[0].scores.keys() == {"macro_f1", "accuracy", "authors_f1"}


def test_rows_of_an_acronym_follow_each_other_and_each_comes_once(tiny_bert: str) -> None:
    trainee = trainee_of(tiny_bert)
    order = trainee.order(random.Random(0))
    assert sorted(order) == list(range(len(trainee.rows)))
    names = [trainee.rows[i].short_form for i in order]
    changes = sum(a != b for a, b in itertools.pairwise(names))
    assert changes < len(names) / 2
