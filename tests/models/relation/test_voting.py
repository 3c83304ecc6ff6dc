"""The votes of the nearest training words and training pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.relation.model import RelationModel
from models.relation.pairs import LABELS
from models.relation.spaces import EmbeddingSpaces
from models.relation.support_set import NamedPair, SupportSet
from models.relation.voting import Voting

TAGS = tags_of(LABELS)
B_DRUG, B_ADE = TAGS.index("B-DRUG"), TAGS.index("B-ADE")


@pytest.fixture(scope="module")
def model(mini: Encoder) -> RelationModel:
    """Word vectors in the plane: most of those along x are drugs, those along y are effects; five pairs at
    growing angles, with their angle in the first two coordinates.
    """
    words = np.array([[1, 0], [1, 0.1], [1, -0.1], [0, 1], [0.1, 1], [-0.1, 1]], np.float32)
    tags = np.array([B_DRUG, 0, B_DRUG, B_ADE, B_ADE, B_ADE])
    angles = np.array([0.0, 0.2, 0.4, 0.6, 3.0])
    pairs = np.stack([np.cos(angles), np.sin(angles), 0 * angles, 0 * angles], axis=1).astype(np.float32)
    related = np.array([True, False, True, False, True])
    spaces = EmbeddingSpaces(mini, np.zeros((mini.dimension, 2), np.float32))
    named = [NamedPair(letter, "drug", f"effect {letter}", f"Sentence {letter}.") for letter in "abcde"]
    return RelationModel(spaces, SupportSet(words, tags, pairs, related, named), Voting(3, 3))


def test_a_word_gets_the_most_frequent_tag_of_its_k_nearest_or_of_all(model: RelationModel) -> None:
    tags, shares = model.tag_words(np.array([[5, 0], [0, 2]], np.float32), [2])
    assert tags.tolist() == [B_DRUG, B_ADE]
    assert shares.tolist() == [pytest.approx(2 / 3), 1.0]
    large_k = RelationModel(model.spaces, model.support, Voting(100, 100))
    ((share, neighbours),) = large_k.vote_on_pairs([np.ones(4, np.float32)])
    assert share == pytest.approx(3 / 5)
    assert len(neighbours) == 5
    every, _ = large_k.tag_words(np.ones((1, 2), np.float32), [1])
    assert every.tolist() == [B_ADE]


def test_a_pair_gets_the_share_of_related_neighbours_and_their_ids(model: RelationModel) -> None:
    one, other = model.vote_on_pairs(
        [np.array([1, 0, 0, 0], np.float32), np.array([np.cos(0.5), np.sin(0.5) - 0.05, 0, 0], np.float32)]
    )
    assert one[0] == pytest.approx(2 / 3)
    assert [n.id for n in one[1]] == ["a", "b", "c"]
    assert [n.distance for n in one[1]] == [pytest.approx(1 - np.cos(x), abs=1e-4) for x in (0, 0.2, 0.4)]
    assert other[0] == pytest.approx(1 / 3)
    assert {n.id for n in other[1]} == {"b", "c", "d"}
    assert model.vote_on_pairs([]) == []


def test_a_neighbour_that_is_too_unlike_the_pair_votes_for_no_relation(model: RelationModel) -> None:
    """Related are those at angles 0, 0.4 and 3; the cosine of 0.4 is 0.92."""
    pair = [np.array([1, 0, 0, 0], np.float32)]
    for least, share in ((0.0, 2 / 3), (0.9, 2 / 3), (0.93, 1 / 3), (1.1, 0.0)):
        narrow = RelationModel(model.spaces, model.support, Voting(3, 3, least_cosine=least))
        ((found, neighbours),) = narrow.vote_on_pairs(pair)
        assert found == pytest.approx(share)
        assert [n.id for n in neighbours] == ["a", "b", "c"]


def test_neighbours_say_what_they_are_and_the_nearest_three_where_they_stand(model: RelationModel) -> None:
    wide = RelationModel(model.spaces, model.support, Voting(3, 5))
    ((_, neighbours),) = wide.vote_on_pairs([np.array([1, 0, 0, 0], np.float32)])
    assert [(n.drug, n.effect) for n in neighbours] == [("drug", f"effect {x}") for x in "abcde"]
    assert [n.related for n in neighbours] == [True, False, True, False, True]
    assert [n.source for n in neighbours] == ["Sentence a.", "Sentence b.", "Sentence c.", "", ""]


def test_neighbours_are_ordered_nearest_first(model: RelationModel) -> None:
    rng = np.random.default_rng(0)
    for _, neighbours in model.vote_on_pairs(list(rng.normal(size=(20, 4)).astype(np.float32))):
        distances = [n.distance for n in neighbours]
        assert distances == sorted(distances)
        assert len({n.id for n in neighbours}) == 3


def test_transitions_can_change_a_tag_and_the_share_is_that_of_the_chosen_tag(model: RelationModel) -> None:
    transitions = np.zeros((7, 6), np.float32)
    # The first word of a sentence is never the first word of a drug.
    transitions[-1, B_DRUG] = -1000
    decoding = RelationModel(model.spaces, replace(model.support, transitions=transitions), Voting(3, 3))
    queries = np.array([[5, 0], [5, 0], [5, 0]], np.float32)
    tags, shares = decoding.tag_words(queries, [2, 1])
    assert tags.tolist() == [0, B_DRUG, 0]
    assert shares.tolist() == [pytest.approx(x) for x in (1 / 3, 2 / 3, 1 / 3)]
