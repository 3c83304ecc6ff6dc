"""S_isolated learns lay phrases: what it is taught, that it learns, and that a release holds it."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter
from models.terminology import Term
from training.common.adapter import quantized
from training.common.corpora import GoldCoding
from training.common.loop import TrainingLoop
from training.normalization.data import Phrase
from training.normalization.isolated import KEPT, TEMPERATURE, PhraseTrainee
from training.normalization.settings import Settings

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
    settings = Settings(base=base, epochs=epochs, precision="float32", seed=1)
    return PhraseTrainee(own, [*INSOMNIA, *NAUSEA], DATA, valid, settings)


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
    name = Phrase("insomnia", "Insomnia", 0)
    pts = np.array([learner._pt_ids["Insomnia"]] * 2)
    own = learner._over_names(words, [name, Phrase("wide awake", "Insomnia")], pts)
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
