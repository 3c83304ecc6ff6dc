"""The words of the tagger and the pairs of a support set: projected, balanced, condensed."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.ner.decoding import Numbers
from models.relation.support_set import Floats, NamedPair
from models.types import ADE, DRUG
from training.common.corpora import GoldMention, GoldText
from training.common.tagging.transitions import WEIGHT
from training.relation.data import TAGS, UNKNOWN, examples, pair_places
from training.relation.support import (
    ValidationPairs,
    best,
    fit_projection,
    pair_scores,
    with_pairs,
)
from training.relation.tagger import (
    FLOOR,
    balanced,
    condensed,
    decode_tags,
    mention_f1,
    transitions_of,
    voted,
    votes,
)

NUMBERS = np.random.default_rng(7)


def clouds(n: int, tags: int = 3) -> tuple[Floats, Numbers]:
    """Unit vectors around one direction a tag."""
    y = NUMBERS.integers(0, tags, n)
    x = np.eye(8)[y] + NUMBERS.normal(scale=0.25, size=(n, 8))
    return unit(x.astype(np.float32)), y


def test_a_projection_keeps_cosines_and_the_first_of_the_best_is_chosen() -> None:
    x = unit((NUMBERS.normal(size=(200, 3)) @ NUMBERS.normal(size=(3, 16))).astype(np.float32))
    projection = fit_projection(x, 3)
    assert projection.shape == (16, 3)
    assert np.allclose(unit(x @ projection) @ unit(x @ projection).T, x @ x.T, atol=1e-2)
    assert best("k", (7, 3, 9), {7: 0.5, 3: 0.5, 9: 0.4}.__getitem__) == 7
    assert best("k", (7, 3, 9), {7: 0.5, 3: 0.6, 9: 0.6}.__getitem__) == 3


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
    tags = voted(x[rows], y[rows], x, 5).argmax(1)
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


def test_a_word_gets_the_most_frequent_tag_of_its_nearest() -> None:
    assert votes(np.array([[2, 0, 2], [4, 4, 4]]), 6)[:, [0, 2, 4]] == pytest.approx(
        np.array([[1 / 3, 2 / 3, 0], [0, 0, 1]])
    )
    # Most of those along x are drugs, those along y are effects.
    words = np.array([[1, 0], [1, 0.1], [1, -0.1], [0, 1], [0.1, 1], [-0.1, 1]], np.float32)
    shares = voted(words, np.array([2, 0, 2, 4, 4, 4]), np.array([[5, 0], [0, 2]], np.float32), 3)
    assert shares.argmax(1).tolist() == [2, 4]
    # The first word of a sentence is never the first word of a drug.
    transitions = np.zeros((7, 6), np.float32)
    transitions[-1, 2] = -1000
    assert decode_tags(shares[[0, 0, 0]], [2, 1], transitions).tolist() == [0, 2, 0]


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
    found = np.exp(transitions_of([one, one]) / WEIGHT)
    # What may follow a word of none, or begin a sentence: O and two B, each once more than it was seen.
    assert found[o, [o, b]] == pytest.approx([3 / 7, 3 / 7])
    assert found[-1, [o, b]] == pytest.approx([3 / 5, 1 / 5])
    # After B also its own I.
    assert found[b, [o, b, i]] == pytest.approx([1 / 6, 1 / 6, 3 / 6])
    assert found.sum(1) == pytest.approx(np.ones(len(TAGS) + 1))
    for before, tag in ((o, i), (len(TAGS), i), (TAGS.index("B-DRUG"), i), (o, TAGS.index("X"))):
        assert found[before, tag] == 0
    hidden = replace(one, tags=np.array([o, UNKNOWN, b, i, o]))
    assert np.exp(transitions_of([hidden]) / WEIGHT)[o, [o, b]] == pytest.approx([1 / 3, 1 / 3])


NONE = GoldText("neg-1", "no rash", ())


@pytest.fixture
def wide(tiny_bert: str) -> Encoder:
    return Encoder.load(tiny_bert)


TEXT = "Aspirin and clozapine gave rash and severe nausea."
PLACES = ((0, 7, DRUG), (12, 21, DRUG), (27, 31, ADE), (36, 49, ADE))
GOLD = GoldText("ade-1", TEXT, tuple(GoldMention(*place) for place in PLACES), ((0, 2), (1, 2), (1, 3)))


def test_pairs_are_all_drugs_with_all_effects(wide: Encoder) -> None:
    rows, related = pair_places(examples([NONE, GOLD], wide))
    words = ["no", "rash", "Aspirin", "and", "clozapine", "gave", "rash", "and", "severe", "nausea", "."]
    assert {(words[d], words[e]): kind for (d, e), kind in zip(rows, related, strict=True)} == {
        ("Aspirin", "rash"): True,
        ("Aspirin", "nausea"): False,
        ("clozapine", "rash"): True,
        ("clozapine", "nausea"): True,
    }


def test_tags_and_pairs_are_scored(wide: Encoder) -> None:
    data = examples([GOLD, NONE], wide)
    tags = np.concatenate([e.tags for e in data])
    assert mention_f1(tags, data) == 1.0
    tags[-1] = TAGS.index("B-ADE")
    assert mention_f1(tags, data) == pytest.approx(8 / 9)
    assert mention_f1(tags, data, [DRUG]) == 1.0
    assert mention_f1(tags, data, [ADE]) == pytest.approx(4 / 5)
    # The sentence's three right pairs and a wrong one, and the other's one, which counts twice.
    alarm = replace(data[1], unrelated=np.array([[0, 1]]))
    wanted = ValidationPairs([data[0], alarm], 6, 2.0)
    found = pair_scores(np.array([True, True, False, False, True]), wanted)
    assert found == pytest.approx({"corpus F1": 0.4, "precision": 0.5, "recall": 2 / 6})
    assert pair_scores(np.ones(5, bool), wanted) == pytest.approx(
        {"corpus F1": 0.5, "precision": 0.5, "recall": 0.5}
    )


def test_a_neighbour_must_be_so_similar_that_most_relations_and_fewest_false_ones_stay(wide: Encoder) -> None:
    """The pairs of the second sentence are called related by a neighbour that is unlike them."""
    (gold,), (plain,) = examples([GOLD], wide), examples([NONE], wide)
    alarm = replace(plain, unrelated=np.array([[0, 1]]))
    right = replace(gold, unrelated=gold.unrelated[:0])
    own = with_pairs(wide, [right], ValidationPairs([right, alarm], 3, 5.0), {"ade-1": TEXT})
    assert (own.voting.k_pairs, own.voting.threshold) == (5, 0.5)
    assert own.voting.least_cosine > 0
    assert own.support.named == [
        NamedPair("ade-1", drug, effect, TEXT)
        for drug, effect in (("Aspirin", "rash"), ("clozapine", "rash"), ("clozapine", "severe nausea"))
    ]
    assert own.support.pairs.shape == (3, 2 * own.projection.shape[1])
    harmless = with_pairs(wide, [right], ValidationPairs([right], 3, 5.0), {})
    assert harmless.voting.least_cosine == 0
