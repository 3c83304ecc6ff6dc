"""Supports: projected, balanced, condensed, and what pairs they hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.relation.neighbours import FLOOR, Floats, Numbers, SupportSet, decode_tags, votes
from models.types import ADE, DRUG
from training.common.corpora import GoldMention, GoldText
from training.relation.data import TAGS, UNKNOWN, ValidationPairs, examples
from training.relation.knn_scores import Queries, nearest, pair_scores, tag_scores
from training.relation.support_set import (
    MAX_BYTES,
    TRANSITIONS,
    balanced,
    best_k,
    condensed,
    fit_projection,
    pair_rows,
    tensors_of,
    transitions_of,
)

NUMBERS = np.random.default_rng(7)


def clouds(n: int, tags: int = 3) -> tuple[Floats, Numbers]:
    """Unit vectors around one direction a tag."""
    y = NUMBERS.integers(0, tags, n)
    x = np.eye(8)[y] + NUMBERS.normal(scale=0.25, size=(n, 8))
    return unit(x.astype(np.float32)), y


def test_a_projection_keeps_the_cosines_of_what_lies_in_few_directions() -> None:
    x = unit((NUMBERS.normal(size=(200, 3)) @ NUMBERS.normal(size=(3, 16))).astype(np.float32))
    projection = fit_projection(x, 3)
    assert projection.shape == (16, 3)
    assert np.allclose(unit(x @ projection) @ unit(x @ projection).T, x @ x.T, atol=1e-2)


def test_balancing_keeps_every_word_of_a_mention_and_the_words_that_are_near_them() -> None:
    x, y = clouds(300)
    near = int(np.flatnonzero(y == 0)[0])
    x[near] = x[np.flatnonzero(y == 1)[0]]
    rows = balanced(x, y, 20, np.random.default_rng(0))
    assert (y[rows] == 0).sum() == 20
    assert set(np.flatnonzero(y > 0)) <= set(rows)
    assert near in rows
    assert len(balanced(x, y, 10**6, np.random.default_rng(0))) == 300


def test_a_condensed_support_is_small_and_tags_as_all_of_it_does() -> None:
    x, y = clouds(3000)
    rows = condensed(x, y, 200, 5, np.random.default_rng(0))
    assert 190 < len(rows) == len(set(rows)) <= 200
    _, found = nearest(torch.from_numpy(x), torch.from_numpy(x[rows]), 5)
    tags = votes(y[rows][found.numpy()], len(TAGS)).argmax(1)
    assert (tags == y).mean() > 0.98
    assert len(condensed(x, y, 5000, 5, np.random.default_rng(0))) == 3000


def test_words_that_their_neighbours_outvote_are_not_kept() -> None:
    x, y = clouds(600, 2)
    wrong = np.flatnonzero(y == 0)[:20]
    y[wrong] = 1
    rows = condensed(x, y, 560, 5, np.random.default_rng(0))
    assert len(rows) > 500
    assert not set(wrong) & set(rows)
    # Of each tag as large a share as it has.
    assert (y[rows] == 0).mean() == pytest.approx((y == 0).mean(), abs=0.05)


def test_the_papers_k_is_kept_unless_another_is_better() -> None:
    assert best_k({3: 0.5, 7: 0.5, 9: 0.4}, 7) == 7
    assert best_k({3: 0.6, 7: 0.5, 9: 0.6}, 7) == 3


def test_the_decoder_finds_the_most_probable_sequence_of_each_sentence() -> None:
    numbers = np.random.default_rng(0)
    for lengths in ([4, 1, 0, 3], [1], [0], [], [2, 2]):
        shares = numbers.dirichlet([0.5] * 3, sum(lengths)).astype(np.float32).reshape(-1, 3)
        transitions = np.log(numbers.dirichlet([0.5] * 3, 4)).astype(np.float32)
        wanted: list[int] = []
        for own in np.split(shares, np.cumsum(lengths))[: len(lengths)]:
            emitted = np.log(own + FLOOR)
            sums = {
                tags: sum(emitted[i, t] + transitions[(-1, *tags)[i], t] for i, t in enumerate(tags))
                for tags in product(range(3), repeat=len(own))
            }
            best: tuple[int, ...] = max(sums, key=lambda tags: sums[tags])
            wanted += best
        assert decode_tags(shares, lengths, transitions).tolist() == wanted
        assert decode_tags(shares, lengths, None).tolist() == shares.argmax(1).tolist()


def test_transitions_are_counted_within_sentences_and_a_run_has_a_beginning(tiny_bert: str) -> None:
    (one,) = examples(
        [GoldText("x", "Rash and severe nausea.", (GoldMention(9, 22, ADE),))], Encoder.load(tiny_bert)
    )
    o, b, i = (TAGS.index(t) for t in ("O", "B-ADE", "I-ADE"))
    assert one.tags.tolist() == [o, o, b, i, o]
    found = np.exp(transitions_of([one, one]) / TRANSITIONS)
    # What may follow a word of none, or begin a sentence: O and two B, each once more than it was seen.
    assert found[o, [o, b]] == pytest.approx([3 / 7, 3 / 7])
    assert found[-1, [o, b]] == pytest.approx([3 / 5, 1 / 5])
    # After B also its own I.
    assert found[b, [o, b, i]] == pytest.approx([1 / 6, 1 / 6, 3 / 6])
    assert found.sum(1) == pytest.approx(np.ones(len(TAGS) + 1))
    for before, tag in ((o, i), (len(TAGS), i), (TAGS.index("B-DRUG"), i), (o, TAGS.index("X"))):
        assert found[before, tag] == 0
    hidden = replace(one, tags=np.array([o, UNKNOWN, b, i, o]))
    assert np.exp(transitions_of([hidden]) / TRANSITIONS)[o, [o, b]] == pytest.approx([1 / 3, 1 / 3])


@pytest.fixture
def wide(tiny_bert: str) -> Encoder:
    return Encoder.load(tiny_bert)


TEXT = "Aspirin and clozapine gave rash and severe nausea."
GOLD = GoldText(
    "ade-1",
    TEXT,
    (
        GoldMention(0, 7, DRUG),
        GoldMention(12, 21, DRUG),
        GoldMention(27, 31, ADE),
        GoldMention(36, 49, ADE),
    ),
    ((0, 2), (1, 2), (1, 3)),
)


def test_pairs_are_all_drugs_with_all_effects(wide: Encoder) -> None:
    data = examples([GOLD], wide)
    vectors = np.eye(len(data[0].tags), dtype=np.float32)
    pairs = pair_rows(data, [vectors])
    assert dict(zip([r[1:] for r in pairs.rows], pairs.related, strict=True)) == {
        ("Aspirin", "rash"): True,
        ("Aspirin", "nausea"): False,
        ("clozapine", "rash"): True,
        ("clozapine", "nausea"): True,
    }
    surface = ["Aspirin", "and", "clozapine", "gave", "rash", "and", "severe", "nausea", "."]
    for (_, drug, effect), vector in zip(pairs.rows, pairs.vectors, strict=True):
        assert (surface[vector[:9].argmax()], surface[vector[9:].argmax()]) == (drug, effect)


def test_tags_and_pairs_are_scored_by_their_neighbours(wide: Encoder) -> None:
    data = Queries(examples([GOLD], wide), examples([GoldText("neg-1", "no rash", ())], wide))
    tags = torch.from_numpy(np.concatenate([e.tags for e in data.examples]))
    vectors = torch.eye(len(tags))
    own = tag_scores(vectors, tags, vectors, data, [1])[1]
    assert own == {"strict micro F1": 1.0, "macro F1": 1.0, "false effects per 1000": 0.0}
    tags[-1] = TAGS.index("B-ADE")
    assert tag_scores(vectors, tags, vectors, data, [1])[1]["false effects per 1000"] == 1000.0
    related = torch.tensor([True, False, True])
    # The sentence's four pairs, of which three are right, and the other's one, which counts twice.
    asked = replace(data.valid[0], pairs=data.valid[0].pairs, unrelated=data.valid[0].pairs[:1])
    alarm = replace(data.negatives[0], unrelated=np.array([[0, 1]]))
    wanted = ValidationPairs([asked, alarm], 6, 2.0)
    assert wanted.weights().tolist() == [1, 1, 1, 1, 2]
    gold = torch.tensor([True, True, True, False, False])
    queries = torch.eye(3)[[0, 1, 2, 1, 0]]
    found = pair_scores(torch.eye(3), related, queries, gold, wanted, [1, 3])
    # Affirmed are two of the right ones and, by its weight of two, the false alarm.
    assert found[1] == pytest.approx({"corpus F1": 0.4, "precision": 0.5, "recall": 2 / 6})
    # With three neighbours all are.
    assert found[3] == pytest.approx({"corpus F1": 0.5, "precision": 0.5, "recall": 0.5})


def test_a_support_that_is_too_large_is_refused() -> None:
    n = MAX_BYTES // 2 // 64 + 1
    many = SupportSet(
        np.zeros((n, 64), np.float32),
        np.zeros(n, np.int64),
        np.ones((1, 4), np.float32),
        np.ones(1, bool),
        ["ade-1"],
    )
    with pytest.raises(ValueError, match="MB"):
        tensors_of(many, np.zeros((2, 64), np.float32), np.zeros((2, 2), np.float32))
