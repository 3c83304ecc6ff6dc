"""Relations by nearest neighbours, with a support small enough to read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.drugs import DrugLexicon
from models.encoder.layer_split import EncodedSentence, SplitEncoder, UpperLayers
from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.relation.model import LABELS, Floats, RelationModel, Support
from models.releases.loading import Loaded, as_json
from models.text import word_texts
from models.types import ADE, DRUG, Mention, TaggedText

TAGS = tags_of(LABELS)
B_DRUG, B_ADE, I_ADE = TAGS.index("B-DRUG"), TAGS.index("B-ADE"), TAGS.index("I-ADE")
# Sentence, tags of its words, and for each pair (drug word, last word of the effect) whether it is related.
SENTENCE = "Clozapine caused severe agranulocytosis while aspirin did nothing."
GOLD = [B_DRUG, 0, B_ADE, I_ADE, 0, B_DRUG, 0, 0, 0]
CLOZAPINE, AGRANULOCYTOSIS, ASPIRIN = 0, 3, 5


@pytest.fixture(scope="module")
def model(mini: Encoder) -> RelationModel:
    """The support is the words and pairs of SENTENCE and of two shorter ones, in the encoder's own space."""
    plain = RelationModel(
        mini,
        np.eye(mini.dimension, dtype=np.float32),
        Support(
            np.ones((1, 2), np.float32),
            np.zeros(1, int),
            np.ones((1, 2), np.float32),
            np.ones(1, bool),
            ["-"],
        ),
        1,
        1,
    )
    first, second, third = plain.project(
        [word_texts(t) for t in (SENTENCE, "Rash after ibuprofen.", "Aspirin for a headache.")]
    )

    def pair(drug: Floats, effect: Floats) -> Floats:
        return np.concatenate([drug, effect])

    support = Support(
        words=np.concatenate([first, second, third]),
        tags=np.array([*GOLD, B_ADE, 0, B_DRUG, 0, B_DRUG, 0, 0, 0, 0]),
        pairs=np.stack(
            [
                pair(first[CLOZAPINE], first[AGRANULOCYTOSIS]),
                pair(second[2], second[0]),
                pair(first[ASPIRIN], first[AGRANULOCYTOSIS]),
            ]
        ),
        related=np.array([True, True, False]),
        pair_ids=["ade-1", "ade-2", "ade-1x"],
    )
    return RelationModel(mini, plain.projection, support, 1, 1, DrugLexicon({"clozapine": "clozapine"}))


def test_words_get_the_tags_of_their_nearest_training_words(model: RelationModel) -> None:
    (found,) = model.predict([SENTENCE])
    assert [(m.text, m.label) for m in found.mentions] == [
        ("Clozapine", DRUG),
        ("severe agranulocytosis", ADE),
        ("aspirin", DRUG),
    ]
    assert [m.generic for m in found.mentions] == ["clozapine", None, None]
    assert all(m.score == 1.0 for m in found.mentions)


def test_a_pair_is_related_where_its_nearest_training_pair_is(model: RelationModel) -> None:
    (found,) = model.predict([SENTENCE])
    (relation,) = found.relations
    assert (relation.head, relation.tail, relation.score) == (0, 1, 1.0)
    (neighbour,) = relation.neighbours
    assert neighbour.id == "ade-1"
    assert neighbour.distance == pytest.approx(0, abs=1e-3)


def sound(text: str, found: TaggedText) -> bool:
    """Whether offsets hold and every relation points from a drug to an effect."""
    return all(m.text == text[m.start : m.end] for m in found.mentions) and all(
        found.mentions[r.head].label == DRUG and found.mentions[r.tail].label == ADE for r in found.relations
    )


def test_positions_count_through_the_sentences_of_a_text_and_a_relation_stays_in_its_own(
    model: RelationModel,
) -> None:
    text = f"Aspirin for a headache. {SENTENCE} Rash after ibuprofen."
    (found,) = model.predict([text])
    assert [m.text for m in found.mentions] == [
        "Aspirin",
        "Clozapine",
        "severe agranulocytosis",
        "aspirin",
        "Rash",
        "ibuprofen",
    ]
    assert [(r.head, r.tail) for r in found.relations] == [(1, 2), (5, 4)]
    assert sound(text, found)


def test_a_drug_and_an_effect_in_two_sentences_are_not_related(model: RelationModel, mini: Encoder) -> None:
    """Every pair is related in this support, so that only the sentences keep drug and effect apart."""
    support = Support(
        model.support.words,
        model.support.tags,
        model.support.pairs[:2],
        model.support.related[:2],
        model.support.pair_ids[:2],
    )
    eager = RelationModel(mini, model.projection, support, 1, 1)
    together, apart = eager.predict([SENTENCE, f"Aspirin for a headache.\n{SENTENCE}"])
    assert [(r.head, r.tail) for r in together.relations] == [(0, 1), (2, 1)]
    assert [m.label for m in apart.mentions] == [DRUG, DRUG, ADE, DRUG]
    assert [(r.head, r.tail) for r in apart.relations] == [(1, 2), (3, 2)]


def test_texts_do_not_mix_in_a_batch(model: RelationModel) -> None:
    batch = ["", SENTENCE, " \n", "Rash after ibuprofen.", "\0", "\U0001f600"]
    together = model.predict(batch)
    assert len(together) == len(batch)
    assert together[0] == together[2] == TaggedText((), ())
    for text, found in zip(batch, together, strict=True):
        (alone,) = model.predict([text])
        assert [(m.start, m.label) for m in alone.mentions] == [(m.start, m.label) for m in found.mentions]
        assert [(r.head, r.tail) for r in alone.relations] == [(r.head, r.tail) for r in found.relations]
        assert sound(text, found)


@pytest.mark.parametrize("batch", [[], [""], [" \n\t", ""]])
def test_texts_without_words_have_neither_mentions_nor_relations(
    model: RelationModel, batch: list[str]
) -> None:
    assert model.predict(batch) == [TaggedText((), ())] * len(batch)


@pytest.fixture(scope="module")
def flat(mini: Encoder) -> RelationModel:
    """A support in the plane: words to the right are drugs by majority, upwards effects; five pairs."""
    words = np.array([[1, 0], [1, 0.1], [1, -0.1], [0, 1], [0.1, 1], [-0.1, 1]], np.float32)
    tags = np.array([B_DRUG, 0, B_DRUG, B_ADE, B_ADE, B_ADE])
    angles = np.array([0.0, 0.2, 0.4, 0.6, 3.0])
    pairs = np.stack([np.cos(angles), np.sin(angles), 0 * angles, 0 * angles], axis=1).astype(np.float32)
    related = np.array([True, False, True, False, True])
    return RelationModel(
        mini,
        np.zeros((mini.dimension, 2), np.float32),
        Support(words, tags, pairs, related, list("abcde")),
        3,
        3,
    )


def test_a_words_tag_is_the_commonest_of_its_k_nearest(flat: RelationModel) -> None:
    tags, shares = flat.word_tags(np.array([[5, 0], [0, 2]], np.float32), [2])
    assert tags.tolist() == [B_DRUG, B_ADE]
    assert shares.tolist() == [pytest.approx(2 / 3), 1.0]


def test_a_verdict_is_the_share_of_related_pairs_among_the_k_nearest_which_it_names(
    flat: RelationModel,
) -> None:
    one, other = flat.judge(
        [np.array([1, 0, 0, 0], np.float32), np.array([np.cos(0.5), np.sin(0.5) - 0.05, 0, 0], np.float32)]
    )
    assert one[0] == pytest.approx(2 / 3)
    assert [n.id for n in one[1]] == ["a", "b", "c"]
    assert [n.distance for n in one[1]] == [pytest.approx(1 - np.cos(x), abs=1e-4) for x in (0, 0.2, 0.4)]
    assert other[0] == pytest.approx(1 / 3)
    assert {n.id for n in other[1]} == {"b", "c", "d"}
    assert flat.judge([]) == []


def test_neighbours_stand_nearest_first(flat: RelationModel) -> None:
    numbers = np.random.default_rng(0)
    for _, neighbours in flat.judge([v for v in numbers.normal(size=(20, 4)).astype(np.float32)]):
        distances = [n.distance for n in neighbours]
        assert distances == sorted(distances)
        assert len({n.id for n in neighbours}) == 3


def test_k_beyond_the_support_takes_all_of_it(flat: RelationModel) -> None:
    many = RelationModel(flat.encoder, flat.projection, flat.support, 100, 100)
    ((share, neighbours),) = many.judge([np.ones(4, np.float32)])
    assert share == pytest.approx(3 / 5)
    assert len(neighbours) == 5
    tags, _ = many.word_tags(np.ones((1, 2), np.float32), [1])
    assert tags.tolist() == [B_ADE]


@pytest.mark.parametrize(
    ("related", "wanted"),
    [([True, True, False], [(0, 1), (2, 1)]), ([True, False, False], []), ([False, False, True], [])],
)
def test_a_relation_needs_the_majority_of_its_neighbours(
    model: RelationModel, related: list[bool], wanted: list[tuple[int, int]]
) -> None:
    own = model.support
    support = Support(own.words, own.tags, own.pairs, np.array(related), own.pair_ids)
    (found,) = RelationModel(model.encoder, model.projection, support, 1, 3).predict([SENTENCE])
    assert [(r.head, r.tail) for r in found.relations] == wanted
    for relation in found.relations:
        distances = [n.distance for n in relation.neighbours]
        assert relation.score == pytest.approx(2 / 3, abs=1e-4)
        assert len(distances) == 3
        assert distances == sorted(distances)


def mention(text: str, surface: str, label: str) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 1.0)


def test_given_mentions_are_related_whatever_the_tagger_finds(model: RelationModel) -> None:
    given = [
        mention(SENTENCE, "aspirin", DRUG),
        mention(SENTENCE, "severe agranulocytosis", ADE),
        mention(SENTENCE, "Clozapine", DRUG),
    ]
    text = f"Rash after ibuprofen. {SENTENCE}"
    moved = [Mention(m.start + 22, m.end + 22, m.text, m.label, 1.0) for m in given]
    apart = mention(text, "Rash", ADE)
    one, none, more = model.relate([SENTENCE, SENTENCE, text], [given, [], [apart, *moved]])
    assert [(r.head, r.tail) for r in one] == [(2, 1)]
    assert none == []
    assert [(r.head, r.tail) for r in more] == [(3, 2)]
    assert one[0].neighbours[0].id == more[0].neighbours[0].id == "ade-1"


@pytest.fixture(scope="module")
def halved(model: RelationModel, mini: Encoder) -> RelationModel:
    """The same model with the encoder in two halves, the upper one as it was."""
    upper = UpperLayers(Encoder(copy.deepcopy(mini.model), mini.tokenizer, mini.max_pieces), 3)
    return RelationModel(
        SplitEncoder(mini, 3),
        model.projection,
        model.support,
        1,
        1,
        upper=upper,
        pair_projection=model.projection,
    )


def test_an_upper_half_that_was_not_trained_changes_nothing(
    model: RelationModel, halved: RelationModel
) -> None:
    batch = [SENTENCE, "Rash after ibuprofen. Aspirin for a headache."]
    for one, other in zip(model.predict(batch), halved.predict(batch), strict=True):
        assert [(m.start, m.end, m.label) for m in one.mentions] == [
            (m.start, m.end, m.label) for m in other.mentions
        ]
        assert one.relations == other.relations


def test_the_upper_half_reads_only_sentences_with_a_drug_and_an_effect(
    halved: RelationModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert halved.upper is not None
    whole, seen = halved.upper.word_vectors_above, list[int]()

    def counted(read: list[EncodedSentence]) -> list[torch.Tensor]:
        seen.append(len(read))
        return whole(read)

    monkeypatch.setattr(halved.upper, "word_vectors_above", counted)
    halved.predict([SENTENCE, "Aspirin for a headache.", "Rash after ibuprofen."])
    assert seen == [2]


def test_pairs_have_a_projection_of_their_own(mini: Encoder, model: RelationModel) -> None:
    narrow = np.eye(mini.dimension, 8, dtype=np.float32)
    own = RelationModel(
        mini,
        model.projection,
        Support(
            model.support.words, model.support.tags, np.ones((1, 16), np.float32), np.ones(1, bool), ["ade-9"]
        ),
        1,
        1,
        pair_projection=narrow,
    )
    (vectors,) = own.project_pairs(own.read([["Clozapine", "rash"]]))
    assert vectors.shape == (2, 8)
    (found,) = own.predict([SENTENCE])
    assert {r.neighbours[0].id for r in found.relations} == {"ade-9"}


def test_near_words_may_outvote_many(flat: RelationModel) -> None:
    words = np.array([[1, 0], [0.8, 0.6], [0.8, -0.6]], np.float32)
    support = Support(
        words, np.array([B_DRUG, B_ADE, B_ADE]), flat.support.pairs, flat.support.related, list("abcde")
    )
    query = np.array([[1, 0.01]], np.float32)
    parts = (flat.encoder, flat.projection, support, 3, 3)
    assert RelationModel(*parts).word_tags(query, [1])[0].tolist() == [B_ADE]
    assert RelationModel(*parts, vote="similarity").word_tags(query, [1])[0].tolist() == [B_DRUG]


def test_tags_follow_each_other_as_in_training_and_their_share_is_that_of_the_tag(
    flat: RelationModel,
) -> None:
    transitions = np.zeros((7, 6), np.float32)
    # No word is a drug's first where it is the first of its sentence.
    transitions[-1, B_DRUG] = -1000
    model = RelationModel(flat.encoder, flat.projection, replace(flat.support, transitions=transitions), 3, 3)
    queries = np.array([[5, 0], [5, 0], [5, 0]], np.float32)
    tags, shares = model.word_tags(queries, [2, 1])
    assert tags.tolist() == [0, B_DRUG, 0]
    assert shares.tolist() == [pytest.approx(x) for x in (1 / 3, 2 / 3, 1 / 3)]


def test_a_canary_holds_where_near_neighbours_change_places_and_not_where_an_answer_changes(
    model: RelationModel,
) -> None:
    answers = as_json(model.predict([SENTENCE]))
    assert answers[0]["relations"][0]["neighbours"]

    def holds(change: Callable[[Any], Any]) -> bool:
        other = copy.deepcopy(answers)
        change(other[0])
        return bool(Loaded("relation", "v1", "k", model, ([SENTENCE], other, 0.02)).passes_canary())

    assert holds(lambda a: None)
    assert holds(lambda a: a["relations"][0].update(score=0.6, neighbours=[]))
    assert not holds(lambda a: a["relations"].clear())
    assert not holds(lambda a: a["relations"][0].update(tail=0))
    assert not holds(lambda a: a["mentions"][0].update(label=ADE))
    assert not holds(lambda a: a["mentions"].pop())
