"""The losses of m-networks by hand, and their training."""

from __future__ import annotations

import itertools
import random
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from models.acronym.m_network import HEAD, MNetwork
from models.encoder.model import Encoder
from models.encoder.weights import WEIGHTS
from models.types import Span
from tests.training.acronym.corpus import rows, trainee_of
from tests.training.resumed import killed_and_resumed
from training.acronym.data import questions, sense_of
from training.acronym.network import MARGINS, loss_of, trained_network
from training.acronym.release import write_network
from training.acronym.settings import Objective, Settings
from training.acronym.train import right_first
from training.common.loop import TrainingLoop
from training.evaluation.acronym import Row


def loop_of(base: str, run: Path | None = None) -> TrainingLoop:
    trainee = trainee_of(base, epochs=3, lr=0.01)
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
    trainee = trainee_of(tiny_bert)
    drawn: dict[tuple[str, str], set[str]] = {}
    for row, anchor in zip(trainee.rows, trainee.anchors, strict=True):
        assert anchor.text in {r.text for r in rows() if sense_of(r) == sense_of(row)}
        drawn.setdefault(sense_of(row), set()).add(anchor.text)
    assert {len(texts) for texts in drawn.values()} == {1}


def test_training_lowers_the_loss(tiny_bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.acronym.train.BATCH", 4)
    trainee = trainee_of(tiny_bert, epochs=8, lr=0.01, shared_dropout=True)
    losses = [trainee.epoch(n)["loss"] for n in range(1, 9)]
    assert losses[-1] < 0.8 * losses[0]


def test_a_killed_run_resumes_to_the_same_weights(tiny_bert: str, tmp_path: Path) -> None:
    killed_and_resumed(lambda folder: loop_of(tiny_bert, folder), tmp_path, 2)


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


@pytest.mark.parametrize("objective", ["triplet", "m"])
def test_a_missing_candidate_gets_no_gradient_and_spoils_none(objective: Objective) -> None:
    energies = torch.tensor([[1.0, 0.9, INF]], requires_grad=True)
    loss_of(energies * 1.0, objective).backward()  # type: ignore[no-untyped-call]
    assert energies.grad is not None
    assert energies.grad[0, 0] > 0 > energies.grad[0, 1]
    assert energies.grad[0, 2] == 0


def test_a_network_in_training_has_the_served_distances(tiny_bert: str) -> None:
    settings = Settings(base=tiny_bert, objective="m", pieces=64, precision="float32")
    trained = trained_network(settings)
    trained.dense.eval()
    served = MNetwork(Encoder.load(tiny_bert, max_pieces=64), trained.dense)
    asked = questions(rows())
    energies = trained.energies(asked, [q.anchor() for q in asked])
    assert energies.requires_grad
    for shares, own in zip(served.scores(asked), energies, strict=True):
        assert shares == pytest.approx((-own[: len(shares)]).softmax(0).tolist(), abs=1e-4)


@pytest.mark.parametrize("shared", [True, False])
def test_the_texts_of_a_question_lose_the_same_numbers_to_dropout_where_that_is_shared(
    tiny_bert: str, shared: bool
) -> None:
    network = trained_network(Settings(base=tiny_bert, objective="m", pieces=64, shared_dropout=shared))
    network.dense.train()
    left = network.dropped(torch.ones(3, 256)) > 0
    assert bool((left == left[:1]).all()) is shared
    assert 0 < left.float().mean() < 1
    network.dense.eval()
    assert bool((network.dropped(torch.ones(3, 256)) == 1).all())


def test_only_the_last_layer_is_trained(tiny_bert: str, tmp_path: Path) -> None:
    trainee = trainee_of(tiny_bert, lr=0.1)
    before = {n: p.clone() for n, p in trainee.network.encoder.model.named_parameters()}
    trainee.epoch(1)
    after = dict(trainee.network.encoder.model.named_parameters())
    changed = [name for name, old in before.items() if not torch.equal(after[name], old)]
    assert changed
    assert all(".layer.1." in name for name in changed)
    write_network(trainee, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {HEAD, WEIGHTS}
