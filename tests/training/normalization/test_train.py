"""Training of Dynamic Context Refining and of S_isolated: examples, some epochs, a run that is killed."""

from __future__ import annotations

import copy
import math
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.encoder.added_tokens import extended_embedding
from models.encoder.model import Encoder
from models.encoder.weights import merge_adapter
from models.normalization.context_refining import marker_tokens
from models.terminology import Term
from tests.training.normalization.small_terms import GOLDS, TERMS, gold, settings, trainee_of
from tests.training.resumed import killed_and_resumed
from training.common import UserError
from training.common.adapter import quantized
from training.common.codings.split import Split
from training.common.corpora import GoldCoding
from training.common.loop import TrainingLoop
from training.normalization.data import Phrase, examples, negative, shortened
from training.normalization.isolated import KEPT, TEMPERATURE, PhraseTrainee
from training.normalization.settings import Settings
from training.normalization.train import RefiningTrainee, accuracy


def loop_of(base: str, folder: Path | None = None, **changes: Any) -> TrainingLoop:
    trainee = trainee_of(base, **changes)
    return TrainingLoop(trainee, asdict(trainee.settings), folder)


def trainee_in(loop: TrainingLoop) -> RefiningTrainee:
    assert isinstance(loop.trainee, RefiningTrainee)
    return loop.trainee


def test_an_example_has_its_gold_rows_and_all_rows_of_the_right_term(tiny_bert: str) -> None:
    context = trainee_of(tiny_bert).network.context
    golds = [gold("hurts", "Aches"), gold("x", "unknown"), gold("spots", "rash", sentence="spots")]
    known, alone = examples(golds, TERMS, context)
    assert (known.gold_rows, known.right_rows) == ((5,), (4, 5))
    assert known.pieces is not None
    assert marker_tokens(context)[0] in known.pieces
    assert (alone.pieces, alone.gold_rows) == (None, (6,))


def test_training_lowers_the_loss_and_leaves_the_base_alone(tiny_bert: str) -> None:
    loop = loop_of(tiny_bert, epochs=4, valid=GOLDS)
    network = trainee_in(loop).network
    base = Encoder.load(tiny_bert, max_pieces=32)
    before = {n: p.clone() for n, p in base.model.named_parameters()}
    curve = list(loop.epochs())
    assert len(curve) == 4
    assert min(epoch.loss for epoch in curve[1:]) < curve[0].loss
    assert all(0 < epoch.scores["context weight"] < 1 for epoch in curve)
    assert all(torch.equal(p, before[n]) for n, p in base.model.named_parameters())
    assert all(p.grad is None for p in base.model.parameters())
    assert network.isolated.model is base.model
    assert torch.equal(network.vectors, base.embed([t.llt for t in TERMS]))
    rows = extended_embedding(network.context).rows
    assert not torch.allclose(rows[0], rows[1])


def test_no_gradient_reaches_s_isolated(tiny_bert: str) -> None:
    trainee = trainee_of(tiny_bert)
    network = trainee.network
    data = examples(GOLDS[:4], TERMS, network.context)
    network.context.model.train()
    loss = trainee.loss(list(zip(data, [0, 2, 4, 6], strict=True)), random.Random(1))
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in network.isolated.model.parameters())
    assert not network.isolated.model.training
    assert all(p.grad is not None and p.grad.any() for p in network.refining.parameters())
    assert extended_embedding(network.context).rows.grad is not None
    trained = [n for n, p in network.context.model.named_parameters() if p.grad is not None]
    assert all("encoder.layer." in n or n.endswith(".rows") for n in trained)


def test_a_shortened_mention_keeps_its_code_and_its_place() -> None:
    rng, seen = random.Random(1), set()
    for _ in range(40):
        short = shortened(gold("numb  left hand", "pain", sentence="A numb  left hand woke me"), rng)
        assert short.start is not None and short.terms == ("pain",)
        assert short.sentence[short.start :].startswith(short.mention)
        seen.add(short.mention)
    assert seen == {"numb", "numb  left", "left hand", "hand"}
    assert shortened(gold("numb", "pain"), rng) == gold("numb", "pain")


def test_a_negative_is_of_another_preferred_term(tiny_bert: str) -> None:
    data = examples(GOLDS, TERMS, trainee_of(tiny_bert).network.context)
    rng = random.Random(1)
    for _ in range(5):
        assert not [e for e in data if negative(e, len(TERMS), rng) in e.right_rows]


@pytest.mark.parametrize("killed_after", [1, 2])
def test_a_killed_run_resumes_to_the_same_weights(tiny_bert: str, tmp_path: Path, killed_after: int) -> None:
    def fresh(folder: Path | None) -> TrainingLoop:
        return loop_of(tiny_bert, folder, epochs=3)

    whole, resumed = killed_and_resumed(fresh, tmp_path, killed_after)
    assert torch.equal(trainee_in(whole).network.vectors, trainee_in(resumed).network.vectors)
    assert list(fresh(tmp_path).epochs()) == [], "a finished run trains no more"


@pytest.mark.parametrize("valid", [[], [gold("x", "unknown")]], ids=["empty", "without a known term"])
def test_without_a_validation_part_the_last_epoch_is_kept(tiny_bert: str, valid: list[GoldCoding]) -> None:
    epochs = list(loop_of(tiny_bert, epochs=3, valid=valid).epochs())
    assert [(e.scores, e.kept) for e in epochs] == [({}, False), ({}, False), ({}, True)]


def test_training_needs_a_known_and_a_wrong_term(tiny_bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.training.normalization.small_terms.GOLDS", [gold("x", "unknown")])
    with pytest.raises(UserError, match="both a sentence and a term"):
        trainee_of(tiny_bert, valid=[])
    # A wrong term for a mention would be drawn without end.
    isolated = Encoder.load(tiny_bert, max_pieces=64)
    one = Split([gold("awake", "insomnia")], [], [])
    with pytest.raises(UserError, match="no other preferred term"):
        RefiningTrainee(settings(base=tiny_bert), isolated, TERMS[:2], one)


def test_accuracy_is_over_the_mentions_whose_term_is_known(tiny_bert: str) -> None:
    network = trainee_of(tiny_bert).network
    golds = [gold("pain", "pain", sentence="pain"), gold("x", "unknown")]
    assert accuracy(network.model(), golds) == {"acc@1": 1.0}
    assert accuracy(network.model(), golds[1:]) == {}


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


def test_a_phrase_is_never_its_own_name_and_all_other_names_of_its_term_are_right(tiny_bert: str) -> None:
    one = trainee(tiny_bert, 1)
    names = {one._name(Phrase("insomnia", "Insomnia")) for _ in range(20)}
    assert names == {"sleeplessness"}
    learner = trainee(tiny_bert, 1)
    learner._vectors = torch.eye(4, learner.encoder.dimension)
    words = torch.eye(4, learner.encoder.dimension)[:2]
    name = Phrase("insomnia", "Insomnia", 0)
    pts = np.array([learner._pt_ids["Insomnia"]] * 2)
    own = learner._over_names(words, [name, Phrase("wide awake", "Insomnia")], pts)
    # The first has three names that count, all as far from it, of which one is right; the second is a name.
    expected = (math.log(3) + math.log(1 + 2 / (math.exp(1 / TEMPERATURE) + 1))) / 2
    assert own.item() == pytest.approx(expected, abs=1e-4)


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


def test_the_same_seed_gives_the_same_weights(tiny_bert: str) -> None:
    one, other = trainee(tiny_bert, 2), trainee(tiny_bert, 2)
    for learner in (one, other):
        TrainingLoop(learner, {}).run()
    assert all(
        torch.equal(a[name], b[name])
        for a, b in zip(one.weights(), other.weights(), strict=True)
        for name in a
    )
