"""What a message may be about."""

from __future__ import annotations

import pytest

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction.focus import candidates
from models.summarization.extraction.focus_features import FEATURES, features
from models.summarization.extraction.message import Message, messages
from models.summarization.medical_entities import OwnRecogniser

LEXICONS = OwnRecogniser(
    None, ["gout", "kidney pain"], DrugLexicon({"zoloft": "sertraline", "advil": "ibuprofen"})
)


def read(small: Encoder, text: str) -> Message:
    return messages(small, LEXICONS, [text])[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I take Zoloft. Is zoloft bad with gout?", {"Zoloft": {"drug", "capitals"}, "gout": {"term"}}),
        ("My PCOS began in Feb, or Nov, after Stelara.", {"PCOS": {"capitals"}, "Stelara": {"capitals"}}),
        ("Xarelto and tooth. I need it out.", {"Xarelto and tooth": {"subject"}}),
        ("She was diagnosed with lupus last May.", {"lupus": {"cue"}}),
        ("She was diagnosed with lupus 6 weeks ago.", {"lupus": {"cue"}}),
        ("He had had shingles again.", {"shingles": {"cue"}}),
        ("My son has Noonan syndrome.", {"Noonan": {"capitals"}, "Noonan syndrome": {"phrase", "cue"}}),
        ("SUBJECT: dizzy spells\nMESSAGE: What now?", {"dizzy spells": {"subject"}}),
        ("SUBJECT: dry itch. MESSAGE: Is it zoloft?", {"dry itch": {"subject"}, "zoloft": {"drug"}}),
        ("He is suffering from diabetic pain. He had numb.", {"diabetic pain": {"phrase", "cue"}}),
        # No part of a number.
        ("He was diagnosed with 16p-13.11 duplication. And 5.5 renal pain?", {}),
        ("I have no kidney pain. Is it not gout?", {"gout": {"term"}}),
        ("I do not have gout. I don't have any kidney pain.", {}),
        # Neither a greeting nor the name of the writer.
        ("Dear Karen,\n\nis it gout?", {"gout": {"term"}}),
        ("Hello Dr. Karen Hill,\nis it gout?", {"gout": {"term"}}),
        ("Name: Jane Hill\nis it gout?", {"gout": {"term"}}),
        ("Dear Dr. Hill, is it gout?", {"gout": {"term"}}),
        ("This is Mary Lou Hill. Is it gout?", {"gout": {"term"}}),
        ("Hi Dr. Smith, it's Ann Hill, is it gout?", {"gout": {"term"}}),
        ("Is it gout? Thanks, Ann Hill", {"gout": {"term"}}),
        ("Is it gout? Best wishes,\nAnn Hill", {"gout": {"term"}}),
        ("Is the best Stelara? It's Stelara.", {"Stelara": {"capitals"}}),
        ("Which works best, Stelara or gout?", {"Stelara": {"capitals"}, "gout": {"term"}}),
        ("The lump isn't gout pain.", {"gout": {"term"}, "gout pain": {"phrase"}}),
        ("Is this disease an infection or a syndrome?", {}),
        ("Dear [NAME], I am [AGE OF GOUT] and fine.", {}),
        ("", {}),
        ("\n \n", {}),
    ],
)
def test_candidates_are_names_phrases_cues_and_the_subject_line(
    small: Encoder, text: str, expected: dict[str, set[str]]
) -> None:
    found = candidates(read(small, text))
    assert {f.text: f.sources for f in found} == expected
    assert all(text[f.span.start : f.span.end] == f.text for f in found)


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        ("eggs keeps", [0.9, 0.9], ["eggs"]),
        ("keeps safe", [0.9, 0.9], []),
        ("takes turmeric", [0.9, 0.9], ["turmeric"]),
        ("night terrors", [0.9, 0.2], ["terrors"]),
        ("Grapefruit MESSAGE", [0.9, 0.9], ["Grapefruit"]),
        ("Dear Dr. Patel, cough", [0, 0, 0, 0.9, 0, 0.9], ["cough"]),
        ("This is Mary Lou Hill", [0, 0, 0, 0, 0.9], []),
        ("Thanks! cough", [0, 0, 0.9], ["cough"]),
        # With the letter or number that belongs to it.
        ("Vitamin D 500 daily", [0.9], ["Vitamin D"]),
        ("vitamin a day", [0.9], ["vitamin"]),
        ("PLAN B OR NOT", [0.9], ["PLAN B"]),
        ("ONE VITAMIN A DAY", [0, 0.9], ["VITAMIN"]),
        ("omega 3 and iron", [0.9], ["omega 3"]),
        ("omega 3.5 and omega 300", [0.9], ["omega"]),
        ("plan 2 weeks", [0.9], ["plan"]),
    ],
)
def test_a_phrase_of_key_words_has_no_word_that_is_no_name(
    small: Encoder, text: str, keys: list[float], expected: list[str]
) -> None:
    message = read(small, text)
    found = candidates(message._replace(keys=[*keys, *[0.0] * (len(message.words) - len(keys))]))
    assert [f.text for f in found if "key" in f.sources] == expected


def test_a_name_is_one_candidate_with_its_first_mention_and_all_features(small: Encoder) -> None:
    (found,) = candidates(read(small, "ADVIL and advil and Advil"))
    assert (found.text, found.span.start) == ("ADVIL", 0)
    text = "Gout or kidney pain? Gout hurts."
    message = read(small, text)
    names = candidates(message)
    rows = [dict(zip(FEATURES, row, strict=True)) for row in features(message, names, [0.5, 0.25])]
    assert [row["cosine"] for row in rows] == [0.5, 0.25]
    assert [row["mentions"] for row in rows] == [2, 1]
    assert [row["first_place"] for row in rows] == [0, pytest.approx(8 / len(text))]
    assert [row["one_word"] for row in rows] == [1, 0]


def test_a_text_of_many_names_has_a_bounded_number_of_candidates(small: Encoder) -> None:
    text = " ".join(f"a{i}itis," for i in range(400))
    text = text + " " + " ".join(f"I have {'b' * i}x." for i in range(1, 90))
    assert len(candidates(read(small, text))) == 50
