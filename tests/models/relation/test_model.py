"""Relations among the mentions of texts, with a support set small enough to read."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.encoder.faiss_index import unit
from models.encoder.model import Encoder
from models.loading import Loaded, as_json
from models.relation import pairs as relation_pairs
from models.relation.model import RelationModel, sentences_of
from models.relation.support_set import NamedPair, SupportSet
from models.relation.voting import Voting
from models.releases.manifest import ReleaseError
from models.releases.store import bundled, open_release
from models.text import word_texts
from models.types import ADE, DRUG, Case, Mention, Relation

SENTENCE = "Clozapine caused severe agranulocytosis while aspirin did nothing."
RASH, HEADACHE = "Rash after ibuprofen.", "Aspirin for a headache."
# Positions of words; the last word of an effect stands for it.
CLOZAPINE, AGRANULOCYTOSIS, ASPIRIN = 0, 3, 5
ONE_NEIGHBOUR = Voting(k_pairs=1)


@pytest.fixture(scope="module")
def model(mini: Encoder) -> RelationModel:
    """The support set is the pairs of SENTENCE and of RASH, without projection."""
    with torch.inference_mode():
        read = mini.word_vectors([word_texts(t) for t in (SENTENCE, RASH)])
    first, second = (unit(v.numpy()) for v in read)
    pairs = [
        (first[CLOZAPINE], first[AGRANULOCYTOSIS]),
        (second[2], second[0]),
        (first[ASPIRIN], first[AGRANULOCYTOSIS]),
    ]
    support = SupportSet(
        pairs=np.stack([np.concatenate(pair) for pair in pairs]),
        related=np.array([True, True, False]),
        named=[
            NamedPair("ade-1", "Clozapine", "severe agranulocytosis", SENTENCE),
            NamedPair("ade-2", "ibuprofen", "Rash"),
            NamedPair("ade-1x", "aspirin", "severe agranulocytosis"),
        ],
    )
    return RelationModel(mini, np.eye(mini.dimension, dtype=np.float32), support, ONE_NEIGHBOUR)


def first_pairs(model: RelationModel, number: int) -> RelationModel:
    """With only the first pairs of the support set, which are related."""
    own = model.support
    support = SupportSet(own.pairs[:number], own.related[:number], own.named[:number])
    return RelationModel(model.encoder, model.projection, support, ONE_NEIGHBOUR)


def mention(text: str, surface: str, label: str) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 1.0)


def case(text: str, *, drugs: Sequence[str] = (), effects: Sequence[str] = ()) -> Case:
    """A text with mentions by their surface forms, in order."""
    named = [(surface, DRUG) for surface in drugs] + [(surface, ADE) for surface in effects]
    return Case(text, tuple(sorted((mention(text, *own) for own in named), key=lambda m: m.start)))


def linked(found: Sequence[Relation]) -> list[tuple[int, int]]:
    return [(r.head, r.tail) for r in found]


IN_SENTENCE: dict[str, Sequence[str]] = {
    "drugs": ("Clozapine", "aspirin"),
    "effects": ("severe agranulocytosis",),
}
EVENT = case(SENTENCE, **IN_SENTENCE)


def test_a_pair_is_as_its_nearest_of_training(model: RelationModel) -> None:
    ((relation,),) = model.predict([EVENT])
    assert (relation.head, relation.tail, relation.score) == (0, 1, 1.0)
    (neighbour,) = relation.neighbours
    assert (neighbour.id, neighbour.drug, neighbour.effect) == (
        "ade-1",
        "Clozapine",
        "severe agranulocytosis",
    )
    assert (neighbour.related, neighbour.source) == (True, SENTENCE)
    assert neighbour.distance == pytest.approx(0, abs=1e-3)


def test_a_pair_has_a_vector_where_both_are_in_one_sentence(model: RelationModel) -> None:
    drug, effect, _ = EVENT.mentions
    apart = "Clozapine. Rash."
    other = mention(apart, "Clozapine", DRUG), mention(apart, "Rash", ADE)
    vector, none = model.pair_vectors([SENTENCE, apart], [(drug, effect), other])
    assert none is None
    assert vector is not None
    assert np.allclose(vector, model.support.pairs[0], atol=1e-5)
    assert model.pair_vectors([], []) == []


def test_each_drug_has_the_effects_that_a_list_gives_it() -> None:
    bundled_model = RelationModel.load(open_release(bundled("relation")))
    text = "Allergies: penicillin (hives), sulfa (SJS), NKFA."
    (found,) = bundled_model.predict([case(text, drugs=["penicillin", "sulfa"], effects=["hives", "SJS"])])
    assert linked(found) == [(0, 1), (2, 3)]


def test_relations_stay_within_a_sentence(model: RelationModel) -> None:
    text = f"{HEADACHE} {SENTENCE} {RASH}"
    given = case(
        text,
        drugs=["Aspirin", "Clozapine", "aspirin", "ibuprofen"],
        effects=["severe agranulocytosis", "Rash"],
    )
    (found,) = model.predict([given])
    assert [m.text for m in given.mentions][1:3] == ["Clozapine", "severe agranulocytosis"]
    assert linked(found) == [(1, 2), (5, 4)]
    # Every pair of this support set is related, so that only the sentence boundary prevents a relation.
    lines = case(
        f"{HEADACHE}\n{SENTENCE}",
        drugs=["Aspirin", "Clozapine", "aspirin"],
        effects=["severe agranulocytosis"],
    )
    one, two = first_pairs(model, 2).predict([EVENT, lines])
    assert linked(one) == [(0, 1), (2, 1)]
    assert linked(two) == [(1, 2), (3, 2)]


def test_a_sentence_that_is_cut_into_lines_is_one() -> None:
    """Else the drug is in one sentence and its effect in another."""
    note = "She was treated with carbamazepine for trigeminal neuralgia and three\nweeks later had a rash."
    texts = ["Xy b! Xz d.", "e", note]
    read = [(s.report, [texts[s.report][w.start : w.end] for w in s.words]) for s in sentences_of(texts)]
    assert read[:3] == [(0, ["Xy", "b", "!"]), (0, ["Xz", "d", "."]), (1, ["e"])]
    assert read[3:] == [(2, note.replace(".", " .").split())]


def test_texts_of_a_batch_do_not_affect_each_other(model: RelationModel) -> None:
    long = case(f"{SENTENCE[:-1]} " + "and so on " * 30 + ".", **IN_SENTENCE)
    rash = case(RASH, drugs=["ibuprofen"], effects=["Rash"])
    both = case(f"{RASH} {SENTENCE}", drugs=["ibuprofen", "Clozapine"], effects=["Rash"])
    batch = [Case("", ()), EVENT, Case(" \n", ()), rash, Case("\0", ()), both, Case("\U0001f600", ()), long]
    together = first_pairs(model, 2).predict(batch)
    assert list(map(len, together)) == [0, 2, 0, 1, 0, 1, 0, 2]
    for one, found in zip(batch, together, strict=True):
        (alone,) = first_pairs(model, 2).predict([one])
        assert linked(alone) == linked(found)
        for own, other in zip(alone, found, strict=True):
            assert own.score == pytest.approx(other.score, abs=1e-4)


def test_a_batch_may_be_empty(model: RelationModel) -> None:
    assert model.predict([]) == []
    assert model.predict([Case(" \n\t", ()), Case("", ())]) == [[], []]
    blank = Case(" \n", (Mention(0, 1, " ", DRUG, 1.0), Mention(1, 2, "\n", ADE, 1.0)))
    assert model.predict([blank]) == [[]]
    assert list(map(bool, model.predict([blank, EVENT, blank]))) == [False, True, False]


@pytest.mark.parametrize(
    ("related", "expected"),
    [([True, True, False], [(0, 1), (2, 1)]), ([True, False, False], []), ([False, False, True], [])],
)
def test_a_relation_needs_the_majority_of_its_neighbours(
    model: RelationModel, related: list[bool], expected: list[tuple[int, int]]
) -> None:
    support = replace(model.support, related=np.array(related))
    three = RelationModel(model.encoder, model.projection, support, Voting(k_pairs=3))
    (found,) = three.predict([EVENT])
    assert linked(found) == expected
    for relation in found:
        distances = [n.distance for n in relation.neighbours]
        assert relation.score == pytest.approx(2 / 3, abs=1e-4)
        assert len(distances) == 3
        assert distances == sorted(distances)


def test_a_relation_needs_more_than_the_threshold(model: RelationModel) -> None:
    strict = RelationModel(model.encoder, model.projection, model.support, Voting(1, threshold=1.0))
    assert strict.predict([EVENT]) == [[]]


def test_a_long_row_of_marks_takes_no_time(model: RelationModel) -> None:
    """A text of 100,000 dots or emoji took a minute."""
    row = "." * 50_000 + "\U0001f600" * 50_000
    texts = [row, f"{row} {SENTENCE}", SENTENCE]
    started = time.process_time()
    _, behind, alone = model.predict([case(t, **(IN_SENTENCE if SENTENCE in t else {})) for t in texts])
    assert time.process_time() - started < 10
    assert linked(behind) == linked(alone) == [(0, 1)]


def test_of_a_text_with_too_many_pairs_each_drug_keeps_its_nearest_effects(
    model: RelationModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of drugs and effects without full stops would have as many pairs as the product of both."""
    related = first_pairs(model, 1)
    text = "Clozapine caused nausea; later it was ibuprofen and rash"
    names = (("nausea", ADE), ("rash", ADE), ("ibuprofen", DRUG), ("Clozapine", DRUG))
    given = Case(text, tuple(mention(text, surface, label) for surface, label in names))
    (all_pairs,) = related.predict([given])
    assert linked(all_pairs) == [(2, 0), (2, 1), (3, 0), (3, 1)]
    monkeypatch.setattr(relation_pairs, "MOST_PAIRS", 3)
    nearest, others = related.predict([given, Case(RASH, ())])
    assert linked(nearest) == [(2, 1), (3, 0)]
    assert others == []


def test_a_drug_is_not_related_to_what_it_is_taken_for_unless_the_words_say_so(model: RelationModel) -> None:
    """Also where a mention has no generic name, which is then that of the bundled lexicon."""
    texts = ["Psychosis, Clozaril restarted.", "Clozaril caused psychosis.", "Fever, Clozaril restarted."]
    names = ["Psychosis", "psychosis", "Fever"]
    given = [case(text, drugs=["Clozaril"], effects=[name]) for text, name in zip(texts, names, strict=True)]
    other = replace(given[0], mentions=tuple(replace(m, generic="aspirin") for m in given[0].mentions))
    found = first_pairs(model, 1).predict([*given, other])
    assert list(map(bool, found)) == [False, True, True, True]


def test_mentions_may_be_in_any_order_and_others_than_drugs_and_effects_are_left_out(
    model: RelationModel,
) -> None:
    given = (
        mention(SENTENCE, "aspirin", DRUG),
        mention(SENTENCE, "severe agranulocytosis", ADE),
        mention(SENTENCE, "nothing", "INDICATION"),
        mention(SENTENCE, "Clozapine", DRUG),
    )
    (found,) = model.predict([Case(SENTENCE, given)])
    assert linked(found) == [(3, 1)]
    other = tuple(replace(m, label="INDICATION") if m.label == ADE else m for m in given)
    assert model.predict([Case(SENTENCE, other)]) == [[]]


def test_only_sentences_with_a_drug_and_an_effect_are_read(
    model: RelationModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, read = model.encoder.word_vectors, list[Any]()

    def following(sentences: Sequence[Sequence[str]]) -> list[torch.Tensor]:
        read.extend(sentences)
        return original(sentences)

    monkeypatch.setattr(model.encoder, "word_vectors", following)
    rash = case(f"{RASH} Ok.", drugs=["ibuprofen"], effects=["Rash"])
    model.predict([EVENT, case(HEADACHE, drugs=["Aspirin"]), rash])
    assert read == [word_texts(SENTENCE), word_texts(RASH)]


def test_a_projection_may_be_narrow(mini: Encoder) -> None:
    narrow = np.eye(mini.dimension, 8, dtype=np.float32)
    support = SupportSet(np.ones((1, 16), np.float32), np.ones(1, bool), [NamedPair("ade-9", "a", "b")])
    (found,) = RelationModel(mini, narrow, support, ONE_NEIGHBOUR).predict([EVENT])
    assert {r.neighbours[0].id for r in found} == {"ade-9"}


def test_the_canary_check_allows_reordered_neighbours_and_no_other_answer(model: RelationModel) -> None:
    answers = as_json(model.predict([EVENT]))
    assert answers[0][0]["neighbours"]
    assert model.canary_inputs(as_json([EVENT])) == [EVENT]

    def passes(change: Callable[[Any], Any]) -> bool:
        changed = copy.deepcopy(answers)
        change(changed[0])
        return bool(Loaded("relation", "v1", "k", model, ([EVENT], changed, 0.02)).passes_canary())

    assert passes(lambda a: None)
    assert passes(lambda a: a[0].update(score=0.6, neighbours=[]))
    assert not passes(lambda a: a.clear())
    assert not passes(lambda a: a[0].update(tail=0))


def test_a_canary_of_texts_alone_is_refused() -> None:
    with pytest.raises(ReleaseError, match="no case with mentions in the canary"):
        RelationModel.canary_inputs([SENTENCE])
