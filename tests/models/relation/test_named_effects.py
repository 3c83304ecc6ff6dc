"""What forms of clinical notes name: items of lists of allergies, and what is reported or denied."""

from __future__ import annotations

import pytest

from models.assertion.triggers import assertion
from models.drugs import bundled_lexicon
from models.relation.named_effects import named
from models.text import words
from models.types import ADE, DRUG, Mention


def names(text: str, *tagged: tuple[str, str]) -> list[str]:
    found = [Mention(text.index(t), text.index(t) + len(t), t, label, 1.0) for t, label in tagged]
    made = named(text, words(text), found, bundled_lexicon())
    assert all((m.text, m.score) == (text[m.start : m.end], 1.0) for m in made)
    assert all((m.label == DRUG) is (m.text in DRUGS) for m in made)
    return [m.text for m in made]


DRUGS = {"sulfa", "NSAIDs", "statins", "ACE inhibitors", "niacin", "penicillin", "opioids", "ibuprofen"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Drug allergies include sulfa (hives) and NSAIDs (GI bleed).",
            ["sulfa", "hives", "NSAIDs", "GI bleed"],
        ),
        (
            "Allergies to statins (myalgia), ACE inhibitors (cough).",
            ["statins", "myalgia", "ACE inhibitors", "cough"],
        ),
        (
            "Intolerances include statins (muscle pain) and niacin (flushing, severe itching)",
            ["statins", "muscle pain", "niacin", "flushing", "itching"],
        ),
        ("ADRs: penicillin - rash, ibuprofen--hives.", ["penicillin", "rash", "ibuprofen", "hives"]),
        ("Drug intolerances: opioids: vomiting", ["opioids", "vomiting"]),
        ("Allergies: latex (rash), sulfa (hives)", ["sulfa", "hives"]),
        ("Allergies: sulfa (childhood), penicillin (unknown).", []),
        ("Allergies: sulfa (rash as a child).", []),
        ("No known drug allergies; takes niacin (headache).", []),
        ("Home medications: niacin (high cholesterol) and NSAIDs (pain).", []),
        ("Allergies: sulfa (hives), takes niacin (headache), statins (stroke).", ["sulfa", "hives"]),
        ("NSAIDs (headache) and penicillin (fever) were given.", []),
        ("Allergic reaction to ibuprofen-induced rash.", []),
    ],
)
def test_items_of_a_list_of_what_was_not_borne(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Denies nausea, vomiting, and diarrhea on niacin, but reports severe bloating.",
            ["nausea", "vomiting", "diarrhea", "bloating"],
        ),
        ("Denies any chest pain or palpitations on niacin; endorses insomnia.",
         ["chest pain", "palpitations", "insomnia"]),
        ("On niacin c/o dizziness/fatigue.", ["dizziness", "fatigue"]),
        ("Pt complains of itching since niacin", ["itching"]),
        ("Case reports of pancytopenia with niacin.", []),
        ("Denies nausea medication use with niacin.", []),
        ("Reports that niacin helps.", []),
        ("Reports tense bullae on niacin.", []),
        ("Denies alcohol use, on niacin.", []),
        ("Nausea and vomiting on niacin.", []),
    ],
)  # fmt: skip
def test_what_a_patient_reports_or_denies_beside_a_drug(text: str, expected: list[str]) -> None:
    assert names(text, ("niacin", DRUG)) == expected
    assert names(text) == []


def test_no_name_shares_a_character_with_a_mention() -> None:
    text = "Denies dry mouth, nausea on niacin. Allergies: niacin (flushing)"
    assert names(text, ("niacin", DRUG), ("mouth", ADE)) == ["nausea", "niacin", "flushing"]
    assert names("", *()) == []


def test_what_is_reported_behind_a_denial_is_not_denied() -> None:
    for text in ("Denies rash, reports itching.", "Denies rash and endorses itching, c/o pain."):
        for effect in ("rash", "itching", "pain"):
            start = text.find(effect)
            found = assertion(text, start, start + len(effect), clinical=True)
            assert start < 0 or found.negated is (effect == "rash")
