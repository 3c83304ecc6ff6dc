"""The votes of the nearest training pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from models.encoder.model import Encoder
from models.relation.model import RelationModel
from models.relation.support_set import NamedPair, SupportSet
from models.relation.voting import Voting


@pytest.fixture(scope="module")
def support() -> SupportSet:
    """Five pairs at growing angles, with their angle in the first two coordinates."""
    angles = np.array([0.0, 0.2, 0.4, 0.6, 3.0])
    pairs = np.stack([np.cos(angles), np.sin(angles), 0 * angles, 0 * angles], axis=1).astype(np.float32)
    related = np.array([True, False, True, False, True])
    named = [NamedPair(letter, "drug", f"effect {letter}", f"Sentence {letter}.") for letter in "abcde"]
    return SupportSet(pairs, related, named)


@pytest.fixture(scope="module")
def voting(mini: Encoder, support: SupportSet) -> Callable[[Voting], RelationModel]:
    """A model with these votes."""
    projection = np.zeros((mini.dimension, 2), np.float32)
    return lambda own: RelationModel(mini, projection, support, own)


@pytest.fixture(scope="module")
def model(voting: Callable[[Voting], RelationModel]) -> RelationModel:
    return voting(Voting(3))


def test_more_neighbours_than_pairs_are_all_pairs(voting: Callable[[Voting], RelationModel]) -> None:
    ((share, neighbours),) = voting(Voting(100)).vote_on_pairs([np.ones(4, np.float32)])
    assert share == pytest.approx(3 / 5)
    assert len(neighbours) == 5


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


def test_a_neighbour_that_is_too_unlike_the_pair_votes_for_no_relation(
    voting: Callable[[Voting], RelationModel],
) -> None:
    """Related are those at angles 0, 0.4 and 3; the cosine of 0.4 is 0.92."""
    pair = [np.array([1, 0, 0, 0], np.float32)]
    for least, share in ((0.0, 2 / 3), (0.9, 2 / 3), (0.93, 1 / 3), (1.1, 0.0)):
        narrow = voting(Voting(3, least_cosine=least))
        ((found, neighbours),) = narrow.vote_on_pairs(pair)
        assert found == pytest.approx(share)
        assert [n.id for n in neighbours] == ["a", "b", "c"]


def test_neighbours_say_what_they_are_and_the_nearest_three_where_they_stand(
    voting: Callable[[Voting], RelationModel],
) -> None:
    ((_, neighbours),) = voting(Voting(5)).vote_on_pairs([np.array([1, 0, 0, 0], np.float32)])
    assert [(n.drug, n.effect) for n in neighbours] == [("drug", f"effect {x}") for x in "abcde"]
    assert [n.related for n in neighbours] == [True, False, True, False, True]
    assert [n.source for n in neighbours] == ["Sentence a.", "Sentence b.", "Sentence c.", "", ""]


def test_neighbours_are_ordered_nearest_first(model: RelationModel) -> None:
    rng = np.random.default_rng(0)
    for _, neighbours in model.vote_on_pairs(list(rng.normal(size=(20, 4)).astype(np.float32))):
        distances = [n.distance for n in neighbours]
        assert distances == sorted(distances)
        assert len({n.id for n in neighbours}) == 3
