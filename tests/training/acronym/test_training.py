"""The training of m-networks: the trained and the frozen layers, the order of rows, a run that is killed."""

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
from training.acronym.assemble import write_network
from training.acronym.data import read_training, right_first, split_by_acronym
from training.acronym.frozen_states import CHUNK, StateCache, chunked
from training.acronym.prototypes import encode_rows
from training.acronym.settings import Settings
from training.acronym.trainer import AcronymTrainee
from training.common.checkpoint import CheckpointError
from training.common.loop import TrainingLoop
from training.evaluation.acronym import Row


def settings_of(base: str, **changes: Any) -> Settings:
    """Settings of a run on the small corpus."""
    values: dict[str, Any] = {
        "layers": 1,
        "rank": 2,
        "head_lr": 1e-2,
        "epochs": 2,
        "batch": 4,
        "rows": 0,
        "max_pieces": 64,
        "validate": 0,
        "precision": "float32",
    }
    return Settings(base=base, **values | changes)


def parts(folder: Path) -> tuple[list[Row], list[list[Row]]]:
    return split_by_acronym([read_training(folder, "sdu22_scientific")], 0.25, 0)


def trainee_of(base: str, folder: Path, **changes: Any) -> AcronymTrainee:
    return AcronymTrainee(settings_of(base, **changes), *parts(folder))


def loop_of(base: str, folder: Path, run: Path | None = None, **changes: Any) -> TrainingLoop:
    trainee = trainee_of(base, folder, **changes)
    return TrainingLoop(trainee, asdict(trainee.settings), run)


def test_frozen_and_upper_layers_together_give_the_answers_of_the_whole_encoder(
    tiny_bert: str, folder: Path
) -> None:
    trainee = trainee_of(tiny_bert, folder, epochs=0)
    rows = [r for r in trainee.validation if len(r.senses) > 1]
    examples = trainee.cache.examples(rows)
    trainee.validate(0)
    with torch.inference_mode():
        energies = trainee.energies(examples, [e.anchor for e in examples])
    whole = MNetwork(Encoder.load(tiny_bert, max_pieces=64), trainee.head)
    for logits, row in zip(encode_rows(whole, "x", rows).logits, energies, strict=True):
        # The cache keeps 16 bits.
        assert logits == pytest.approx((-row[: len(logits)]).tolist(), abs=0.05)


def test_the_frozen_layers_encode_a_text_once(tiny_bert: str, folder: Path) -> None:
    cache = StateCache(Encoder.load(tiny_bert, max_pieces=64), 1, settings_of(tiny_bert).shape, "float32")
    rows = [right_first(r) for r in parts(folder)[0][:4]]
    first = cache.examples(rows)
    n = len(cache.states)
    assert cache.examples(rows) == first
    assert len(cache.states) == n == len(set(cache.readings))
    assert cache.megabytes() > 0


@pytest.mark.parametrize("rank", [2, 0])
@pytest.mark.parametrize("layers", [1, 0])
def test_only_the_last_layers_and_the_head_are_trained(
    tiny_bert: str, folder: Path, tmp_path: Path, rank: int, layers: int
) -> None:
    trainee = trainee_of(tiny_bert, folder, rank=rank, layers=layers, epochs=1)
    trainee.epoch(1)
    network = write_network(trainee, tmp_path)
    assert (tmp_path / ADAPTER).exists() == bool(rank and layers)
    assert (tmp_path / WEIGHTS).exists() == bool(layers and not rank)
    before = Encoder.load(tiny_bert).model.state_dict()
    after = network.encoder.model.state_dict()
    # A release keeps 16 bits, also of what was not trained.
    changed = {n for n in before if not torch.allclose(before[n], after[n], atol=1e-3)}
    assert bool(changed) == bool(layers)
    assert all(".layer.1." in name for name in changed)


def test_a_share_of_the_adapters_change_is_released(tiny_bert: str, folder: Path, tmp_path: Path) -> None:
    trainee = trainee_of(tiny_bert, folder, rank=2, layers=1, epochs=1)
    trainee.epoch(1)
    weights = [Encoder.load(tiny_bert).model.state_dict()]
    for share in (0.5, 1.0):
        weights.append(write_network(trainee, tmp_path, share).encoder.model.state_dict())
    before, half, whole = weights
    for name in before:
        assert torch.allclose(2 * (half[name] - before[name]), whole[name] - before[name], atol=1e-4)
    assert any(not torch.allclose(before[n], whole[n], atol=1e-3) for n in before)


def test_too_many_trained_layers_are_refused(tiny_bert: str, folder: Path) -> None:
    with pytest.raises(ValueError, match="at most 1 layers"):
        trainee_of(tiny_bert, folder, layers=2)


def test_shared_dropout_takes_the_noise_from_the_first_loss(tiny_bert: str, folder: Path) -> None:
    first = {}
    for shared in (False, True):
        trainee = trainee_of(tiny_bert, folder, objective="m", shared_dropout=shared)
        trainee.training(True)
        examples = trainee.parts.training
        energies = trainee.energies(examples, [e.anchor for e in examples])
        first[shared] = energies[energies.isfinite()].mean().item()
    assert first[True] < 0.5 * first[False]


def test_training_lowers_the_loss(tiny_bert: str, folder: Path) -> None:
    trainee = trainee_of(tiny_bert, folder, epochs=8, lr=1e-2, head_lr=0.1)
    losses = [trainee.epoch(n)["loss"] for n in range(1, 9)]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize(("killed_after", "objective"), [(1, "softmax"), (2, "m")])
def test_a_killed_run_resumes_to_the_same_weights(
    tiny_bert: str, folder: Path, tmp_path: Path, killed_after: int, objective: str
) -> None:
    def fresh(run: Path | None) -> TrainingLoop:
        return loop_of(tiny_bert, folder, run, epochs=3, objective=objective)

    whole = fresh(None)
    curve = [(epoch.losses, epoch.scores) for epoch in whole.epochs()]
    for epoch in fresh(tmp_path).epochs():
        if epoch.number == killed_after:
            break
    torch.manual_seed(99)
    resumed = fresh(tmp_path)
    assert [(epoch.losses, epoch.scores) for epoch in resumed.epochs()] == curve[killed_after:]
    assert [e.kept for e in resumed.curve] == [e.kept for e in whole.curve]
    for one, other in zip(whole.trainee.weights(), resumed.trainee.weights(), strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_finished_run_is_restored_without_encoding_the_texts_again(
    tiny_bert: str, folder: Path, tmp_path: Path
) -> None:
    first = loop_of(tiny_bert, folder, tmp_path)
    first.run()
    again = loop_of(tiny_bert, folder, tmp_path)
    again.run()
    assert isinstance(first.trainee, AcronymTrainee)
    assert isinstance(again.trainee, AcronymTrainee)
    assert not again.trainee.cache.states
    one, other = (trainee.head.state_dict() for trainee in (first.trainee, again.trainee))
    # With the scale of the surface features, which is no parameter.
    assert not torch.equal(one["spread"], torch.ones_like(one["spread"]))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def test_a_run_does_not_resume_with_other_settings(tiny_bert: str, folder: Path, tmp_path: Path) -> None:
    loop_of(tiny_bert, folder, tmp_path).run()
    with pytest.raises(CheckpointError, match="other settings"):
        loop_of(tiny_bert, folder, tmp_path, lr=0.5).run()


def test_the_curve_begins_with_the_untrained_model_and_macro_f1_decides(tiny_bert: str, folder: Path) -> None:
    loop = loop_of(tiny_bert, folder, epochs=1)
    (epoch,) = loop.epochs()
    assert [e.number for e in loop.curve] == [0, 1]
    assert next(iter(epoch.scores)) == "macro_f1"
    assert epoch.scores.keys() == loop.curve[0].scores.keys() == {"macro_f1", "accuracy", "authors_f1"}


def test_rows_of_an_acronym_follow_each_other_and_each_comes_once(tiny_bert: str, folder: Path) -> None:
    trainee = trainee_of(tiny_bert, folder)
    order = trainee.order(random.Random(0))
    assert sorted(order) == list(range(len(trainee.rows)))
    names = [trainee.parts.training[i].acronym for i in order]
    changes = sum(a != b for a, b in itertools.pairwise(names))
    assert changes < len(names) / 2


def test_texts_of_like_length_share_a_pass_that_is_not_too_large() -> None:
    lengths = [1500, 3, 8, 1600, 9, 5000]
    chunks = chunked(lengths)
    assert sorted(i for chunk in chunks for i in chunk) == list(range(6))
    for chunk in chunks:
        assert len(chunk) == 1 or len(chunk) * -(-max(lengths[i] for i in chunk) // 8) * 8 <= CHUNK
    assert [1, 2, 4] in chunks
