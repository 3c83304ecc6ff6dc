"""Questions for training: duplicates, leaks, splits and hard negatives."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.summarization.medical_entities import OwnRecogniser, named_in
from training.summarization.data import (
    Pair,
    decoder_pairs,
    extraction_pairs,
    text_key,
    without_duplicates,
    without_leaks,
)
from training.summarization.negatives import EntityDictionary, hard_negatives
from training.teaching.readers import questions

RECOGNISER = OwnRecogniser(
    None,
    ["hair loss", "gout", "back pain", "rash"],
    DrugLexicon({"zoloft": "sertraline", "aspirin": "aspirin"}),
)


def pair(question: str, summary: str = "s", name: str = "x") -> Pair:
    return Pair(name, question, summary)


def test_the_first_pair_of_a_question_is_kept() -> None:
    pairs = [
        pair("Is tea fine?", "a"),
        pair("Is tea fine?", "a"),
        pair("SUBJECT: is tea\nMESSAGE: fine", "b"),
        pair("Is tea fine", "c"),
        pair("Is coffee fine?", "a"),
    ]
    assert [p.question for p in without_duplicates(pairs)] == ["Is tea fine?", "Is coffee fine?"]


def test_questions_with_the_same_or_most_words_of_a_test_question_are_removed() -> None:
    tested = [pair("Can gluten be in my azithromycin tablets?")]
    kept = without_leaks(
        [
            pair("can GLUTEN be in my azithromycin tablets"),
            pair("Can gluten be in azithromycin tablets please?"),
            pair("Does gluten hide in red wine?"),
            pair(""),
        ],
        tested,
    )
    assert [p.question for p in kept] == ["Does gluten hide in red wine?", ""]


def test_questions_of_other_lengths_are_removed_from_the_same_share_of_words_on() -> None:
    letters = "a b c d e f g h i j"
    tested = [pair("other words"), pair(letters)]
    questions = [letters[:9], letters[:11], f"{letters} k l m n o p", f"{letters} k l m n o p q"]
    kept = without_leaks([pair(q) for q in questions], tested)
    # 5, 6, 10 and 10 shared words of 10, 10, 16 and 17.
    assert [p.question for p in kept] == [questions[0], questions[3]]


@given(st.lists(st.text("ab .?", max_size=6)))
def test_no_two_kept_questions_have_the_same_text_key(questions: list[str]) -> None:
    keys = [text_key(p.question) for p in without_duplicates(pair(q) for q in questions)]
    assert keys == list(dict.fromkeys(map(text_key, questions)))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "questions").mkdir()
    asked = [(f"How is disease{i} treated{i}?", f"Treat {i}?") for i in range(10)]
    rows = [
        {"id": f"m{i}", "split": "train", "question": question, "summary": summary}
        for i, (question, summary) in enumerate(asked)
    ]
    rows.append({"id": "t", "split": "test", "question": "Asked in the test?", "summary": "Test?"})
    rows.append({"id": "l", "split": "train", "question": "ASKED in the test", "summary": "Test?"})
    text = "\n".join(json.dumps(r) for r in rows)
    (tmp_path / "questions/meqsum.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_split_is_seeded_and_no_question_of_validation_or_test_is_trained_on(data: Path) -> None:
    one, again, other = (decoder_pairs(data, seed) for seed in (1, 1, 2))
    assert one == again
    training, validation = one
    assert {p.id for p in validation} != {p.id for p in other[1]}
    assert (len(training), len(validation)) == (8, 2)
    held = {text_key(p.question) for p in validation} | {"asked in the test"}
    assert not held & {text_key(p.question) for p in training}
    assert len(decoder_pairs(data, 1, limit=3)[0]) == 3


def test_questions_of_an_evaluation_are_not_extracted_from_in_training(data: Path) -> None:
    ids = {p.id for p in extraction_pairs(data)}
    assert {f"m{i}" for i in range(10)} == {i for i in ids if not i.startswith("teaching-")}
    held_out = {id_ for id_, _ in questions("held_out")}
    assert len(held_out) >= 400
    assert not ids & held_out


def test_no_question_of_mediqas_validation_part_is_trained_on(data: Path) -> None:
    rows = [
        {"id": "r2", "question": "My back pain is back. What helps?", "summary": "What helps back pain?"},
        {"id": "2", "question": "Why is ASPIRIN used", "summary": "Aspirin?"},
        {"id": "3", "question": "how is disease4 treated4", "summary": "4?"},
    ]
    text = "\n".join(json.dumps(r) for r in rows)
    (data / "questions/mediqa21_val.jsonl").write_text(text, encoding="utf-8")
    training, validation = decoder_pairs(data, 1)
    asked = {text_key(r["question"]) for r in rows}
    assert not asked & {text_key(p.question) for p in (*training, *validation)}
    assert len(training) + len(validation) == 9


DICTIONARY = EntityDictionary(["gout", "Gouts", "rash", "Zoloft", "back pain", "pain"])


def test_every_entity_of_a_hard_negative_is_another_one_or_there_is_none() -> None:
    summary = "Can Zoloft cause gout?"
    (entities,) = RECOGNISER.entities([summary])
    negatives = hard_negatives(summary, entities, DICTIONARY, 5, random.Random(1))
    assert len(negatives) == len(set(negatives)) == 5
    for text in negatives:
        assert text.startswith("Can ") and text.endswith("?") and " cause " in text
        assert not named_in("Zoloft", text) and not named_in("gout", text)
    rng = random.Random(1)
    assert hard_negatives("Is tea fine?", [], DICTIONARY, 5, rng) == []
    (gout,) = RECOGNISER.entities(["Is gout bad?"])
    assert hard_negatives("Is gout bad?", gout, EntityDictionary(["gout"]), 5, rng) == []
    # No more than there are.
    assert hard_negatives("Is gout bad?", gout, EntityDictionary(["gout", "rash"]), 5, rng) == [
        "Is rash bad?"
    ]
    assert len(DICTIONARY) == 5
    assert DICTIONARY.without(["GOUT"]) == ["rash", "Zoloft", "back pain", "pain"]
    # An entity that contains the gold words, or is contained in them, might be right as well.
    assert DICTIONARY.without(["pain"]) == ["gout", "rash", "Zoloft"]
    assert DICTIONARY.without(["severe back pain"]) == ["gout", "rash", "Zoloft"]
