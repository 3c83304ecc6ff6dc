"""Training the tagger: a few steps, a run that is killed, and the changes that come out of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer

from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER, merge_adapter
from models.ner.model import NerModel
from models.text import words
from models.types import LABELS
from tests.models import tiny
from tests.training.ner.test_data import SENTENCES, TAGS
from tests.training.resumed import killed_and_resumed
from training.common.loop import TrainingLoop
from training.common.tagging.transitions import WEIGHT
from training.evaluation.relation import split_negatives
from training.ner.data import Corpus, examples, read
from training.ner.settings import Settings
from training.ner.train import TaggerTrainee, counted_transitions


def constant(model: NerModel) -> dict[str, float]:
    return {"posts": 0.5}


def loop_of(
    base: str,
    folder: Path | None = None,
    score: Callable[[NerModel], dict[str, float]] = constant,
    **changes: Any,
) -> TrainingLoop:
    """A run over a few sentences."""
    start = changes.pop("start", None)
    settings = Settings(base=base, precision="float32", **{"batch": 4} | changes)
    data = examples(Corpus(SENTENCES, [], LABELS, None), Encoder.load(base), TAGS)
    return TrainingLoop(TaggerTrainee(settings, data, score, start=start), asdict(settings), folder)


def tagger(loop: TrainingLoop) -> TaggerTrainee:
    assert isinstance(loop.trainee, TaggerTrainee)
    return loop.trainee


@pytest.fixture(scope="module")
def trained() -> tuple[TaggerTrainee, list[float]]:
    """A run of seven epochs of two steps each, and the mean loss of every epoch."""
    loop = loop_of("mini", epochs=7, lr=5e-4)
    return tagger(loop), [epoch.loss for epoch in loop.epochs()]


def test_a_few_steps_lower_the_loss(trained: tuple[TaggerTrainee, list[float]]) -> None:
    _, losses = trained
    assert len(losses) == 7
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("layers", [False, True])
def test_the_papers_first_phase_trains_the_head_alone(tiny_bert: str, layers: bool) -> None:
    loop = loop_of(tiny_bert, epochs=1, layers=layers)
    made = tagger(loop)
    before = {n: p.clone() for n, p in made.encoder.model.named_parameters()}
    weight = made.head.linear.weight.detach().clone()
    next(loop.epochs())
    assert layers != all(torch.equal(p, before[n]) for n, p in made.encoder.model.named_parameters())
    assert not torch.equal(made.head.linear.weight, weight)
    assert not made.head.training
    assert not made.encoder.model.training
    assert (set(made.release_files()) == {"head.safetensors"}) is not layers


@pytest.mark.parametrize(("killed_after", "average"), [(1, 2), (3, 2), (2, 0)])
def test_a_killed_run_resumes_to_the_same_weights(
    tiny_bert: str, tmp_path: Path, killed_after: int, average: int
) -> None:
    def fresh(folder: Path | None) -> TrainingLoop:
        return loop_of(tiny_bert, folder, average=average, epochs=4, lr=1e-3)

    killed_and_resumed(fresh, tmp_path, killed_after)


def test_the_stored_changes_give_the_trained_models_hidden_states(
    mini: Encoder, trained: tuple[TaggerTrainee, list[float]]
) -> None:
    encoder = trained[0].encoder
    tensors = trained[0].release_files()[ADAPTER]
    assert {t.dtype for t in tensors.values()} == {torch.float16, torch.int8}
    merged = copy.deepcopy(mini.model)
    merge_adapter(merged, tensors)
    surfaces = [[t.text[s.start : s.end] for s in words(t.text)] for t in SENTENCES]
    with torch.inference_mode():
        wanted = torch.cat(encoder.word_vectors(surfaces))
        found = torch.cat(Encoder(merged, mini.tokenizer, mini.max_pieces).word_vectors(surfaces))
        plain = torch.cat(mini.word_vectors(surfaces))
    assert (found - wanted).abs().max() < 0.05 * (plain - wanted).abs().max()
    # It is no small change, so that agreement says something.
    assert (plain - wanted).abs().max() > 0.1


def test_without_the_texts_of_the_teaching_corpus_a_run_ends_in_one_line(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.ner.data.marked_texts", lambda *_, **__: [])
    with pytest.raises(typer.BadParameter, match="only in the source tree"):
        read(corpus, Settings(teaching=0.5))


def test_validation_sees_the_weights_that_a_release_holds(tmp_path: Path) -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def score(model: NerModel) -> dict[str, float]:
        seen.append({n: t.clone() for n, t in model.encoder.model.state_dict().items()})
        return {"x": float(len(seen))}

    base = tiny.bert(tmp_path / "base")
    loop = loop_of(base, None, score, epochs=4, average=2, lr=5e-3)
    name, ends = "encoder.layer.0.output.dense.weight", []
    for _ in loop.epochs():
        ends.append(tagger(loop).encoder.model.state_dict()[name].clone())
    loop.load_best()
    stored = copy.deepcopy(Encoder.load(base).model)
    merge_adapter(stored, tagger(loop).release_files()[ADAPTER])
    mean = (ends[-1] + ends[-2]) / 2
    assert all(torch.equal(tensor, seen[-1][n]) for n, tensor in stored.state_dict().items())
    assert (stored.state_dict()[name] - mean).abs().max() < 0.1 * (ends[-1] - ends[-2]).abs().max()


def test_sentences_without_an_event_are_trained_on_and_not_validated(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "negatives" not in read(corpus, Settings())
    assert "negatives" not in read(corpus, Settings(heads=True, corpora="psytar"))
    more = {t.text for t in read(corpus, Settings(heads=True))["negatives"].train}
    monkeypatch.setattr("training.ner.settings.NEGATIVES", 2)
    read_ = read(corpus, Settings(heads=True))
    assert [len(read_["negatives"].train), len(read_["negatives"].valid)] == [2, 0]
    assert not any(t.mentions for t in read_["negatives"].train)
    _, held_out = split_negatives(corpus / "ade", "ade_fold_1")
    assert len(more) > 2
    assert not more & {t.text for t in held_out}


def test_transitions_are_counted_on_the_training_part(corpus: Path) -> None:
    corpora = read(corpus, Settings())
    b, i = TAGS.index("B-ADE"), TAGS.index("I-ADE")
    found = counted_transitions(corpora)
    shares = np.exp(found / WEIGHT)
    assert shares.sum(1) == pytest.approx(np.ones(len(TAGS) + 1))
    assert shares[TAGS.index("O"), i] == shares[-1, i] == shares[TAGS.index("B-DRUG"), i] == 0
    assert 0 < shares[b, i] < 1
    other = {"posts": corpora["posts"]}
    assert not np.array_equal(counted_transitions(other), found)
