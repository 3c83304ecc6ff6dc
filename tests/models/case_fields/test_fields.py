"""What texts state of a case, in posts and in clinical sentences; and what is none of that."""

from __future__ import annotations

import re
from time import process_time

import pytest

from models.case_fields import told
from models.case_fields.fields import MOST, PRECISION, case_fields
from models.types import ADE, CASE_FIELDS, DRUG, INDICATION, CaseField, Mention

LABELS = {"D": DRUG, "A": ADE, "I": INDICATION}


def marked(text: str) -> tuple[str, list[Mention]]:
    """A text in which a mention stands as `[A rash]`, without these marks; and its mentions."""
    plain, mentions, done = "", [], 0
    for mark in re.finditer(r"\[([DAI]) ([^]]+)\]", text):
        plain += text[done : mark.start()]
        mentions.append(Mention(len(plain), len(plain) + len(mark[2]), mark[2], LABELS[mark[1]], 0.9))
        plain, done = plain + mark[2], mark.end()
    return plain + text[done:], mentions


def found(text: str, *, clinical: bool = False) -> list[str]:
    """`field=value: words` of each field; "-" where no number is stated."""
    plain, mentions = marked(text)
    fields = case_fields(plain, mentions, clinical=clinical)
    assert list(fields) == sorted(fields, key=lambda f: (f.start, f.end, f.field))
    return [f"{f.field}={f.value or '-'}: {plain[f.start : f.end]}" for f in fields]


STATED = {
    "I'm 45F and on [D Zoloft]": ["age=45: 45", "sex=female: F"],
    "Me (32/M) took it": ["age=32: 32", "sex=male: M"],
    "45yo here": ["age=45: 45yo"],
    "53 y/o male c/o [A dizziness]": ["age=53: 53 y/o", "sex=male: male"],
    "a 38 year old, female": ["age=38: 38 year old", "sex=female: female"],
    "my 3 month old got a [A rash]": ["age=0.25: 3 month old"],
    "I am 46 and with Botox": ["age=46: 46"],
    "a seventy-two year old woman": ["age=72: seventy-two year old", "sex=female: woman"],
    "aged 81, on [D digoxin]": ["age=81: 81"],
    "a 72 year female": ["age=72: 72 year", "sex=female: female"],
    "I'm a 6 ft tall man": ["sex=male: man"],
    "it stopped my periods": ["sex=female: my periods"],
    "my husband was put on [D Lipitor]": ["sex=male: husband"],
    "I was 12 weeks pregnant": ["pregnancy=P12W: I was 12 weeks pregnant"],
    "I am 3 months pregnant": ["pregnancy=P3M: I am 3 months pregnant"],
    "in my pregnancy I took [D Zofran]": ["pregnancy=-: in my pregnancy", "sex=female: my pregnancy"],
    "20mg x 3": ["dose=20 mg: 20mg"],
    "5 mg/kg/d": ["dose=5 mg/kg/d: 5 mg/kg/d"],
    "1/2 tablet at night": ["dose=0.5 tablet: 1/2 tablet"],
    "half a pill a day": ["dose=0.5 tablet/d: half a pill a day"],
    "1,500 mg daily": ["dose=1500 mg: 1,500 mg"],
    "50-75 mcg of it": ["dose=0.05..0.075 mg: 50-75 mcg"],
    "0.5g twice": ["dose=500 mg: 0.5g"],
    "40 mg/m2 [D methotrexate]": ["dose=40 mg/m2: 40 mg/m2"],
    "10,000 IU of D3": ["dose=10000 iu: 10,000 IU"],
    "two puffs at night": ["dose=2 puff: two puffs"],
    "I took [D Lexapro] for 3 months": ["duration=P3M: 3 months"],
    "was on it for two and a half years": ["duration=P2.5Y: two and a half years"],
    "have been taking it 5 or 6 weeks": ["duration=P5W..P6W: 5 or 6 weeks"],
    "a 10 day course of [D prednisone]": ["duration=P10D: 10 day"],
    "used it for a few days": ["duration=-: a few days"],
    "took [D Avelox], 3-4 weeks later I had [A hives]": ["onset=P3W..P4W: 3-4 weeks"],
    "[A Rash] two days after starting [D Bactrim]": ["onset=P2D: two days"],
    "within 30 min of the shot I had [A hives]": ["onset=PT30M: 30 min"],
    "After two days on [D Levaquin] my [A tendons hurt]": ["onset=P2D: two days"],
    "after a year and a half on it I got [A pain]": ["onset=P1.5Y: a year and a half"],
    "I'm in my early 40's": ["age=40..49: 'm in my early 40's"],
    "By day 5 on it I had [A blisters]": ["onset=P5D: By day 5"],
    "an hour after taking it, [A vomiting]": ["onset=PT1H: an hour"],
    "the [A rash] went away": ["outcome=recovered: went away"],
    "a [A rash]. The [I rash] went away": ["outcome=recovered: went away"],
    "the [A sex drive] is not gone": ["outcome=not_recovered: not gone"],
    "[A rash] still has not subsided": ["outcome=not_recovered: not subsided"],
    "I had [A hives], the side effects resolved": ["outcome=recovered: resolved"],
    "the [A rash] cleared up when I stopped it": [
        "dechallenge=positive: cleared up when I stopped", "outcome=recovered: cleared up",
    ],
    "[A pain] persisted after discontinuation": [
        "dechallenge=negative: persisted after discontinuation", "outcome=not_recovered: persisted",
    ],
    "I was hospitalized with [A sepsis]": ["serious=hospitalization: hospitalized"],
    "after 2 days on [D Paxil] I had [A less appetite]": ["onset=P2D: 2 days"],
    "[A rash] from [D Voltaren] taken by mouth": ["route=oral: by mouth"],
    "[A rash] with the nasal spray": ["route=nasal: nasal spray"],
}  # fmt: skip
NOTHING = (
    "took [D Paxil], and within six hours I felt [A sick]", "I quit [D Paxil] by day 3, [A tired]",
    "after 6 weeks on [D Paxil] my [A headaches] occurred less often",
    "after 6 weeks on [D Paxil] my [A cholesterol has decreased]", "[A sepsis], and my mother died",
    "age 250", "a 180 year old tree", "since 2019", "two days after stopping", "on 10/14/2008",
    "when I was 12 years old", "like a 90 year old man", "over 65 years old", "from age 14", "I'm 5 foot 2",
    "twice a day", "three times a day", "500 mg/dl", "creatinine 2 mg/dl", "I paid $30", "BP 120/80",
    "lost 10 g of weight", "30 g of sugar", "98.6F", "room 45F", "3 years ago", "10 years earlier",
    "I was sick for 2 weeks", "stopped taking it for 30 days", "not taken it for three years", "in two weeks",
    "it works for 4 hours", "[A rash] 2 weeks after my last dose", "[A pain] for 3 days after I quit",
    "took it, and 3 weeks later I felt better", "within 2 hours the [I headache] was gone",
    "[I acne] went away", "my symptoms improved", "not pregnant", "I thought I was pregnant",
    "like a pregnant woman",
    "since around age 7", "since I've been 22 years old", "the energy of a 65 year-old",
    "[A rash] may lead to fatal [A sepsis]", "if I get pregnant", "pregnancy test",
    "my mother in law", "my wife says so", "[A oral thrush]", "[A rash] at an injection site",
    "oral presentations and a [A rash]", "afraid to be hospitalized with [A sepsis]", "no [A rash] so far",
    "mg", "", "½", "a", "aged", "1/2", "3 or 2", "12 monkeys", "9999999999 mg", "i m f",
    "[A rash]. Symptoms returned, by resuming it I slept", "[A rash], improved sleep",
    "20 years ago in my late 20's", "a [A headache] for two days after the first pill",
    "end of one month patient was seen", "[A rash] iv ever had", "[A a haze], I can't think clearly",
    "it had the same effect when I took it again", "I dint take the drug for two days",
)  # fmt: skip


@pytest.mark.parametrize("text", STATED)
def test_what_a_post_states_is_read_with_its_place_and_value(text: str) -> None:
    assert sorted(found(text)) == sorted(STATED[text])


@pytest.mark.parametrize("text", NOTHING)
def test_what_states_nothing_of_a_case_gives_no_field(text: str) -> None:
    assert found(text) == []


def test_a_clinical_sentence_names_its_patient() -> None:
    text = (
        "A 54-year-old man developed [A hepatitis] 3 weeks after initiation of oral [D isoniazid] (5 mg/kg)."
    )
    assert found(text, clinical=True) == [
        "age=54: 54-year-old", "sex=male: man", "onset=P3W: 3 weeks", "route=oral: oral",
        "dose=5 mg/kg: 5 mg/kg",
    ]  # fmt: skip
    fatal = ["serious=death: Fatal"]
    assert found("Fatal [A sepsis].", clinical=True) == fatal
    assert found("She had [A rash].", clinical=True) == ["sex=female: She"]
    assert found("[A Apnea] in an infant.", clinical=True) == ["age_group=infant: infant"]


def test_spans_are_code_points_and_fields_are_few_enough() -> None:
    (field,) = case_fields("😴 e\u0301 20 mg", ())
    assert field == CaseField("dose", 5, 10, "20 mg", PRECISION["dose"])
    assert len(case_fields("20 mg " * 1000, ())) == MOST
    assert PRECISION.keys() <= set(CASE_FIELDS) and all(0.7 <= share <= 1 for share in PRECISION.values())


def test_a_text_of_nothing_but_mentions_and_outcomes_takes_linear_time() -> None:
    def seconds(n: int) -> float:
        text, mentions = marked("[A rash] 2 days after it went away iv " * n)
        start = process_time()
        case_fields(text, mentions)
        return process_time() - start

    assert seconds(2000) < 30 * max(seconds(200), 0.005)


def test_no_text_is_passed_over_for_want_of_a_stem(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*STATED, *NOTHING]
    gated = [found(text) for text in texts]
    monkeypatch.setattr(told, "STEMS", dict.fromkeys(told.STEMS, ("",)))
    assert [found(text) for text in texts] == gated
