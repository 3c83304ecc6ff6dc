"""S_isolated learns lay phrases: what it is taught, that it learns, and that a release holds it."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter
from models.terminology import Term
from tests.training.normalization.small_terms import TERMS
from training.common.adapter import quantized
from training.common.codings.split import Split
from training.common.corpora import GoldCoding
from training.common.loop import TrainingLoop
from training.normalization.phrases.lay import (
    KEPT,
    TEMPERATURE,
    Phrase,
    PhraseTrainee,
    TrainingPhrase,
    distinct,
    entries,
    taught_phrases,
)
from training.teaching.readers import phrases

INSOMNIA = [Term(name, "Insomnia", "Psychiatric disorders") for name in ("Insomnia", "Sleeplessness")]
NAUSEA = [Term(name, "Nausea", "Gastrointestinal disorders") for name in ("Nausea", "Feeling sick")]
DATA = [
    Phrase("wide awake at four", "Insomnia"),
    Phrase("could not sleep", "Insomnia"),
    Phrase("want to throw up", "Nausea"),
    Phrase("queasy all day", "Nausea"),
]


def trainee(base: str, epochs: int) -> PhraseTrainee:
    encoder = Encoder.load(base, max_pieces=32)
    own = Encoder(copy.deepcopy(encoder.model), encoder.tokenizer, encoder.max_pieces)
    valid = [GoldCoding("could not sleep", "", "", ("Insomnia",))]
    return PhraseTrainee(own, [*INSOMNIA, *NAUSEA], DATA, valid, epochs, "float32", 1)


def test_only_phrases_that_are_not_held_out_and_whose_term_is_known_are_taught() -> None:
    psytar = [GoldCoding("Awake!", "", "", ("sleeplessness",)), GoldCoding("odd", "", "", ("unknown",))]
    taught = taught_phrases(Split(psytar, [], []), INSOMNIA)
    assert Phrase("awake!", "Insomnia") in taught
    assert {p.pt for p in taught} == {"Insomnia"} and len(taught) == len(set(taught)) > 5
    held_out = {p.mention.lower() for p in phrases("held_out")}
    assert not held_out & {p.words for p in taught}


def test_a_phrase_is_never_its_own_name(tiny_bert: str) -> None:
    one = trainee(tiny_bert, 1)
    names = {one._name(Phrase("insomnia", "Insomnia")) for _ in range(20)}
    assert names == {"sleeplessness"}


def test_the_loss_falls_and_a_release_holds_what_was_learned(tiny_bert: str) -> None:
    learner = trainee(tiny_bert, 12)
    loop = TrainingLoop(learner, {})
    loop.run()
    assert [e.number for e in loop.curve] == list(range(13))
    losses = [e.loss for e in loop.curve[1:]]
    assert sum(losses[-3:]) < sum(losses[:3])
    base = Encoder.load(tiny_bert, max_pieces=32)
    served = copy.deepcopy(base.model)
    merge_adapter(served, quantized(base.model, learner.kept()))
    texts = [p.words for p in DATA]
    kept = Encoder(learner.kept(), base.tokenizer, 32).embed(texts)
    assert torch.allclose(Encoder(served, base.tokenizer, 32).embed(texts), kept, atol=5e-3)


def test_what_is_kept_lies_between_the_base_and_the_trained_weights(tiny_bert: str) -> None:
    learner = trainee(tiny_bert, 2)
    TrainingLoop(learner, {}).run()
    base, trained, kept = (
        dict(m.named_parameters())
        for m in (Encoder.load(tiny_bert).model, learner.encoder.model, learner.kept())
    )
    moved = [name for name in base if not torch.equal(base[name], trained[name])]
    assert moved and not any("embeddings" in name for name in moved)
    for name in moved:
        change = trained[name] - base[name]
        assert torch.allclose(kept[name] - base[name], KEPT * change, atol=1e-6)


def test_all_names_of_the_right_term_are_right_but_the_one_that_is_learned(tiny_bert: str) -> None:
    learner = trainee(tiny_bert, 1)
    learner._vectors = torch.eye(4, learner.encoder.dimension)
    words = torch.eye(4, learner.encoder.dimension)[:2]
    name = TrainingPhrase("insomnia", "Insomnia", 0)
    pts = np.array([learner._pt_ids["Insomnia"]] * 2)
    own = learner._over_names(words, [name, TrainingPhrase("wide awake", "Insomnia")], pts)
    # The first has three names that count, all as far from it, of which one is right; the second is a name.
    expected = (math.log(3) + math.log(1 + 2 / (math.exp(1 / TEMPERATURE) + 1))) / 2
    assert own.item() == pytest.approx(expected, abs=1e-4)


def test_the_same_seed_gives_the_same_weights(tiny_bert: str) -> None:
    one, other = trainee(tiny_bert, 2), trainee(tiny_bert, 2)
    for learner in (one, other):
        TrainingLoop(learner, {}).run()
    assert all(
        torch.equal(a[name], b[name])
        for a, b in zip(one.weights(), other.weights(), strict=True)
        for name in a
    )


def test_terms_of_the_small_corpus_have_phrases() -> None:
    assert taught_phrases(Split([], [], []), TERMS)


def test_a_phrase_that_is_hardly_another_text_is_not_searched() -> None:
    vectors = normalize(torch.tensor([[1.0, 0.1], [0.0, 1.0], [0.1, 1.0], [1.0, 1.0]]))
    assert distinct(vectors, torch.tensor([[1.0, 0.0]])) == [1, 3]


def test_phrases_that_are_searched_keep_their_term_and_vector(tiny_bert: str) -> None:
    encoder = Encoder.load(tiny_bert, max_pieces=32)
    found = entries(encoder, [*INSOMNIA, *NAUSEA])
    taught = taught_phrases(Split([], [], []), [*INSOMNIA, *NAUSEA])
    assert set(zip(found.texts, found.pts, strict=True)) <= set(taught)
    assert {"Insomnia", "Nausea"} >= set(found.pts) and found.penalty == 0.05
    assert isinstance(found.vectors, torch.Tensor)
    assert torch.allclose(found.vectors, encoder.embed(found.texts), atol=1e-5)
