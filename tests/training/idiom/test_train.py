"""Idiom-aware vectors: their losses by hand, tokens, trained layers, and a run that is killed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from models.encoder.model import Encoder
from models.idiom import LAST, LAST_TWO
from tests.training.idiom.corpus import unit
from tests.training.resumed import assert_same_weights, killed_and_resumed
from training.common.loop import TrainingLoop
from training.evaluation.idiom import PRIMARY, STS, halves, read_pairs
from training.idiom.data import Group, read_groups, split_by_expression
from training.idiom.network import TripletLoss, cosine_change, mean_embeddings, mean_vectors
from training.idiom.settings import Settings
from training.idiom.train import IdiomTrainee

SETTINGS: dict[str, Any] = {
    "pooling": LAST_TWO, "epochs": 2, "rank": 2, "lr": 1e-2, "batch": 4, "distillation": 1.0, "sentences": 0,
    "seed": 1, "precision": "float32",
}  # fmt: skip


def trainee_of(semeval: Path, base: str, **changes: Any) -> IdiomTrainee:
    sts, _ = halves(read_pairs(semeval / "idioms", "EN"))
    settings = Settings(base=base, **SETTINGS | changes)
    groups = read_groups(semeval / "idioms/semeval22_train.csv")
    return IdiomTrainee(settings, *split_by_expression(groups, 0.3, settings.seed), sts)


def loop_of(semeval: Path, base: str, run: Path | None = None, **changes: Any) -> TrainingLoop:
    trainee = trainee_of(semeval, base, **changes)
    return TrainingLoop(trainee, asdict(trainee.settings), run)


def with_scores(
    monkeypatch: pytest.MonkeyPatch, values: Sequence[tuple[float, float]]
) -> list[list[dict[str, torch.Tensor]]]:
    """Replaces validation by given scores on idioms and STS; the weights at each validation."""
    rows, weights = iter(values), []

    def validate(trainee: IdiomTrainee, number: int) -> dict[str, float]:
        weights.append(trainee.weights())
        idiom, sts = next(rows)
        return {PRIMARY: idiom, STS: sts}

    monkeypatch.setattr(IdiomTrainee, "validate", validate)
    return weights


def test_a_tokens_initial_embedding_is_the_mean_of_its_meanings(semeval: Path, tiny_bert: str) -> None:
    for paraphrase, words in ((True, ["nur emoh"]), (False, ["home run"])):
        trainee = trainee_of(semeval, tiny_bert, paraphrase=paraphrase, pooling=LAST)
        embedding = trainee.encoder.model.get_input_embeddings()
        number = trainee.marker.expressions.index("home run")
        pieces = trainee.encoder.tokenizer(words, add_special_tokens=False)["input_ids"]
        expected = torch.stack([embedding.weight[p].mean(0) for p in pieces]).mean(0)
        assert torch.allclose(embedding.rows[number], expected, atol=1e-6)
    assert torch.allclose(
        mean_embeddings(Encoder.load(tiny_bert), [["pain", "drug"]])[0],
        Encoder.load(tiny_bert).model.get_input_embeddings().weight[[5, 6]].mean(0),
    )


@pytest.mark.parametrize("pooling", [LAST, LAST_TWO])
def test_training_pools_as_the_release_does(semeval: Path, tiny_bert: str, pooling: str) -> None:
    encoder = trainee_of(semeval, tiny_bert, pooling=pooling).encoder
    texts = ["the pain", "a IDhomerunID", "x" * 50, "pain"]
    with torch.inference_mode():
        vectors = torch.nn.functional.normalize(mean_vectors(encoder, texts), dim=-1)
    assert torch.allclose(vectors, encoder.embed(texts), atol=1e-5)


def test_no_sentence_of_a_held_out_written_idiom_is_trained_on(semeval: Path, tiny_bert: str) -> None:
    trained = [Group("cold feet", f"cold feet {n}", False, ["fear"], ["chilly toes"]) for n in range(3)]
    held_out = [Group("hot head", f"hot head {n}", False, ["anger"], ["warm skull"]) for n in range(3)]
    trainee = IdiomTrainee(Settings(base=tiny_bert, **SETTINGS), trained, held_out, sts=[])
    sentences = {f"IDcoldfeetID {n}" for n in range(3)}
    assert {row.text for row in trainee.data} == {*sentences, "fear", "chilly toes"}
    assert {pair.first for pair in trainee.validation} == {g.sentence for g in held_out}


def test_the_loss_that_keeps_cosines_is_zero_before_training(semeval: Path, tiny_bert: str) -> None:
    losses = [
        (trainee := trainee_of(semeval, tiny_bert, distillation=weight)).loss(trainee.data).item()
        for weight in (0.0, 100.0)
    ]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)


def test_at_most_so_many_sentences_are_trained_on(semeval: Path, tiny_bert: str) -> None:
    assert len({row.group for row in trainee_of(semeval, tiny_bert, limit=2).data}) == 2


@pytest.mark.parametrize("rank", [2, 0])
def test_killed_run_resumes_to_same_weights(semeval: Path, tiny_bert: str, tmp_path: Path, rank: int) -> None:
    killed_and_resumed(lambda folder: loop_of(semeval, tiny_bert, folder, rank=rank), tmp_path, 1)


def test_the_best_epoch_is_kept_among_those_that_lose_little_sts(
    semeval: Path, tiny_bert: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = with_scores(monkeypatch, [(0.1, 0.8), (0.6, 0.74), (0.3, 0.76), (0.2, 0.9)])
    loop = loop_of(semeval, tiny_bert, epochs=3)
    loop.run()
    assert_same_weights(loop.kept or [], weights[2])
    assert_same_weights(loop.trainee.weights(), weights[2])
    printed = capsys.readouterr().out
    assert printed.count("kept") == 2, "the untrained model, then an epoch that is better"
    assert printed.count("loses too much STS") == 1


def test_an_epoch_must_be_better_than_the_untrained_model(
    semeval: Path, tiny_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = with_scores(monkeypatch, [(0.5, 0.8), (0.5, 0.8), (0.4, 0.8)])
    loop = loop_of(semeval, tiny_bert)
    loop.run()
    assert [epoch.kept for epoch in loop.curve] == [True, False, False]
    assert_same_weights(loop.trainee.weights(), weights[0])


def mined_triplet_loss(vectors: torch.Tensor, labels: torch.Tensor, mined: float = 0.4) -> float:
    """The paper's two steps, triplet by triplet."""
    cosines = torch.cosine_similarity(vectors.unsqueeze(0), vectors.unsqueeze(1), dim=-1)
    rows = range(len(labels))
    gaps = [
        (cosines[a, p] - cosines[a, n]).item()
        for a, p, n in itertools.product(rows, rows, rows)
        if a != p and labels[a] == labels[p] != labels[n]
    ]
    terms = [0.3 - gap for gap in gaps if gap < mined and gap < 0.3]
    return sum(terms) / len(terms)


def test_the_triplet_loss_and_the_cosine_change_are_those_computed_by_hand() -> None:
    # Cosines: S-c 0.8660 (30 degrees), S-i 0.9397 (20), c-i 0.9848 (10), S-o 0 (90), c-o 0.5 (60).
    vectors = 3 * torch.tensor([unit(0), unit(30), unit(20), unit(90)])
    labels = torch.tensor([0, 0, 1, 2])
    cos = {d: math.cos(math.radians(d)) for d in (10, 20, 30)}
    # Mined are (0, 1, 2), (1, 0, 2) and (1, 0, 3); of the last, 0.366 is above the margin: its term is zero.
    expected = ((cos[20] - cos[30] + 0.3) + (cos[10] - cos[30] + 0.3)) / 2
    assert TripletLoss()(vectors, labels).item() == pytest.approx(expected, abs=1e-6)
    assert mined_triplet_loss(vectors, labels) == pytest.approx(expected, abs=1e-6)
    for seed in range(20):
        drawn = torch.randn((12, 4), generator=torch.Generator().manual_seed(seed))
        groups = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 5, 6])
        assert TripletLoss()(drawn, groups).item() == pytest.approx(
            mined_triplet_loss(drawn, groups), abs=1e-5
        )
    turned = torch.tensor([unit(0), unit(0), unit(90)], requires_grad=True)
    loss = TripletLoss()(turned, torch.tensor([0, 0, 1]))
    assert loss.item() == 0
    loss.backward()  # type: ignore[no-untyped-call]
    before = torch.tensor([unit(0), unit(20), unit(90)])
    turned = 2 * torch.tensor([unit(0), unit(50), unit(90)])
    groups = torch.tensor([0, 0, 1])
    # Of the two pairs of different groups one has changed, from 70 to 40 degrees.
    change = (math.cos(math.radians(40)) - math.cos(math.radians(70))) ** 2 / 2
    assert cosine_change(turned, before, groups).item() == pytest.approx(change, abs=1e-6)
    assert cosine_change(turned, before, torch.zeros(3)).item() == 0
