"""What is read of a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.relation.model import RelationModel
from models.relation.pairs import LABELS, SentenceMention
from models.relation.sentences import apart, naming, split
from models.relation.spaces import EmbeddingSpaces
from models.relation.support_set import NamedPair, SupportSet
from models.relation.voting import Voting
from models.text import word_texts
from models.types import ADE, DRUG, Expansion, Mention, Span

TAGS = tags_of(LABELS)
B_DRUG, B_ADE = TAGS.index("B-DRUG"), TAGS.index("B-ADE")
EVENT, NONE = "Clozapine caused agranulocytosis.", "No agranulocytosis was seen with clozapine."


@pytest.fixture(scope="module")
def encoder(tiny_bert: str) -> Encoder:
    return Encoder.load(tiny_bert)


@pytest.fixture(scope="module")
def model(encoder: Encoder) -> RelationModel:
    """The support set is the words of EVENT and NONE; every pair is related."""
    spaces = EmbeddingSpaces(encoder, np.eye(encoder.dimension, dtype=np.float32))
    first, second = spaces.entity_vectors(spaces.encode([word_texts(t) for t in (EVENT, NONE)]))
    support = SupportSet(
        words=np.concatenate([first, second]),
        tags=np.array([B_DRUG, 0, B_ADE, 0, 0, B_ADE, 0, 0, 0, B_DRUG, 0]),
        pairs=np.concatenate([first[0], first[2]])[None],
        related=np.ones(1, bool),
        named=[NamedPair("ade-1", "Clozapine", "agranulocytosis")],
    )
    return RelationModel(spaces, support, Voting(1, 1))


def test_sentences_of_a_batch_do_not_affect_each_others_scores(model: RelationModel) -> None:
    texts = [EVENT, f"{NONE} {EVENT}", NONE, "", "Aspirin.", f"{EVENT} " + "and so on " * 30 + "."]
    together = model.predict(texts)
    for text, tagged in zip(texts, together, strict=True):
        (alone,) = model.predict([text])
        assert [(r.head, r.tail) for r in alone.relations] == [(r.head, r.tail) for r in tagged.relations]
        for one, other in zip(alone.relations, tagged.relations, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
        for found, same in zip(alone.mentions, tagged.mentions, strict=True):
            assert found.score == pytest.approx(same.score, abs=1e-4)
    assert sum(len(t.relations) for t in together) >= 4


def test_a_relation_needs_more_than_the_threshold(model: RelationModel) -> None:
    strict = RelationModel(model.spaces, model.support, replace(model.voting, threshold=1.0))
    assert [t.relations for t in strict.predict([EVENT])] == [()]


TEXT = "Pt had GIB on ASA. BP ok."
PT = Expansion(0, 2, "Pt", "patient", 1.0, "dictionary")
GIB = Expansion(7, 10, "GIB", "gastrointestinal bleeding", 0.9, "dictionary")
ASA = Expansion(14, 17, "ASA", "aspirin", 1.0, "dictionary")


def _expansion(long_form: str) -> Expansion:
    return Expansion(0, 2, "XX", long_form, 1.0, "dictionary")


def test_the_words_of_a_long_form_and_of_a_sentence_cut_into_lines_are_read() -> None:
    first, second = split([TEXT], [[PT, GIB, ASA]])
    assert first.read == ["Pt", "had", "gastrointestinal", "bleeding", "on", "aspirin", "."]
    ends = [(0, 2), (3, 6), (7, 10), (7, 10), (11, 13), (14, 17), (17, 18)]
    assert first.words == [Span(*own) for own in ends]
    assert second.read == ["BP", "ok", "."]
    assert [s.read for s in split(["Xy b! Xz d.", "e"])] == [["Xy", "b", "!"], ["Xz", "d", "."], ["e"]]
    # Else the drug is in one sentence and its effect in another.
    note = "She was treated with carbamazepine for trigeminal neuralgia and three\nweeks later had a rash."
    (sentence,) = split([note])
    assert sentence.read == note.replace(".", " .").split()


@pytest.mark.parametrize(
    ("long_form", "is_read"),
    [
        ("gastrointestinal bleeding", True),
        ("Stevens-Johnson syndrome", True),
        ("nausea and vomiting", True),
        ("methotrexate", True),
        ("patient", False),
        ("international normalized ratio", False),
        ("stroke volume", False),
        ("liver transplantation", False),
    ],
)
def test_long_forms_that_name_events_and_drugs_are_read(long_form: str, is_read: bool) -> None:
    assert bool(naming([_expansion(long_form)])) is is_read


def test_of_mentions_in_one_acronym_the_first_effect_stays() -> None:
    drug, effect = Mention(0, 3, "HIT", DRUG, 1.0), Mention(0, 3, "HIT", ADE, 1.0)
    later = Mention(7, 12, "fever", ADE, 1.0)
    first, second, third, fourth = (
        SentenceMention(m, place, 2 * place, "") for place, m in enumerate((drug, effect, effect, later))
    )
    assert apart([first, second, third, fourth]) == [second, fourth]
    assert apart([second, first]) == [second]
