"""The losses of m-networks by hand, and their training."""

from __future__ import annotations

import itertools
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from models.acronym.m_network import MNetwork
from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, WEIGHTS
from models.types import Span
from tests.training.acronym.corpus import rows, trainee_of
from tests.training.resumed import killed_and_resumed
from training.acronym.data import questions, sense_of
from training.acronym.network import MARGINS, loss_of, trained_network
from training.acronym.release import SHARE, write_network
from training.acronym.settings import Objective, Settings
from training.acronym.train import right_first
from training.common.loop import TrainingLoop
from training.evaluation.acronym import Row


def loop_of(base: str, run: Path | None = None, objective: Objective = "softmax") -> TrainingLoop:
    trainee = trainee_of(base, objective=objective, epochs=3, lr=0.01)
    return TrainingLoop(trainee, asdict(trainee.settings), run)


def test_the_right_long_form_and_the_rows_of_an_acronym_are_in_order(tiny_bert: str) -> None:
    row = Row("x is here", Span(0, 1), ("a", "b", "c", "d"), "c")
    assert right_first(row).senses == ("c", "a", "b", "d")
    trainee = trainee_of(tiny_bert)
    order = trainee.order(random.Random(0))
    assert sorted(order) == list(range(len(trainee.rows)))
    names = [trainee.rows[i].short_form for i in order]
    changes = sum(a != b for a, b in itertools.pairwise(names))
    assert changes < len(names) / 2


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
    killed_and_resumed(lambda folder: loop_of(tiny_bert, folder, objective), tmp_path, killed_after)


def test_the_curve_begins_with_the_untrained_model_and_macro_f1_decides(tiny_bert: str) -> None:
    loop = loop_of(tiny_bert)
    epoch = next(loop.epochs())
    assert [e.number for e in loop.curve] == [0, 1]
    assert next(iter(epoch.scores)) == "macro_f1"
    assert epoch.scores.keys() == loop.curve[0].scores.keys() == {"macro_f1", "accuracy", "authors_f1"}


INF = float("inf")


def test_the_losses_are_those_of_the_paper_over_all_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MARGINS, "triplet", 0.4)
    energies = torch.tensor([[1.0, 0.5, 3.0], [2.0, 2.2, INF]])
    # max(0, 1 - 0.5 + 0.4), max(0, 1 - 3 + 0.4), max(0, 2 - 2.2 + 0.4)
    assert loss_of(energies, "triplet").item() == pytest.approx((0.9 + 0 + 0.2) / 3)
    # The nearest negative alone.
    assert loss_of(energies, "m").item() == pytest.approx((0.9 + 0.2) / 2)
    shares = (
        torch.tensor([[-1.0, -0.5, -3.0]]).log_softmax(1)[0, 0],
        torch.tensor([-2.0, -2.2]).log_softmax(0)[0],
    )
    assert loss_of(energies, "softmax").item() == pytest.approx(-sum(s.item() for s in shares) / 2)


@pytest.mark.parametrize("objective", ["triplet", "m", "softmax"])
def test_a_missing_candidate_gets_no_gradient_and_spoils_none(objective: Objective) -> None:
    energies = torch.tensor([[1.0, 0.9, INF]], requires_grad=True)
    loss_of(energies * 1.0, objective).backward()  # type: ignore[no-untyped-call]
    assert energies.grad is not None
    assert energies.grad[0, 0] > 0 > energies.grad[0, 1]
    assert energies.grad[0, 2] == 0


@pytest.mark.parametrize("objective", ["softmax", "m"])
def test_a_network_in_training_has_the_served_energies(tiny_bert: str, objective: Objective) -> None:
    settings = Settings(tiny_bert, objective=objective, pieces=64, precision="float32")
    trained = trained_network(settings)
    served = MNetwork(Encoder.load(tiny_bert, max_pieces=64), trained.head)
    asked = questions(rows())
    energies, _ = trained.energies(asked, [q.anchor() for q in asked])
    assert energies.requires_grad
    for scores, own in zip(served.scores(asked)[0], energies, strict=True):
        assert scores == pytest.approx((-own[: len(scores)]).tolist(), abs=1e-4)


@pytest.mark.parametrize(("objective", "rank"), [("softmax", 2), ("m", 2), ("softmax", 0), ("m", 0)])
def test_only_the_last_layers_are_trained_and_a_share_of_an_adapter_beside_prototypes_is_released(
    tiny_bert: str, tmp_path: Path, objective: Objective, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(share: float) -> dict[str, Any]:
        monkeypatch.setattr("training.acronym.release.SHARE", share)
        after = write_network(trainee, tmp_path).encoder.model.state_dict()
        # A release keeps 16 bits, also of what was not trained.
        return {n: after[n] - before[n] for n in before if not torch.allclose(before[n], after[n], atol=1e-3)}

    before = Encoder.load(tiny_bert).model.state_dict()
    trainee = trainee_of(tiny_bert, objective=objective, rank=rank, lr=0.1)
    assert not change(SHARE)
    trainee.epoch(1)
    half, whole = change(SHARE), change(1.0)
    assert (tmp_path / ADAPTER).exists() == bool(rank)
    assert (tmp_path / WEIGHTS).exists() == (not rank)
    assert whole
    assert all(".layer.1." in name for name in whole)
    shared = 2 if rank and objective == "softmax" else 1
    assert all(torch.allclose(shared * half[n], whole[n], atol=5e-3) for n in half)
