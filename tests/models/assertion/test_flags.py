"""The assertion of a mention that a model has given a status."""

from __future__ import annotations

import pytest

from models.assertion.flags import asserted
from models.types import ADE, HYPOTHETICAL, NEGATED, OTHER, OWN, Assertion, Mention

ANOTHERS = Assertion(other_experiencer=True)


def judged(marked: str, status: str | None, score: float) -> tuple[str, Mention]:
    start, end = marked.index("<"), marked.index(">") - 1
    text = marked.replace("<", "").replace(">", "")
    return text, Mention(start, end, text[start:end], ADE, 0.9, status=status, status_score=score)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (OWN, Assertion()),
        (NEGATED, Assertion(negated=True)),
        (HYPOTHETICAL, Assertion(hypothetical=True)),
        (OTHER, ANOTHERS),
        (None, Assertion(negated=True)),  # then the words decide
    ],
)
def test_a_status_decides_whatever_the_words_say(status: str | None, expected: Assertion) -> None:
    assert asserted(*judged("no <rash> so far", status, 0.95)) == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("I know someone who got <lupus> from hydralazine.", ANOTHERS),
        ("My father has experienced a <loss of hearing>.", ANOTHERS),
        ("She suddenly started <vomiting> half an hour later.", ANOTHERS),
        ("First month he was <drunk on his paws>.", ANOTHERS),
        ("My uncle had a really bad <bleeding ulcer>.", ANOTHERS),
        ("A friend of mine developed <diabetes> on Zyprexa", ANOTHERS),
        ("Some people get <hives>.", ANOTHERS),
        ("Others have had <vivid dreams>", ANOTHERS),
        ("My sister has it too, and I got <hives>.", Assertion()),
        ("inability to reach orgasm with a partner, <weakness>", Assertion()),
        ("My wife hates me because I have <fits of rage>", Assertion()),
        ("our doggie is very sick and i was up with her, <didn't sleep>", Assertion()),
        ("My mom takes it. Had <a rash> all week", Assertion()),
        ("like so many people I had <nausea>", Assertion()),
        ("My doctor laughed when my hair had <fallen out>", Assertion()),
        ("the man on the phone said my ALT was <high>", Assertion()),
        ("We report a woman who developed <photo-onycholysis>", Assertion()),
    ],
)
def test_what_others_are_said_to_have_is_not_the_writers_anyway(marked: str, expected: Assertion) -> None:
    assert asserted(*judged(marked, OWN, 0.99)) == expected


@pytest.mark.parametrize(
    "marked",
    [
        "My mother experienced <a sharp pain> in her arm",
        "Vaccine recipient's wife reported that he was <slurring his speech>",
        "Pt states that today <the chest pain> has gotten worse",
        "My husband could not recall when the <leg pains> started",
        "The patient started having <delusions>",
    ],
)
def test_with_a_stated_medicine_the_patient_may_be_somebody_else_than_the_writer(marked: str) -> None:
    assert asserted(*judged(marked, OWN, 0.8), of_patient=True) == Assertion()
    assert asserted(*judged(marked, OTHER, 0.8), of_patient=True) == ANOTHERS


def test_where_the_model_is_not_sure_words_about_another_decide() -> None:
    marked = "My sister went on it and ended up with <chest pain>"
    assert asserted(*judged(marked, OWN, 0.6)) == ANOTHERS
    assert asserted(*judged(marked, OWN, 0.95)) == Assertion()


@pytest.mark.parametrize(
    ("marked", "negated"),
    [
        ("Patient denies chest pain, fever or <vomiting>.", True),
        ("She is flushed. <Denies itching>, hoarseness.", True),
        ("Lungs clear, negative for wheezing, <facial swelling>.", True),
        ("He denied any <palpitations>.", True),
        ("Denies vomiting, reports <dizziness>.", False),
        ("Denies vomiting. <Dizziness> since the second dose.", False),
        ("They denied it was the drug, and I had <hives>.", False),
    ],
)
def test_what_a_note_says_that_its_patient_denies_did_not_happen_anyway(marked: str, negated: bool) -> None:
    assert asserted(*judged(marked, OWN, 0.99)) == Assertion(negated=negated)
    feared = asserted(*judged(marked, HYPOTHETICAL, 0.99))
    assert feared == (Assertion(negated=True) if negated else Assertion(hypothetical=True))
