"""Mentions and relations of texts, with a support set small enough to read."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.drugs import DrugLexicon
from models.drugs.classes import bundled_classes
from models.encoder.layers import over
from models.encoder.model import Encoder
from models.encoder.word_pieces import WordPieces
from models.loading import Loaded, as_json
from models.ner.decoding import tags_of
from models.relation import pairs as relation_pairs
from models.relation.model import RelationModel
from models.relation.pairs import LABELS
from models.relation.sentences import is_event
from models.relation.spaces import EmbeddingSpaces
from models.relation.support_set import NamedPair, SupportSet
from models.relation.voting import Voting
from models.releases.store import bundled, open_release
from models.text import word_texts
from models.types import ADE, DRUG, Expansion, Mention, TaggedText

TAGS = tags_of(LABELS)
B_DRUG, B_ADE, I_ADE = TAGS.index("B-DRUG"), TAGS.index("B-ADE"), TAGS.index("I-ADE")
SENTENCE = "Clozapine caused severe agranulocytosis while aspirin did nothing."
TAGS_OF_SENTENCE = [B_DRUG, 0, B_ADE, I_ADE, 0, B_DRUG, 0, 0, 0]
# Positions of words; the last word of an effect stands for it.
CLOZAPINE, AGRANULOCYTOSIS, ASPIRIN = 0, 3, 5
ONE_NEIGHBOUR = Voting(k_words=1, k_pairs=1)


@pytest.fixture(scope="module")
def model(mini: Encoder) -> RelationModel:
    """The support set is the words and pairs of SENTENCE and of two shorter ones, without projection."""
    spaces = EmbeddingSpaces(mini, np.eye(mini.dimension, dtype=np.float32))
    texts = (SENTENCE, "Rash after ibuprofen.", "Aspirin for a headache.")
    first, second, third = spaces.entity_vectors(spaces.encode([word_texts(t) for t in texts]))
    pairs = [
        (first[CLOZAPINE], first[AGRANULOCYTOSIS]),
        (second[2], second[0]),
        (first[ASPIRIN], first[AGRANULOCYTOSIS]),
    ]
    support = SupportSet(
        words=np.concatenate([first, second, third]),
        tags=np.array([*TAGS_OF_SENTENCE, B_ADE, 0, B_DRUG, 0, B_DRUG, 0, 0, 0, 0]),
        pairs=np.stack([np.concatenate(pair) for pair in pairs]),
        related=np.array([True, True, False]),
        named=[
            NamedPair("ade-1", "Clozapine", "severe agranulocytosis", SENTENCE),
            NamedPair("ade-2", "ibuprofen", "Rash"),
            NamedPair("ade-1x", "aspirin", "severe agranulocytosis"),
        ],
    )
    return RelationModel(spaces, support, ONE_NEIGHBOUR, lexicon=DrugLexicon({"clozapine": "clozapine"}))


def test_acronyms_are_read_as_their_long_forms(model: RelationModel) -> None:
    text = "CLZ caused SA while aspirin did nothing."
    expansions = [
        Expansion(0, 3, "CLZ", "clozapine", 1.0, "dictionary"),
        Expansion(11, 13, "SA", "severe agranulocytosis", 1.0, "dictionary"),
    ]
    (tagged,) = model.predict([text], [expansions])
    found = [(text[m.start : m.end], m.text, m.label, m.generic) for m in tagged.mentions]
    assert found == [
        ("CLZ", "CLZ", DRUG, "clozapine"),
        ("SA", "SA", ADE, None),
        ("aspirin", "aspirin", DRUG, None),
    ]
    assert [(r.head, r.tail) for r in tagged.relations] == [(0, 1)]
    (plain,), (same,) = model.predict([SENTENCE]), model.predict([SENTENCE], [[]])
    assert plain == same
    pairs = [(t.mentions[0], t.mentions[1]) for t in (tagged, plain)]
    short, long = model.pair_vectors([text, SENTENCE], pairs, [expansions, []])
    assert short is not None and long is not None
    assert np.allclose(short, long, atol=1e-5)
    apart = [(Mention(0, 9, "Clozapine", DRUG, 1.0), Mention(11, 15, "Rash", ADE, 1.0))]
    assert model.pair_vectors(["Clozapine. Rash."], apart) == [None]


def test_words_and_pairs_are_as_their_nearest_of_training(model: RelationModel) -> None:
    (tagged,) = model.predict([SENTENCE])
    assert [(m.text, m.label) for m in tagged.mentions] == [
        ("Clozapine", DRUG),
        ("severe agranulocytosis", ADE),
        ("aspirin", DRUG),
    ]
    assert [m.generic for m in tagged.mentions] == ["clozapine", None, None]
    assert all(m.score == 1.0 for m in tagged.mentions)
    (tagged,) = model.predict([SENTENCE])
    (relation,) = tagged.relations
    assert (relation.head, relation.tail, relation.score) == (0, 1, 1.0)
    (neighbour,) = relation.neighbours
    assert (neighbour.id, neighbour.drug, neighbour.effect) == (
        "ade-1",
        "Clozapine",
        "severe agranulocytosis",
    )
    assert (neighbour.related, neighbour.source) == (True, SENTENCE)
    assert neighbour.distance == pytest.approx(0, abs=1e-3)


def test_a_cause_of_another_effect_is_no_effect(model: RelationModel) -> None:
    texts = ["Rash after ibuprofen.", "Rash-induced fever after ibuprofen.", "Rash - related fever."]
    found = [[m.text for m in tagged.mentions if m.label == ADE] for tagged in model.predict(texts)]
    assert found[0] == ["Rash"]
    assert not any(text.startswith("Rash") for text in found[1] + found[2])


def test_an_effect_does_not_end_within_a_number_and_an_event_is_no_drug() -> None:
    bundled_model = RelationModel.load(open_release(bundled("relation")))
    texts = ["CK 18,400 U/L on rosuvastatin: rhabdomyolysis.", "Mg 0.9 on omeprazole"]
    found = [[m.text for m in t.mentions if m.label == ADE] for t in bundled_model.predict(texts)]
    assert "CK 18" not in found[0]
    assert any(text.startswith("CK 18,400") for text in found[0])
    assert found[1] == ["Mg 0.9"]
    (tagged,) = bundled_model.predict(["irAEs: colitis (G3), hypophysitis (G2), vitiligo; on pembro."])
    assert {m.text: m.label for m in tagged.mentions}.items() >= {"vitiligo": ADE, "pembro": DRUG}.items()
    assert all(tagged.mentions[r.head].text == "pembro" for r in tagged.relations)
    (vaccine,) = bundled_model.predict(
        ["Febrile seizure following MMR vaccine in a 13-month-old girl."],
        [[Expansion(26, 29, "MMR", "measles, mumps and rubella", 1.0, "dictionary")]],
    )
    assert ("MMR", ADE) not in [(m.text, m.label) for m in vaccine.mentions]
    assert is_event("Vitiligo") and not is_event("acute vitiligo") and not is_event("LASIK")


def test_the_name_of_a_class_is_a_drug_with_the_effects_that_a_list_gives_it() -> None:
    bundled_model = RelationModel.load(open_release(bundled("relation")))
    (tagged,) = bundled_model.predict(["Allergies: penicillin (hives), sulfa (SJS), NKFA."])
    linked = {(tagged.mentions[r.head].text, tagged.mentions[r.tail].text) for r in tagged.relations}
    assert linked == {("penicillin", "hives"), ("sulfa", "SJS")}


def test_a_class_is_read_as_a_drug_where_that_is_asked_for() -> None:
    """With the support set of the bundled release, whose corpus marks named drugs only."""
    bundled_model = RelationModel.load(open_release(bundled("relation")))
    text = "A severe rash and fever occurred in a woman taking an oral contraceptive."
    (without,) = bundled_model.predict([text])
    assert without.relations == ()
    (found,) = bundled_model.with_classes(bundled_classes()).predict([text])
    assert bundled_model.predict([text]) == [without]
    drugs = [m for m in found.mentions if m.label == DRUG]
    assert [(m.text, text[m.start : m.end]) for m in drugs] == [("oral contraceptive", "oral contraceptive")]
    assert {found.mentions[r.tail].text for r in found.relations} == {"severe rash", "fever"}
    assert {found.mentions[r.head].text for r in found.relations} == {"oral contraceptive"}


def is_consistent(text: str, tagged: TaggedText) -> bool:
    """Whether offsets fit the text and every relation leads from a drug to an effect."""
    return all(m.text == text[m.start : m.end] for m in tagged.mentions) and all(
        tagged.mentions[r.head].label == DRUG and tagged.mentions[r.tail].label == ADE
        for r in tagged.relations
    )


def test_mentions_are_numbered_across_sentences_and_relations_stay_within_one(model: RelationModel) -> None:
    text = f"Aspirin for a headache. {SENTENCE} Rash after ibuprofen."
    (tagged,) = model.predict([text])
    named = "Aspirin/Clozapine/severe agranulocytosis/aspirin/Rash/ibuprofen"
    assert "/".join(m.text for m in tagged.mentions) == named
    assert [(r.head, r.tail) for r in tagged.relations] == [(1, 2), (5, 4)]
    assert is_consistent(text, tagged)
    # Every pair of this support set is related, so that only the sentence boundary prevents a relation.
    own = model.support
    support = replace(own, pairs=own.pairs[:2], related=own.related[:2], named=own.named[:2])
    all_related = RelationModel(model.spaces, support, ONE_NEIGHBOUR)
    one, two = all_related.predict([SENTENCE, f"Aspirin for a headache.\n{SENTENCE}"])
    assert [(r.head, r.tail) for r in one.relations] == [(0, 1), (2, 1)]
    assert [m.label for m in two.mentions] == [DRUG, DRUG, ADE, DRUG]
    assert [(r.head, r.tail) for r in two.relations] == [(1, 2), (3, 2)]


def test_texts_of_a_batch_do_not_affect_each_other(model: RelationModel) -> None:
    batch = ["", SENTENCE, " \n", "Rash after ibuprofen.", "\0", "\U0001f600"]
    together = model.predict(batch)
    assert len(together) == len(batch)
    assert together[0] == together[2] == TaggedText((), ())
    for text, tagged in zip(batch, together, strict=True):
        (alone,) = model.predict([text])
        assert [(m.start, m.label) for m in alone.mentions] == [(m.start, m.label) for m in tagged.mentions]
        assert [(r.head, r.tail) for r in alone.relations] == [(r.head, r.tail) for r in tagged.relations]
        assert is_consistent(text, tagged)


@pytest.mark.parametrize("batch", [[], [""], [" \n\t", ""]])
def test_texts_without_words_have_no_mentions_or_relations(model: RelationModel, batch: list[str]) -> None:
    assert model.predict(batch) == [TaggedText((), ())] * len(batch)


@pytest.mark.parametrize(
    ("related", "expected"),
    [([True, True, False], [(0, 1), (2, 1)]), ([True, False, False], []), ([False, False, True], [])],
)
def test_a_relation_needs_the_majority_of_its_neighbours(
    model: RelationModel, related: list[bool], expected: list[tuple[int, int]]
) -> None:
    support = replace(model.support, related=np.array(related))
    (tagged,) = RelationModel(model.spaces, support, Voting(k_words=1, k_pairs=3)).predict([SENTENCE])
    assert [(r.head, r.tail) for r in tagged.relations] == expected
    for relation in tagged.relations:
        distances = [n.distance for n in relation.neighbours]
        assert relation.score == pytest.approx(2 / 3, abs=1e-4)
        assert len(distances) == 3
        assert distances == sorted(distances)


def mention(text: str, surface: str, label: str) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 1.0)


def test_of_a_long_row_of_marks_the_first_are_read(model: RelationModel) -> None:
    """A text of 100,000 dots or emoji took a minute."""
    row = "." * 50_000 + "\U0001f600" * 50_000
    started = time.process_time()
    tagged = model.predict([row, f"{row} {SENTENCE}", f"{row}{SENTENCE}", SENTENCE])
    assert time.process_time() - started < 10
    *_, alone = tagged
    assert tagged[0].mentions == ()
    for text, found in zip((f"{row} {SENTENCE}", f"{row}{SENTENCE}"), tagged[1:], strict=False):
        assert is_consistent(text, found)
        assert [m.text for m in found.mentions][-3:] == [m.text for m in alone.mentions]


def test_of_a_text_with_too_many_pairs_each_drug_keeps_its_nearest_effects(
    model: RelationModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of drugs and effects without full stops would have as many pairs as the product of both."""
    own = model.support
    support = replace(own, pairs=own.pairs[:1], related=own.related[:1], named=own.named[:1])
    related = RelationModel(model.spaces, support, ONE_NEIGHBOUR)
    text = "Clozapine caused fever; later it was ibuprofen and rash"
    names = (("fever", ADE), ("rash", ADE), ("ibuprofen", DRUG), ("Clozapine", DRUG))
    given = [mention(text, surface, label) for surface, label in names]
    (all_pairs,) = related.relate([text], [given])
    assert [(r.head, r.tail) for r in all_pairs] == [(2, 0), (2, 1), (3, 0), (3, 1)]
    monkeypatch.setattr(relation_pairs, "MOST_PAIRS", 3)
    (nearest, others) = related.relate([text, "Rash after ibuprofen."], [given, []])
    assert [(r.head, r.tail) for r in nearest] == [(2, 1), (3, 0)]
    assert others == []


def test_a_drug_is_not_related_to_what_it_is_taken_for_unless_the_words_say_so(model: RelationModel) -> None:
    own = model.support
    support = replace(own, pairs=own.pairs[:1], related=own.related[:1], named=own.named[:1])
    related = RelationModel(model.spaces, support, ONE_NEIGHBOUR, lexicon=DrugLexicon.load())
    texts = ["Psychosis, Clozaril restarted.", "Clozaril caused psychosis.", "Fever, Clozaril restarted."]
    names = [("Psychosis", "Clozaril"), ("psychosis", "Clozaril"), ("Fever", "Clozaril")]
    given = [
        [mention(text, effect, ADE), mention(text, drug, DRUG)]
        for text, (effect, drug) in zip(texts, names, strict=True)
    ]
    assert [bool(found) for found in related.relate(texts, given)] == [False, True, True]


def test_given_mentions_are_related_independently_of_the_tagger(model: RelationModel) -> None:
    given = [
        mention(SENTENCE, "aspirin", DRUG),
        mention(SENTENCE, "severe agranulocytosis", ADE),
        mention(SENTENCE, "Clozapine", DRUG),
    ]
    text = f"Rash after ibuprofen. {SENTENCE}"
    shifted = [Mention(m.start + 22, m.end + 22, m.text, m.label, 1.0) for m in given]
    other_sentence = mention(text, "Rash", ADE)
    one, none, two = model.relate([SENTENCE, SENTENCE, text], [given, [], [other_sentence, *shifted]])
    assert [(r.head, r.tail) for r in one] == [(2, 1)]
    assert none == []
    assert [(r.head, r.tail) for r in two] == [(3, 2)]
    assert one[0].neighbours[0].id == two[0].neighbours[0].id == "ade-1"


@pytest.fixture(scope="module")
def model_of_two_encoders(model: RelationModel, mini: Encoder) -> RelationModel:
    """The same model with an encoder of its own for the relation space, not trained further."""
    whole = over(mini, Encoder(copy.deepcopy(mini.model), mini.tokenizer, mini.max_pieces), 3)
    spaces = EmbeddingSpaces(mini, model.spaces.projection, pair_encoder=whole)
    return RelationModel(spaces, model.support, ONE_NEIGHBOUR)


def test_upper_layers_that_were_not_trained_change_nothing(
    model: RelationModel, model_of_two_encoders: RelationModel
) -> None:
    batch = [SENTENCE, "Rash after ibuprofen. Aspirin for a headache."]
    for one, other in zip(model.predict(batch), model_of_two_encoders.predict(batch), strict=True):
        assert [(m.start, m.end, m.label) for m in one.mentions] == [
            (m.start, m.end, m.label) for m in other.mentions
        ]
        assert one.relations == other.relations


def test_the_relation_space_reads_only_sentences_with_a_drug_and_an_effect(
    model_of_two_encoders: RelationModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = model_of_two_encoders.spaces.pair_encoder
    assert whole is not None
    original, n_sentences = whole.vectors_of, list[int]()

    def counting(split: list[WordPieces], windows: list[Any]) -> list[torch.Tensor]:
        n_sentences.append(len(split))
        return original(split, windows)

    monkeypatch.setattr(whole, "vectors_of", counting)
    model_of_two_encoders.predict([SENTENCE, "Aspirin for a headache.", "Rash after ibuprofen."])
    assert sum(n_sentences) == 2


def test_the_relation_space_may_have_another_projection(mini: Encoder, model: RelationModel) -> None:
    narrow = np.eye(mini.dimension, 8, dtype=np.float32)
    spaces = EmbeddingSpaces(mini, model.spaces.projection, pair_projection=narrow)
    support = replace(
        model.support,
        pairs=np.ones((1, 16), np.float32),
        related=np.ones(1, bool),
        named=[NamedPair("ade-9", "a", "b")],
    )
    (vectors,) = spaces.relation_vectors(spaces.encode([["Clozapine", "rash"]]))
    assert vectors.shape == (2, 8)
    (tagged,) = RelationModel(spaces, support, ONE_NEIGHBOUR).predict([SENTENCE])
    assert {r.neighbours[0].id for r in tagged.relations} == {"ade-9"}


def test_the_canary_check_allows_reordered_neighbours_and_no_other_answer(model: RelationModel) -> None:
    answers = as_json(model.predict([SENTENCE]))
    assert answers[0]["relations"][0]["neighbours"]

    def passes(change: Callable[[Any], Any]) -> bool:
        changed = copy.deepcopy(answers)
        change(changed[0])
        return bool(Loaded("relation", "v1", "k", model, ([SENTENCE], changed, 0.02)).passes_canary())

    assert passes(lambda a: None)
    assert passes(lambda a: a["relations"][0].update(score=0.6, neighbours=[]))
    assert not passes(lambda a: a["relations"].clear())
    assert not passes(lambda a: a["relations"][0].update(tail=0))
    assert not passes(lambda a: a["mentions"][0].update(label=ADE))
    assert not passes(lambda a: a["mentions"].pop())
