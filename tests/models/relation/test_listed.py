"""Lists of drugs with the effects of each."""

from __future__ import annotations

import pytest

from models.relation.listed import listed
from models.types import ADE, DRUG, Mention


@pytest.mark.parametrize(
    ("text", "drugs", "owner"),
    [
        (
            "Allergies: penicillin (anaphylaxis), sulfa (hives, itching)",
            ["penicillin", "sulfa"],
            {"anaphylaxis": "penicillin", "hives": "sulfa", "itching": "sulfa"},
        ),
        (
            "Penicillin - hives; lisinopril: cough and itching",
            ["Penicillin", "lisinopril"],
            {"hives": "Penicillin", "cough": "lisinopril", "itching": "lisinopril"},
        ),
        ("Allergies: penicillin (hives)", ["penicillin"], {"hives": "penicillin"}),
        ("Penicillin (hives), aspirin, ibuprofen", ["Penicillin", "aspirin", "ibuprofen"], {}),
        ("Hives and cough after penicillin and lisinopril", ["penicillin", "lisinopril"], {}),
        ("Penicillin (hives) and lisinopril caused cough", ["Penicillin", "lisinopril"], {}),
        ("", [], {}),
    ],
)
def test_effects_right_behind_a_drug_of_a_list_are_its_own(
    text: str, drugs: list[str], owner: dict[str, str]
) -> None:
    effects = [e for e in ("Hives", "anaphylaxis", "hives", "cough", "itching") if e in text]
    found = listed(text, [_mention(text, d, DRUG) for d in drugs], [_mention(text, e, ADE) for e in effects])
    assert {effect.text: drug.text for effect, drug in found.drug_of.items()} == owner


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("Allergies: PCN (hives)", True),
        ("ALL: PCN (hives)", True),
        ("Intol: PCN - hives", True),
        ("Known adverse reactions to PCN (hives)", True),
        ("Meds: PCN (sinusitis)", False),
        ("All other drugs: PCN (sinusitis)", False),
        ("Allergies: none.\nPCN (sinusitis)", False),
        ("No known drug allergies, PCN (sinusitis)", False),
        ("ALLERGIES: Sulfa - rash. PCN - hives.", True),
        ("Allergies: sulfa (rash, itching). Latex (rash). PCN (hives).", True),
        ("Drug allergies:\n\n1. Sulfa - rash\n2. PCN: hives", True),
        ("ADRs: sulfa - rash; codeine. PCN -> hives", True),
        ("ALLERGIES: Sulfa - rash. MEDS: PCN - sinusitis.", False),
        ("ALLERGIES: Sulfa - rash.\nHOME MEDICATIONS\nPCN - sinusitis.", False),
        ("ALLERGIES: Sulfa - rash. PMH: sinusitis. PCN - sinusitis.", False),
        ("ALLERGIES: Sulfa - rash.\n\nPCN - sinusitis.", False),
        ("ALLERGIES: none known. PCN - sinusitis.", False),
        ("Had an allergic reaction in 2010. PCN - sinusitis.", False),
        ("Allergies: sulfa - rash. Came today with a cold and fever. PCN - sinusitis", False),
    ],
)
def test_a_list_of_reactions_is_called_so_in_front_of_it(text: str, states: bool) -> None:
    assert listed(text, [_mention(text, "PCN", DRUG)], []).are_reactions is states


@pytest.mark.parametrize(
    ("text", "drugs", "of_others"),
    [
        ("Allergies: penicillin (rash), latex (hives, itching)", ["penicillin"], {"hives", "itching"}),
        ("Allergies: penicillin - rash; tree nuts - hives", ["penicillin"], {"hives"}),
        ("Allergies: bee venom (hives), penicillin (rash).", ["penicillin"], {"hives"}),
        ("Penicillin (rash), codeine (itching), latex (hives)", ["Penicillin", "codeine"], {"hives"}),
        ("Intolerances: penicillin: rash, ACE inhibitors: cough", ["penicillin"], {"cough"}),
        ("Allergies: penicillin, shellfish (hives)", ["penicillin"], {"hives"}),
        ("Allergies: penicillin - rash, hives", ["penicillin"], set()),
        ("Allergies: penicillin - rash, then hives", ["penicillin"], set()),
        ("Allergies: penicillin, reaction: hives", ["penicillin"], set()),
        ("Allergies: penicillin (childhood), severity unknown: hives", ["penicillin"], set()),
        ("Allergies: penicillin (2019: hives)", ["penicillin"], set()),
        ("Reaction to penicillin: rash (hives)", ["penicillin"], set()),
        ("Allergies: penicillin caused rash; hives in 2019", ["penicillin"], set()),
        ("Penicillin (rash), biopsy (hives)", ["Penicillin"], set()),
        ("Allergies: penicillin; rash - hives", ["penicillin"], {"rash", "hives"}),
        ("Allergies: penicillin; Lipitor - cramps", ["penicillin"], {"Lipitor - cramps"}),
        ("CONCLUSIONS : rash is an adverse effect of penicillin", ["penicillin"], set()),
    ],
)
def test_the_effects_of_what_is_no_known_drug_are_not_those_of_another(
    text: str, drugs: list[str], of_others: set[str]
) -> None:
    effects = [e for e in ("rash", "hives", "cough", "itching", "Lipitor - cramps") if e in text]
    found = listed(text, [_mention(text, d, DRUG) for d in drugs], [_mention(text, e, ADE) for e in effects])
    assert {effect.text for effect in found.of_others} == of_others


def _mention(text: str, surface: str, label: str) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 1.0)
