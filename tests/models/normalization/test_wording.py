"""The words that a mention is coded by."""

from __future__ import annotations

import pytest

from models.normalization.wording import effect_of_part, end_without_drug, start_without_drug
from models.types import ADE, DRUG, Mention


def mentions(text: str, *surfaces: str, drug: str = "") -> list[Mention]:
    found = [(s, ADE) for s in surfaces] + ([(drug, DRUG)] if drug else [])
    spans = [Mention(text.index(s), text.index(s) + len(s), s, label, 0.9) for s, label in found]
    return sorted(spans, key=lambda m: (m.start, m.end))


def completed(text: str, *surfaces: str) -> list[str]:
    all_ = mentions(text, *surfaces)
    return [effect_of_part(text, m, all_) + m.text for m in all_]


@pytest.mark.parametrize(
    ("text", "surfaces", "expected"),
    [
        ("tingling in arms, legs and hands", ("tingling in arms", "legs", "hands"),
         ["tingling in arms", "tingling in legs", "tingling in hands"]),
        ("bad pain in my right arm, legs and feet, it", ("bad pain in my right arm", "legs and feet"),
         ["bad pain in my right arm", "bad pain in legs and feet"]),
        ("swollen ankles & my hands", ("swollen ankles", "my hands"), ["swollen ankles", "swollen my hands"]),
        ("Numb lips, tongue, and in my face", ("Numb lips", "tongue", "my face"),
         ["Numb lips", "Numb tongue", "Numb my face"]),
    ],
)  # fmt: skip
def test_a_part_of_the_body_alone_is_coded_with_the_effect_of_its_enumeration(
    text: str, surfaces: tuple[str, ...], expected: list[str]
) -> None:
    assert completed(text, *surfaces) == expected


@pytest.mark.parametrize(
    ("text", "surfaces"),
    [
        ("tingling in arms, legs ache", ("tingling in arms", "legs ache")),
        ("tingling in arms. Legs", ("tingling in arms", "Legs")),
        ("nausea, legs", ("nausea", "legs")),
        ("tingling in arms but legs", ("tingling in arms", "legs")),
        ("tingling in arms, rash, legs", ("tingling in arms", "rash", "legs")),
        ("arms, legs", ("arms", "legs")),
        ("headache, hands", ("headache", "hands")),
        ("backache and stomach", ("backache", "stomach")),
        ("sore feet and heartburn", ("sore feet", "heartburn")),
    ],
)
def test_other_mentions_are_coded_by_their_own_words(text: str, surfaces: tuple[str, ...]) -> None:
    assert completed(text, *surfaces) == list(surfaces)


@pytest.mark.parametrize(
    ("effect", "drug", "expected"),
    [
        ("lost my period on testosterone", "testosterone", "lost my period"),
        ("weight gain from prednisone", "prednisone", "weight gain"),
        ("gained 20 lbs since I started the Depo", "Depo", "gained 20 lbs"),
        ("no appetite while on Adderall!", "Adderall", "no appetite"),
        ("hair loss due to methotrexate", "methotrexate", "hair loss"),
        ("sick after taking my iron", "iron", "sick"),
        ("shakes with albuterol", "albuterol", "shakes"),
        ("bloated on 200 mg progesterone", "progesterone", "bloated"),
        # The drug is a part of the effect, or does not end it.
        ("withdrawal from Paxil", "Paxil", "withdrawal from Paxil"),
        ("overdosed on Xanax", "Xanax", "overdosed on Xanax"),
        ("hooked on Ambien", "Ambien", "hooked on Ambien"),
        ("coming down from Adderall", "Adderall", "coming down from Adderall"),
        ("Zoloft withdrawal", "Zoloft", "Zoloft withdrawal"),
        ("allergic to penicillin", "penicillin", "allergic to penicillin"),
        ("low iron", "iron", "low iron"),
        ("nausea from Zoloft and cramps", "Zoloft", "nausea from Zoloft and cramps"),
        ("high testosterone levels", "testosterone", "high testosterone levels"),
        ("high on tramadol", "tramadol", "high on tramadol"),
        ("toxicity from lithium", "lithium", "toxicity from lithium"),
        ("addicted to Norco", "Norco", "addicted to Norco"),
    ],
)
def test_an_effect_is_coded_without_the_drug_behind_it(effect: str, drug: str, expected: str) -> None:
    text = f"I had {effect} then"
    all_ = mentions(text, effect, drug=drug)
    (own,) = (m for m in all_ if m.label == ADE)
    assert text[6 : end_without_drug(text, own, all_)] == expected


@pytest.mark.parametrize(
    ("effect", "drug", "expected"),
    [
        ("Ritalin - headaches", "Ritalin", "headaches"),
        ("Adderall: angry", "Adderall", "angry"),
        ("Vyvanse = no sleep", "Vyvanse", "no sleep"),
        ("Intuniv -> asleep", "Intuniv", "asleep"),
        ("Prozac \u2013 sweats", "Prozac", "sweats"),
        # The drug is a part of the effect, or there is nothing else.
        ("Zoloft withdrawal", "Zoloft", "Zoloft withdrawal"),
        ("Zoloft-induced mania", "Zoloft", "Zoloft-induced mania"),
        ("lithium toxicity", "lithium", "lithium toxicity"),
        ("Lamictal Liver Toxicity", "Lamictal", "Lamictal Liver Toxicity"),
        ("Zoloft - !", "Zoloft", "Zoloft - !"),
    ],
)
def test_an_effect_is_coded_without_the_drug_that_is_its_heading(
    effect: str, drug: str, expected: str
) -> None:
    text = f"I had {effect} then"
    all_ = mentions(text, effect, drug=drug)
    (own,) = (m for m in all_ if m.label == ADE)
    assert text[start_without_drug(text, own, all_) : own.end] == expected


def test_a_drug_that_is_no_part_of_the_mention_changes_nothing() -> None:
    text = "rash from Bactrim"
    all_ = mentions(text, "rash", drug="Bactrim")
    assert end_without_drug(text, all_[0], all_) == len("rash")
