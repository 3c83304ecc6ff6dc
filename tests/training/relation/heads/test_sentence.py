"""The sentence head in training: what it learns from, and that it is stored as it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from models.encoder.model import Encoder
from models.encoder.split.layer_split import SplitEncoder
from models.relation.sentence_head import SENTENCE_ADAPTER, SENTENCE_HEAD
from models.relation.spaces import UPPER_ADAPTER
from models.text import word_texts
from training.relation.data import Corpus, read
from training.relation.heads.sentence import SentenceSpace, taught_texts, texts_of
from training.relation.heads.sentence_scores import best_f1
from training.relation.settings import Settings
from training.teaching.readers import gold_texts

EPOCHS = 30


@pytest.fixture(scope="module")
def settings(tiny_bert: str) -> Settings:
    return Settings(
        base=tiny_bert,
        batch=4,
        sentence_epochs=EPOCHS,
        sentence_lr=2e-3,
        sentence_teaching=0,
        precision="float32",
    )


@pytest.fixture(scope="module")
def texts(corpus: Path) -> Corpus:
    return read(corpus, "ade_fold_1", 42)


@pytest.fixture
def folder(tiny_bert: str, tmp_path: Path) -> Path:
    """A folder with an adapter of the relations' upper layers that changes one weight."""
    parameters = dict(Encoder.load(tiny_bert).model.named_parameters())
    name = next(n for n in parameters if "layer.1." in n and n.endswith("query.weight"))
    changed = {f"{name}.delta": torch.full_like(parameters[name], 1e-3).half()}
    save_file(changed, tmp_path / UPPER_ADAPTER)
    return tmp_path


def test_the_sentence_head_learns_and_is_stored_as_it_is_used(
    settings: Settings, texts: Corpus, folder: Path
) -> None:
    whole = Encoder.load(settings.base)
    below = settings.frozen_layers(whole.model)
    lower = SplitEncoder(whole, below)
    data = texts_of(texts, [], settings), [*texts.valid, *texts.valid_negatives]
    space = SentenceSpace(settings, lower, data, folder)
    losses = [space.epoch(n)["loss"] for n in range(1, EPOCHS + 1)]
    assert losses[-1] < 0.1 < losses[0]
    assert set(space.validate(EPOCHS)) == {"sentence F1"}
    stored = space.save(folder, below)
    assert (folder / SENTENCE_ADAPTER).exists()
    assert (folder / SENTENCE_HEAD).exists()
    found = stored.probabilities(lower.encode([word_texts(t.text) for t in data[0]]))
    space.training(False)
    with torch.no_grad():
        trained = space.logits(space.train).sigmoid().tolist()
    assert found == pytest.approx(trained, abs=0.02)
    n = len(texts.train)
    assert min(found[:n]) > max(found[n:])


def test_the_sentence_head_is_trained_on_the_sentences_in_which_pairs_are_found(
    settings: Settings, texts: Corpus
) -> None:
    chosen = texts_of(texts, texts.negatives[-1:], replace(settings, sentence_negatives=2))
    negatives = [t for t in chosen if not t.mentions]
    assert chosen[: len(texts.train)] == texts.train
    assert len(negatives) == 2
    assert negatives[0] == texts.negatives[-1]
    assert not {t.id for t in chosen} & {t.id for t in [*texts.valid, *texts.valid_negatives]}


def test_it_is_taught_no_sentence_that_is_held_out_and_none_twice(settings: Settings, texts: Corpus) -> None:
    with_all = replace(settings, sentence_teaching=1)
    taught = taught_texts(with_all)
    held_out = {t.text for t in gold_texts("clinical", "held_out")}
    assert taught
    assert not held_out & {t.text for t in taught}
    chosen = texts_of(texts._replace(train=[*texts.train, taught[0]]), [], with_all)
    assert len(chosen) == len({t.id for t in chosen})


def test_the_best_f1_counts_sentences_in_the_proportion_of_the_corpus() -> None:
    events = np.array([True, True, False, False])
    assert best_f1(np.array([2.0, 1.0, 0.0, -1.0]), events) == pytest.approx(1)
    # A sentence without an event counts 3.9, so that at best the first is found alone.
    assert best_f1(np.array([2.0, 0.0, 1.0, -1.0]), events) == pytest.approx(2 / 3)
    assert best_f1(np.zeros(2), np.zeros(2, bool)) == 0.0
