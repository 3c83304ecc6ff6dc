"""Effects that a drug in their sentence is taken for, and lists of drugs with the effects of each."""

from __future__ import annotations

import pytest

from models.drugs import bundled_lexicon
from models.relation.effect_lists import listed
from models.relation.purpose import each_for_its_own, taken_for, was_before
from models.types import ADE, DRUG, Mention


@pytest.mark.parametrize(
    ("text", "drug", "effect", "is_use"),
    [
        ("Agitation, pulling lines, Geodon 10 IM x1 w/ good effect", "Geodon", "Agitation", True),
        ("Rifampin 600 mg daily for pulmonary tuberculosis", "Rifampin", "pulmonary tuberculosis", True),
        ("Adverse reaction to prednisone in a patient with lupus", "prednisone", "lupus", True),
        ("Reaction to insulin given for hyperglycemia", "insulin", "hyperglycemia", True),
        ("Etanercept led to a rapid improvement of his arthritis", "Etanercept", "arthritis", True),
        ("Schizophrenia in patients who previously stopped clozapine", "clozapine", "Schizophrenia", True),
        ("SJS in a boy with nephrotic syndrome on prednisolone for 6 weeks", "prednisolone", "SJS", True),
        ("Pain from surgery, given morphine", "morphine", "Pain", True),
        ("Pain 2/2 fracture, received morphine", "morphine", "Pain", True),
        ("Agitation worse overnight, given Haldol", "Haldol", "Agitation", True),
        ("Had agitation managed w/ lorazepam", "lorazepam", "agitation", True),
        ("Depression with sertraline 50 mg daily", "sertraline", "Depression", True),
        ("Insulin drip for steroid-induced hyperglycemia", "Insulin", "hyperglycemia", True),
        ("Paradoxical seizures in a child given phenytoin", "phenytoin", "seizures", False),
        ("Propranolol-induced hypertension", "Propranolol", "hypertension", False),
        ("Anaphylactic reaction to oral prednisone", "prednisone", "Anaphylactic reaction", False),
        ("He developed seizures 3 h later (diazepam 10 mg)", "diazepam", "seizures", False),
        ("Pregabalin. He presented with myoclonus", "Pregabalin", "myoclonus", False),
        ("Rebound hypertension, clonidine 0.1 mg", "clonidine", "Rebound hypertension", False),
        ("Agranulocytosis, clozapine 300 mg", "clozapine", "Agranulocytosis", False),
        ("Carbamazepine made her seizures worse", "Carbamazepine", "seizures", False),
        ("Her anxiety got worse on sertraline", "sertraline", "anxiety", False),
        ("Increased anxiety since starting Zoloft", "Zoloft", "anxiety", False),
        ("Allergies: Benadryl (hives)", "Benadryl", "hives", False),
        ("Allergic reaction to prednisone with urticaria", "prednisone", "urticaria", False),
        ("Phenytoin toxicity with seizures", "Phenytoin", "seizures", False),
        ("Methadone withdrawal in a newborn", "Methadone", "withdrawal", False),
        ("She stopped clonazepam and had a seizure", "clonazepam", "seizure", False),
        ("Abrupt discontinuation of clonidine, hypertension", "clonidine", "hypertension", False),
        ("Headache from ibuprofen", "ibuprofen", "Headache", False),
        ("Naproxen gave him a headache", "Naproxen", "headache", False),
        ("Sertraline stopped because of anxiety", "Sertraline", "anxiety", False),
        ("Pain resolved when ketorolac was stopped", "ketorolac", "Pain", False),
        ("Agitation 2/2 diazepam", "diazepam", "Agitation", False),
        ("Agitation d/t diazepam", "diazepam", "Agitation", False),
        ("Agitation, likely from the diazepam", "diazepam", "Agitation", False),
        ("D/C diazepam: agitation", "diazepam", "agitation", False),
        ("Zoloft -> anxiety", "Zoloft", "anxiety", False),
        ("He reacted to Benadryl with hives", "Benadryl", "hives", False),
        ("Valproate resulted in seizures", "Valproate", "seizures", False),
        ("Kaposi's sarcoma in a man on imatinib for chronic leukemia", "imatinib", "Kaposi's sarcoma", False),
        ("Had agitation w/ Ativan last admission", "Ativan", "agitation", False),
        ("Agitation w/ diazepam, drug stopped", "diazepam", "Agitation", False),
        ("Insomnia with the trazodone: avoid", "trazodone", "Insomnia", False),
        ("Agitation, ABC-123 10 mg", "ABC-123", "Agitation", False),
        ("Geodon 10 mg, odd feeling", "Geodon", "odd feeling", False),
    ],
)
def test_what_a_drug_treats_is_what_it_is_taken_for_unless_the_words_call_it_caused(
    text: str, drug: str, effect: str, is_use: bool
) -> None:
    assert _taken_for(text, drug, effect) is is_use


@pytest.mark.parametrize(
    ("text", "drug", "effect", "was"),
    [
        ("The dyspnoea predated the first dose of ticagrelor", "ticagrelor", "dyspnoea", True),
        ("Rash present before cephalexin started", "cephalexin", "Rash", True),
        ("Bloody diarrhea 6/d despite mesalamine", "mesalamine", "Bloody diarrhea", True),
        ("Before cephalexin no rash", "cephalexin", "rash", False),
        ("Rash before the second dose of cephalexin", "cephalexin", "Rash", False),
        ("Rash was preceded by cephalexin", "cephalexin", "Rash", False),
        ("Hypoglycemia despite a reduced dose of glyburide", "glyburide", "Hypoglycemia", False),
    ],
)
def test_an_effect_before_a_drug_is_not_its_effect(text: str, drug: str, effect: str, was: bool) -> None:
    assert was_before(text, _mention(text, drug, DRUG), _mention(text, effect, ADE)) is was


@pytest.mark.parametrize(
    ("text", "is_remedy"),
    [
        ("Itching after morphine, Benadryl 25 mg given", True),
        ("Itching after morphine. Benadryl IV w/ good relief", True),
        ("Itching after morphine and Benadryl given", False),
        ("Itching after morphine, rash after Benadryl", False),
        ("Itching after Benadryl given, then morphine", False),
    ],
)
def test_what_is_given_for_the_effect_of_another_drug_did_not_cause_it(text: str, is_remedy: bool) -> None:
    drugs = sorted((_drug(text, name) for name in ("morphine", "Benadryl")), key=lambda drug: drug.start)
    benadryl = next(drug for drug in drugs if drug.text == "Benadryl")
    assert taken_for(text, benadryl, Mention(0, 7, "Itching", ADE, 1.0), drugs) is is_remedy


@pytest.mark.parametrize(
    ("text", "drugs", "effects", "own"),
    [
        (
            "PMH: seizures on Keppra, GERD (omeprazole)",
            ["Keppra", "omeprazole"],
            ["seizures", "GERD"],
            {"seizures": "Keppra", "GERD": "omeprazole"},
        ),
        (
            "Metformin 500 mg daily for diabetes, hypertension well controlled on amlodipine",
            ["Metformin", "amlodipine"],
            ["diabetes", "hypertension"],
            {"diabetes": "Metformin", "hypertension": "amlodipine"},
        ),
        (
            "Rash on lamotrigine, seizures on Keppra",
            ["lamotrigine", "Keppra"],
            ["Rash", "seizures"],
            {"seizures": "Keppra"},
        ),
        ("Diabetes on prednisone", ["prednisone"], ["Diabetes"], {}),
        ("Hypertension worse on lisinopril", ["lisinopril"], ["Hypertension"], {}),
    ],
)
def test_each_disease_of_an_enumeration_has_its_own_drug(
    text: str, drugs: list[str], effects: list[str], own: dict[str, str]
) -> None:
    named = [_mention(text, e, ADE) for e in effects]
    found = each_for_its_own(text, [_drug(text, d) for d in drugs], named)
    assert {effect.text: drug.text for effect, drug in found.items()} == own


def test_a_drug_without_a_generic_name_has_that_of_the_lexicon() -> None:
    text, names = "Itching after morphine, Benadryl 25 mg given", ("morphine", "Benadryl")
    assert taken_for(
        "Pain, given MS Contin", Mention(12, 21, "MS Contin", DRUG, 1.0), Mention(0, 4, "Pain", ADE, 1.0)
    )
    drugs = [_mention(text, name, DRUG) for name in names]
    assert taken_for(text, drugs[1], _mention(text, "Itching", ADE), drugs)


def _taken_for(text: str, drug: str, effect: str) -> bool:
    return taken_for(text, _drug(text, drug), _mention(text, effect, ADE))


def _drug(text: str, name: str) -> Mention:
    start = text.index(name)
    return Mention(start, start + len(name), name, DRUG, 1.0, bundled_lexicon().generic(name))


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
def test_effects_right_behind_a_drug_are_its_own(text: str, drugs: list[str], owner: dict[str, str]) -> None:
    effects = [e for e in ("Hives", "anaphylaxis", "hives", "cough", "itching") if e in text]
    found = listed(text, [_mention(text, d, DRUG) for d in drugs], [_mention(text, e, ADE) for e in effects])
    assert {effect.text: drug.text for effect, drug in found.drug_of.items()} == owner


@pytest.mark.parametrize(
    ("text", "reactions"),
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
def test_a_list_of_reactions_is_called_so_in_front_of_it(text: str, reactions: bool) -> None:
    assert listed(text, [_mention(text, "PCN", DRUG)], []).are_reactions is reactions


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
def test_effects_of_unknown_drugs_are_not_anothers(text: str, drugs: list[str], of_others: set[str]) -> None:
    effects = [e for e in ("rash", "hives", "cough", "itching", "Lipitor - cramps") if e in text]
    found = listed(text, [_mention(text, d, DRUG) for d in drugs], [_mention(text, e, ADE) for e in effects])
    assert {effect.text for effect in found.of_others} == of_others


def _mention(text: str, surface: str, label: str) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 1.0)
