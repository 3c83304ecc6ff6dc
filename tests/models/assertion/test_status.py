"""The assertion of a mention that a model has given a status."""

from __future__ import annotations

import pytest

from models.assertion.status import asserted
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
    ],
)
def test_a_status_decides_whatever_the_words_say(status: str, expected: Assertion) -> None:
    assert asserted(*judged("no <rash> so far", status, 0.95)) == expected


def test_without_a_status_the_words_decide() -> None:
    assert asserted(*judged("no <rash> so far", None, 0.0)) == Assertion(negated=True)


@pytest.mark.parametrize(
    "marked",
    [
        "I know three people who got <pancreatitis> from it",
        "I know someone who got <lupus> from hydralazine.",
        "My father has experienced a <loss of hearing>.",
        "She suddenly started <vomiting> half an hour later.",
        "First month he was <drunk on his paws>.",
        "My uncle had a really bad <bleeding ulcer>.",
        "A friend of mine developed <diabetes> on Zyprexa",
        "Some people get <hives>.",
        "Others have had <vivid dreams>",
    ],
)
def test_what_others_are_said_to_have_is_not_the_writers_however_sure_the_model_is(marked: str) -> None:
    assert asserted(*judged(marked, OWN, 0.99)) == ANOTHERS


@pytest.mark.parametrize(
    "marked",
    [
        "My sister has it too, and I got <hives>.",
        "inability to reach orgasm with a partner, <weakness>",
        "love my husband but just <do not feel like having sex>",
        "retin a is my best friend, <carded yesterday>",
        "My wife hates me because I have <fits of rage>",
        "our doggie is very sick and i was up with her, <didn't sleep>",
        "My mom takes it. Had <a rash> all week",
        "like so many people I had <nausea>",
        "My doctor laughed when my hair had <fallen out>",
        "You look like a crazy person when you complain of <pain>",
        "the man on the phone said my ALT was <high>",
        "We report a woman who developed <photo-onycholysis>",
        "subsequently the patient developed <jaundice>",
        "Four weeks earlier she had developed <hepatopathy>",
    ],
)
def test_what_the_writer_has_stays_the_writers_where_the_model_is_sure(marked: str) -> None:
    assert asserted(*judged(marked, OWN, 0.99)) == Assertion()


def test_where_the_model_is_not_sure_words_about_another_decide() -> None:
    marked = "My sister went on it and ended up with <chest pain>"
    assert asserted(*judged(marked, OWN, 0.6)) == ANOTHERS
    assert asserted(*judged(marked, OWN, 0.95)) == Assertion()
    assert asserted(*judged(marked, OWN, 0.6), sure=0.5) == Assertion()
