"""The spaces of CLNER, CLDR and CLGS in training, on a tiny base."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.types import ADE, DRUG
from tests.training.recipes.runs import settings_of
from training.common.adapter import trained_state
from training.common.corpora import GoldMention, GoldText
from training.common.loop import TrainingLoop
from training.relation.cldr import PairSpace, candidates, with_wrong_pairs
from training.relation.clgs import GraphSpace, graph_of
from training.relation.clner import EntitySpace
from training.relation.data import Corpus, examples, pair_places, paired, read
from training.relation.settings import Settings
from training.relation.support import ValidationPairs


@pytest.fixture(scope="module")
def settings(tiny_bert: str) -> Settings:
    """Without heads and averages."""
    own: Settings = settings_of(
        "relation", base=tiny_bert, epochs=2, average=0, negatives=4, teaching=0.0, batch=4, heads=False,
        precision="float32",
    )  # fmt: skip
    return own


@pytest.fixture(scope="module")
def texts(corpus: Path, settings: Settings) -> Corpus:
    return read(corpus, asdict(settings))


def test_clner_brings_words_of_a_tag_together(settings: Settings, texts: Corpus) -> None:
    space = EntitySpace(settings, texts)

    def loss() -> float:
        with torch.no_grad():
            return float(space.loss(space.train, torch.Generator().manual_seed(1)))

    before = loss()
    first = space.epoch(1)
    space.epoch(2)
    assert loss() < before
    assert first["loss"] > 0
    assert set(space.validate()) == {"strict micro F1"}
    names = set(trained_state(space.encoder.model))
    assert names
    assert all("embeddings" not in n and "pooler" not in n for n in names)


def test_clner_keeps_the_mean_and_goes_on_from_its_own_weights(settings: Settings, texts: Corpus) -> None:
    space = EntitySpace(replace(settings, average=2, epochs=3, heads=True), texts)
    ends = []
    for number in (1, 2, 3):
        space.epoch(number)
        space.validate(number)
        ends.append(space.weights())
    for module, kept in enumerate(space.kept_weights()):
        assert kept
        for name, tensor in kept.items():
            assert torch.allclose(tensor, (ends[1][module][name] + ends[2][module][name]) / 2)
            assert torch.equal(space.weights()[module][name], ends[2][module][name])
    scored = space.validate(3)
    space.load_weights(space.kept_weights())
    assert scored == space.scores()


def test_a_killed_run_has_the_mean_of_a_whole_one(settings: Settings, texts: Corpus, tmp_path: Path) -> None:
    own = replace(settings, average=2, epochs=3)
    whole = TrainingLoop(EntitySpace(own, texts), asdict(own))
    whole.run()
    stopped = TrainingLoop(EntitySpace(own, texts), asdict(own), tmp_path)
    next(stopped.epochs())
    resumed = TrainingLoop(EntitySpace(own, texts), asdict(own), tmp_path)
    resumed.run()
    assert whole.kept is not None
    assert resumed.kept is not None
    for one, other in zip(whole.kept, resumed.kept, strict=True):
        assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)


def test_heads_have_losses_that_the_paper_has_not(settings: Settings, texts: Corpus) -> None:
    paper, space = EntitySpace(settings, texts), EntitySpace(replace(settings, heads=True), texts)
    assert len(space.modules()) == len(paper.modules()) + 2
    data, losses = space.train + space.negatives, []
    for own in (paper, space):
        losses.append(float(own.loss(data, torch.Generator().manual_seed(1)).detach()))
    assert losses[1] > losses[0]


def test_rates_fall_for_averaged_weights_or_a_run_ends_early(settings: Settings, texts: Corpus) -> None:
    rates = []
    for average in (0, 2):
        space = EntitySpace(replace(settings, average=average, epochs=3), texts)
        assert space.patience == (0 if average else 3)
        space.epoch(1)
        rates.append([group["lr"] for group in space.optimizer.param_groups])
    assert rates[0] == [settings.lr, settings.head_lr]
    assert all(fallen < rate for fallen, rate in zip(rates[1], rates[0], strict=True))


def pair_space(
    settings: Settings, texts: Corpus, kind: type[PairSpace] | type[GraphSpace]
) -> PairSpace | GraphSpace:
    encoder = Encoder.load(settings.base)
    train, valid = examples(texts.train, encoder), examples(texts.valid, encoder)
    if kind is GraphSpace:
        return GraphSpace(settings, encoder, train, valid)
    return PairSpace(settings, encoder, train, ValidationPairs(valid, len(valid), 1.0))


def test_cldr_trains_the_upper_half_and_the_graph(settings: Settings, texts: Corpus) -> None:
    space = pair_space(settings, texts, PairSpace)
    before = [trained_state(m) for m in space.modules()]
    lower = Encoder.load(settings.base)

    def loss() -> float:
        with torch.no_grad():
            return float(space.loss(space.train, torch.Generator().manual_seed(1)))

    first = loss()
    space.epoch(1)
    space.epoch(2)
    assert loss() < first
    after = [trained_state(m) for m in space.modules()]
    assert all(".layer.1." in n for n in before[0])
    assert set(before[1]) == {"weight"}
    assert all(not torch.equal(b[n], a[n]) for b, a in zip(before, after, strict=True) for n in b)
    # Nothing of the initial encoder, which others share, has moved.
    same = Encoder.load(settings.base)
    assert lower.model is same.model
    assert set(space.validate()) == {"corpus F1", "precision", "recall"}


def test_only_the_upper_half_has_dropout(settings: Settings, texts: Corpus) -> None:
    space = pair_space(settings, texts, PairSpace)
    for on in (True, False):
        space.training(on)
        modes = {name: module.training for name, module in space.encoder.model.named_modules()}
        assert {n for n, mode in modes.items() if mode} == {n for n in modes if on and ".layer.1" in n}
    assert np.allclose(space.vectors(space.train), space.nodes(space.train), atol=1e-5)


def test_what_is_found_without_events_is_pushed_from_related(settings: Settings, texts: Corpus) -> None:
    encoder = Encoder.load(settings.base)
    train, negative = examples(texts.train, encoder), examples(texts.negatives, encoder)
    assert all(e.gold.text.index(" was given") for e in negative)
    mentions = [[(0, e.gold.text.index(" was given"), DRUG), (0, len(e.gold.text), ADE)] for e in negative]
    false = [paired(e, m) for e, m in zip(negative, mentions, strict=True)]
    assert all(e.unrelated.tolist() == [[0, len(e.tags) - 1]] for e in false)
    long = replace(settings, lr=2e-3, epochs=12, heads=True)
    space = PairSpace(long, encoder, train + false, ValidationPairs(train + false, len(train), 1.0))
    assert len(space.train) == len(train) + len(false)

    def apart() -> float:
        """How much nearer related pairs are to each other than to those that are not."""
        pairs, related = space.pairs(space.train)
        cosines = unit(pairs) @ pairs[related > 0].mean(0)
        return float(cosines[related > 0].mean() - cosines[related == 0].mean())

    space.training(False)
    before = apart()
    for n in range(12):
        space.epoch(n)
    assert apart() > before
    paper = PairSpace(settings, encoder, train + false, space.valid)
    assert len(paper.train) == len(train)


def test_a_batch_without_a_relation_has_no_loss_that_is_no_number(settings: Settings, texts: Corpus) -> None:
    encoder = Encoder.load(settings.base)
    train = examples(texts.train, encoder)
    false = replace(train[0], pairs=train[0].pairs[:0], unrelated=train[0].pairs)
    own = replace(settings, heads=True)
    space = PairSpace(own, encoder, [*train, false], ValidationPairs([], 1, 1.0))
    assert float(space.loss([false], torch.Generator().manual_seed(1)).detach()) == 0.0


def test_hard_negatives_keep_a_side_and_mention_no_other(texts: Corpus, settings: Settings) -> None:
    data = examples(texts.train, Encoder.load(settings.base))
    generator = torch.Generator().manual_seed(1)
    for e in data:
        chosen = candidates(e, 8, generator)
        assert not torch.equal(chosen, candidates(e, 8, generator)), "they are drawn anew"
        assert chosen.shape == (len(e.pairs), 9, 2)
        for row in chosen.tolist():
            drug, effect = row[0]
            assert [drug, effect] in e.pairs.tolist()
            assert all(d == drug and w not in (drug, effect) and e.wrong[1, w] for d, w in row[1:5])
            assert all(f == effect and w not in (drug, effect) and e.wrong[0, w] for w, f in row[5:])


def test_without_negatives_each_relation_has_two_wrong_pairs(texts: Corpus, settings: Settings) -> None:
    data = examples(texts.train, Encoder.load(settings.base))
    drawn = with_wrong_pairs(data, 42)
    rows, related = pair_places(drawn)
    assert (~related).sum() == 2 * related.sum() == 2 * sum(len(e.pairs) for e in data)
    assert len({tuple(row) for row in rows.tolist()}) == len(rows)


def test_a_sentence_of_nothing_but_its_mentions_has_no_hard_negatives(settings: Settings) -> None:
    bare = GoldText("ade-1", "Clozapine rash", (GoldMention(0, 9, DRUG), GoldMention(10, 14, ADE)), ((0, 1),))
    (one,) = examples([bare], Encoder.load(settings.base))
    assert candidates(one, 8, torch.Generator()).shape == (0, 9, 2)


def test_clgs_graphs_have_the_words_of_all_relations_or_wrong_ones_of_one_kind(settings: Settings) -> None:
    text = "Aspirin and clozapine gave rash."
    mentions = (GoldMention(0, 7, DRUG), GoldMention(12, 21, DRUG), GoldMention(27, 31, ADE))
    (one,) = examples([GoldText("ade-1", text, mentions, ((0, 2), (1, 2)))], Encoder.load(settings.base))
    nodes, edges = graph_of(one, 8, torch.Generator().manual_seed(1))
    assert edges.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    right, *wrong = nodes.tolist()
    assert right == [0, 2, 4]
    assert all(row[:2] == [0, 2] and row[2] != 4 for row in wrong[:4])
    assert all(row[2] == 4 and not {0, 2} & set(row[:2]) for row in wrong[4:])


def test_clgs_learns_to_pick_the_right_graph(settings: Settings, texts: Corpus) -> None:
    space = pair_space(replace(settings, lr=2e-3, epochs=40), texts, GraphSpace)
    assert isinstance(space, GraphSpace)
    before = space.similarity_check(space.train)
    for n in range(40):
        space.epoch(n)
    assert 0 <= before < space.similarity_check(space.train) <= 1
