"""Words of rows that become cues, and those that must not."""

from __future__ import annotations

import pytest

from models.acronym.cues import CueWords
from models.types import Span
from training.acronym.mined_cues import MOST, extended, mined
from training.evaluation.acronym import Row

DICTIONARY = {"CTA": ["clear to auscultation", "CT angiography"], "PE": ["pulmonary embolism", "effusion"]}
LUNGS, VESSELS = DICTIONARY["CTA"]


def rows(texts: list[tuple[str, str]], short: str = "CTA") -> list[Row]:
    """A row of each text and long form, `@` being the acronym."""
    forms = tuple(DICTIONARY[short])
    at = [text.index("@") for text, _ in texts]
    return [
        Row(text.replace("@", short), Span(i, i + len(short)), forms, form)
        for i, (text, form) in zip(at, texts, strict=True)
    ]


#: Of the patient all rows tell; the others have words of their own.
FILLER = rows([(f"the patient has @ and word{'abcdefghij'[n % 10]}{n}x", VESSELS) for n in range(400)], "PE")
FILLER = [row._replace(gold="effusion") for row in FILLER]
TEXTS = rows(
    [
        ("lungs are @ bilaterally, 12 in 2006", LUNGS),
        ("lung sounds: @ bilaterally, a MURMUR, 12 ml in 2006", LUNGS),
        ("the patient was @ with some wheeze", LUNGS),
        ("@ of the chest showed an embolus", VESSELS),
        ("the patient had @ with emboli and embolus in 2007", VESSELS),
        ("chest @ on admission, some wheeze", VESSELS),
    ]
)


@pytest.mark.parametrize(
    ("form", "word", "is_cue"),
    [
        (LUNGS, "lung", True),
        (LUNGS, "bilaterally", True),
        (VESSELS, "chest", True),
        (VESSELS, "embolus", True),
        # Once alone.
        (LUNGS, "MURMUR", False),
        (LUNGS, "sound", False),
        (VESSELS, "admission", False),
        (VESSELS, "emboli", False),
        # As often in the other meaning, or once in each.
        (LUNGS, "wheeze", False),
        (VESSELS, "wheeze", False),
        (LUNGS, "some", False),
        # In most texts whatever the acronym means.
        (LUNGS, "patient", False),
        (VESSELS, "patient", False),
        (VESSELS, "the", False),
        # No words, or hardly any.
        (LUNGS, "12", False),
        (LUNGS, "2006", False),
        (LUNGS, "in", False),
        (VESSELS, "of", False),
        # The acronym itself, and what is only near the other meaning.
        (LUNGS, "CTA", False),
        (LUNGS, "chest", False),
        (VESSELS, "lung", False),
    ],
)
def test_a_word_is_a_cue_of_a_meaning_where_it_tells_it_from_the_others(
    form: str, word: str, is_cue: bool
) -> None:
    assert (word in mined([*FILLER, *TEXTS], DICTIONARY)["CTA", form]) == is_cue


def test_the_clearest_words_are_taken_and_no_more_than_a_release_holds() -> None:
    words = [f"{a}{b}{a}" for a in "abcdef" for b in "ghijk"]
    often = [(f"@ {' '.join(words)}", LUNGS), ("@ zebra", LUNGS)] * 2 + [("@ zebra", LUNGS)]
    others = rows([("@ of the chest", VESSELS)] * 9)
    found = mined([*FILLER, *rows(often), *others], DICTIONARY)["CTA", LUNGS]
    assert (len(found), found[0]) == (MOST, "zebra")
    # Nothing to be told apart from.
    assert mined([*FILLER, *rows(often)], DICTIONARY)["CTA", LUNGS] == []


def test_meanings_are_spelled_as_in_the_dictionary_and_unknown_ones_have_no_cue() -> None:
    texts = [row._replace(gold=row.gold.replace(" ", "-")) for row in TEXTS]
    unknown = [row._replace(gold="UNSURED SENSE") for row in TEXTS]
    found = mined([*FILLER, *texts, *unknown], DICTIONARY)
    assert {form for short, form in found if short == "CTA"} == {LUNGS, VESSELS}


def test_written_cues_stay_first_and_mined_words_are_added_once() -> None:
    written = CueWords({("CTA", LUNGS): ["wheeze", "lung"], ("PE", "effusion"): ["fluid"]})
    more = {("CTA", LUNGS): ["lung", "bilaterally"], ("CTA", VESSELS): ["chest"], ("PE", "effusion"): []}
    assert extended(written, more).cues == {
        ("CTA", LUNGS): ["wheeze", "lung", "bilaterally"],
        ("PE", "effusion"): ["fluid"],
        ("CTA", VESSELS): ["chest"],
    }
