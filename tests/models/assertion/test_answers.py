"""Answers beside the name of an effect, and turns of phrase that decide as they do."""

from __future__ import annotations

import pytest

from models.assertion.answers import answer
from models.assertion.flags import asserted
from models.types import ADE, HYPOTHETICAL, NEGATED, OWN, Assertion, Mention


def placed(marked: str) -> tuple[str, int, int]:
    text = marked.replace("<", "").replace(">", "")
    return text, marked.index("<"), marked.index(">") - 1


@pytest.mark.parametrize(
    "marked",
    [
        "Week 3 of metformin. <Nausea>:none Diarrhea:yes",
        "Humira week 2. <Nausea>:no Headache:no Rash:no",
        "pain 0/10, <nausea> 0, rash 0",
        "Humira week 4: <pain 0/10>, nausea 0, rash 0",
        "<dizziness> 0 out of 10 and nausea 6 out of 10",
        "Cough - nope, <rash> - nope",
        "<nausea> = no , sore breasts = yes",
        "brain zaps y, <nausea> n, crying n",
        "Wellbutrin: <insomnia> (no) dry mouth (yes!!)",
        "my lad: <nightmares>? No. Tantrums? Every day.",
        "<cramps> nil, bloating loads",
        "nausea=0, fatigue=3, <rash>=0 on humira",
        "I tested negative for <hepatitis> on methotrexate.",
        "~~<nausea>~~ headache is all I got from Celexa",
        "ROS on FOLFIRI: N/V -, <mucositis> -, diarrhea +++ (8/d)",
        "lamotrigine day 14: <rash absent>, diplopia present",
        "Ozempic: constipation ✔ <vomiting> ✘ hair loss ✘",
        "❌ <hair loss> ❌ mouth ulcers ✔ wiped out (fourth jab)",
        "accutane: ✅ nosebleeds, ❎ <sore back>",
        "and instead of <weight gain> I got headaches",
        "far from making me <sleepy> it keeps me up",
        "Tests for <hepatotoxicity> on isoniazid came back negative.",
        "GP tested me for <anaemia> on omeprazole: negative. Ferritin: fine",
    ],
)
def test_an_effect_that_the_answer_denies_did_not_happen(marked: str) -> None:
    assert answer(*placed(marked)) is False


@pytest.mark.parametrize(
    "marked",
    [
        "Week 3 of metformin. Nausea:none <Diarrhea>:yes",
        "Day 5. <Heartburn>: yes. Sunburn: no.",
        "<dizziness>: 6/10, blurry vision: 0/10",
        "spotting - nope, <sore boobs> - yep",
        "Bleeding (no) <ringing ears> (yes!!)",
        "tremor: +++ , <gum overgrowth>: ++",
        "Ozempic: vomiting ✘ <hair loss> ✔",
        "dyspnea -, back pain -, <numb fingertips> +, nail changes +.",
        "☑ <black nails> ☐ chest pain",
        "Screening for <agranulocytosis> under clozapine came back positive.",
        "It's not like prednisone didn't give me <insomnia>.",
        "Don't think Lexapro doesn't cause <weight gain>, because it did for me.",
        "I can't say prednisone didn't give me <mood swings>",
        "It isn't as though Cymbalta hadn't given me <night sweats>",
    ],
)
def test_an_effect_that_the_answer_affirms_happened(marked: str) -> None:
    assert answer(*placed(marked)) is True


@pytest.mark.parametrize(
    "marked",
    [
        "I had <nausea>, no vomiting and some hives",
        "<headache> no matter what I take",
        "the <rash> never went away",
        "my <pain> is 10/10 on this stuff",
        "<nausea> - no idea why, but it was awful",
        "<weight gain>: no one warned me about it",
        "took it for <migraine>. No. Just no",
        "<neutropenia>, absent other causes, was blamed on it",
        "<ANC> 0.4 on clozapine",
        "<ANC 0>, plts 8, G-CSF",
        "<DTRs absent>, RR 8",
        "<heart rate> 0.5 lower",
        "10/10 would recommend, only <dry mouth>",
        "~~nausea~~ <headache> is all I got from Celexa",
        "I can't say it gave me <mood swings>",
        "great med ✅ but it gave me <hives> and I stopped",
        "I took Advil instead of Tylenol and got <hives>",
        "it's not like it gave me <insomnia>",
        "Screening for <TB> before infliximab was done",
        "tested for celiac; <bloating> since, normal diet",
        "<nausea> never stopped",
    ],
)
def test_other_words_beside_an_effect_are_no_answer(marked: str) -> None:
    assert answer(*placed(marked)) is None


def judged(marked: str, status: str) -> Assertion:
    text, start, end = placed(marked)
    return asserted(text, Mention(start, end, text[start:end], ADE, 0.9, status=status, status_score=0.99))


@pytest.mark.parametrize(
    ("marked", "status", "expected"),
    [
        ("Nausea:no <Headache>:no Rash:no", OWN, Assertion(negated=True)),
        ("Nausea:no <Headache>:yes Rash:no", NEGATED, Assertion()),
        ("Nausea:no <Headache>:yes Rash:no", HYPOTHETICAL, Assertion()),
        ("It's not like it didn't give me <hives>.", NEGATED, Assertion()),
        ("They warned me about nausea and <hair loss>. Got zero side effects.", OWN, Assertion(negated=True)),
        (
            "Possible side effects: <bleeding>, anemia. Haven't had a single one.",
            OWN,
            Assertion(negated=True),
        ),
        ("The leaflet lists <cramps>, none of which I got", OWN, Assertion(negated=True)),
        ("I got <hives>. My sister has zero side effects.", OWN, Assertion()),
        ("Had <nausea> for a week. Now I have no side effects.", OWN, Assertion()),
        ("They warned me about <hair loss>. It all fell out.", OWN, Assertion()),
    ],
)
def test_an_answer_goes_before_the_status(marked: str, status: str, expected: Assertion) -> None:
    assert judged(marked, status) == expected
