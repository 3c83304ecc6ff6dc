"""Definitions of short forms in a text, and what counts as a short form."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.acronym.definitions import best_long_form, definitions, long_form_by_next, short_forms
from models.acronym.model import CLINICAL
from models.tables import read_tsv
from models.types import Span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("heat shock protein (HSP) rose", {"HSP": "heat shock protein"}),
        ("acute toxic epidermal necrolysis (TEN)", {"TEN": "toxic epidermal necrolysis"}),
        ("acetylcholine (ACh) fell", {"ACh": "acetylcholine"}),
        ("5-fluorouracil (5-FU) was given", {"5-FU": "5-fluorouracil"}),
        ("anti-tumour necrosis factor (TNF) therapy", {"TNF": "anti-tumour necrosis factor"}),
        ("electrocardiogram (ECG; 12 leads)", {"ECG": "electrocardiogram"}),
        ("white blood cells (WBC, low)", {"WBC": "white blood cells"}),
        (
            "acute kidney injury (AKI) after vancomycin, then deep vein thrombosis (DVT)",
            {"AKI": "acute kidney injury", "DVT": "deep vein thrombosis"},
        ),
        ("myocardial infarction (MI). Later mitral insufficiency (MI).", {"MI": "myocardial infarction"}),
        ("heat shock protein (XYZ)", {}),
        (
            "TEN (toxic epidermal\nnecrolysis) and toxic  epidermal\nnecrolysis",
            {"TEN": "toxic epidermal necrolysis"},
        ),
        (
            "severe aplastic anemia (AA) and MM (multiple myeloma)",
            {"AA": "aplastic anemia", "MM": "multiple myeloma"},
        ),
        ("an adeno-associated virus (AAV)", {"AAV": "adeno-associated virus"}),
        ("no long form (HSP) here", {}),
        ("(HSP)", {}),
        ("he was ill (see Figure 2)", {}),
        ("a dose (100 mg) of it", {}),
        ("unclosed bracket (HSP", {}),
        ("HSP ()", {}),
        ("", {}),
    ],
)
def test_a_definition_is_a_long_form_beside_its_short_form(text: str, expected: dict[str, str]) -> None:
    assert definitions(text) == expected


@pytest.mark.parametrize(
    ("short_form", "text", "expected"),
    [
        ("HSP", "the heat shock protein", "heat shock protein"),
        # Only the first letter must begin a word.
        ("SP", "heat shock protein", "shock protein"),
        ("CNS", "central nervous system", "central nervous system"),
        ("CNS", "brain system", None),
        ("EAT", "great", None),
        ("AKI", "AKI", None),
        ("AKI", "acute AKI", None),
        ("TNF-a", "tumour necrosis factor alpha", "tumour necrosis factor alpha"),
        ("AB", "", None),
        ("AB", "a one two three four five b", None),
    ],
)
def test_a_long_form_has_its_short_forms_letters(short_form: str, text: str, expected: str | None) -> None:
    assert best_long_form(short_form, text) == expected


@given(st.text("ABCab5- ", min_size=1, max_size=6), st.text("ABCabc5 -(x", max_size=40))
def test_a_long_form_ends_its_text_and_is_longer_than_the_short_form(short_form: str, text: str) -> None:
    long_form = best_long_form(short_form, text)
    if long_form is not None:
        assert text.rstrip().endswith(long_form)
        assert len(long_form) > len(short_form)
        letters = iter(long_form.lower())
        assert all(c in letters for c in short_form.lower() if c.isalnum())


def test_a_word_in_brackets_behind_a_known_short_form_is_rarely_its_definition() -> None:
    known = {"CT": ("computed tomography",), "HTN": ("Hypertension",)}
    text = "CT (chest), MR (moderate), HTN (hypertension)."
    assert definitions(text, known) == {"MR": "moderate", "HTN": "hypertension"}
    assert definitions("CT (cardiac thrombus)", known) == {"CT": "cardiac thrombus"}
    assert definitions("computed tomography (CT)", known) == {"CT": "computed tomography"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Prednisone (PO), promethazine (PRN), carbamazepine (CR), KCl PO PRN.", {}),
        ("complete response (CR), creatinine (CR)", {"CR": "complete response"}),
        ("creatinine (CR)", {"CR": "creatinine"}),
        ("carbamazepine controlled-release (CR)", {"CR": "controlled-release"}),
        # With the dose.
        ("Pantoprazole 40 mg oral (PO), prednisone by mouth (PO), KCl PO.", {}),
        ("Promethazine 25 mg as needed (PRN), then tramadol PRN.", {}),
        ("Rapamycin/sirolimus (SR)", {"SR": "Rapamycin/sirolimus"}),
    ],
)
def test_how_a_drug_is_taken_is_no_short_form_of_its_name(text: str, expected: dict[str, str]) -> None:
    """Each later PO and PRN was read as the drug, and suspected."""
    known = {"PO": ("by mouth",), "PRN": ("as needed",), "CR": ("controlled release", "creatinine")}
    assert definitions(text, known) == expected


def test_definitions_of_a_text_without_white_space_take_linear_time() -> None:
    """Each bracket has a character that the word of 100,000 characters in front of it lacks."""
    text = "z" * 80_000 + "".join(f"(A{chr(0x4E00 + i)})" for i in range(5_000))
    started = time.process_time()
    assert definitions(text) == {}
    assert time.process_time() - started < 15


@given(st.text("ABab5();, .\n-\U0001f600", max_size=80))
@example("A555(A  5)")
def test_the_definitions_of_any_text_consist_of_its_words(text: str) -> None:
    for short_form, long_form in definitions(text).items():
        # Blanks in a row are one blank.
        assert short_form in " ".join(text.split())
        assert all(word in text for word in long_form.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MTX-induced pneumonitis", ["MTX"]),
        ("an anti-MTX effect", ["MTX"]),
        ("given 5-FU and MTX.", ["5-FU", "MTX"]),
        ("HbA1c and mRNA", ["HbA1c", "mRNA"]),
        ("A B c", []),
        ("SOB s/p CABG, H/O gout", ["SOB", "s/p", "CABG", "H/O"]),
        ("PET/CT or and/or km/h", ["PET", "CT"]),
        ("the dose in ms, day 12", []),
        ("ALT 320 U/L, AST 60\u00a0U/L, U/L ptosis", ["ALT", "AST", "U/L"]),
        # Shorthand in small letters is whole words, of which the first letter may be a capital.
        ("Pt seen, meds prn and tid w/ food", ["Pt", "meds", "prn", "tid", "w/"]),
        ("apt to bid-ask, txt, pt-days, pt/family, vanc/h", []),
        ("vanc-induced, etoh-related, Amio-associated", ["vanc", "etoh", "Amio"]),
        ("on vanc/zosyn, ceftriaxone/azithro, tacro/MMF", ["vanc", "azithro", "tacro", "MMF"]),
    ],
)
def test_short_forms_are_words_with_capitals(text: str, expected: list[str]) -> None:
    assert [text[s.start : s.end] for s in short_forms(text, Span(0, len(text)))] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. AL Smith, Mr PD Jones and Prof. CP O'Neil", []),
        ("seen by Dr RA J. Khan, MD", ["MD"]),
        ("told my Dr. MS is worse", ["MS"]),
        ("seen by Dr. CT showed a mass", ["CT"]),
        ("the Dr. ED visit", ["ED"]),
        ("Dr. Smith: MS. Lee has RA", ["MS", "RA"]),
        ("MS Patel has MS", ["MS", "MS"]),
        ("ST elevation, ST-segment changes, ST depression, ST/T changes and ST and T waves", []),
        ("ST at 120, ST to assess swallowing, PPD ST negative", ["ST", "ST", "PPD", "ST"]),
        ("took TEN tablets, TEN mg TEN times", []),
        ("TEN days after lamotrigine, SJS/TEN, TEN 10 mg later", ["TEN", "SJS", "TEN", "TEN"]),
    ],
)
def test_initials_of_a_person_parts_of_an_ecg_and_numbers_are_none(text: str, expected: list[str]) -> None:
    found = [text[s.start : s.end] for s in short_forms(text, Span(0, len(text)))]
    assert [short for short in found if short.isupper() and len(short) > 1] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SBP 70 after lisinopril", "systolic blood pressure"),
        ("SBP in the 80s", "systolic blood pressure"),
        ("SBP on ceftriaxone x 10 days", None),
        ("HR dropped to 38", "heart rate"),
        ("HR 0.72 (95% CI 0.6-0.9)", None),
        ("RR 6, sats 84%", "respiratory rate"),
        ("RR 1.5 (95% CI 1.1-2.0)", None),
        ("CK of 12,000", "creatine kinase"),
        ("CK 7 and CK 20", None),
        ("MS changes on Dilaudid", "mental status"),
        ("MS 4 mg IV", None),
        ("PE: lungs clear", "physical examination"),
        ("PE: heparin gtt", None),
        ("d/c lisinopril given cough", "discontinue"),
        ("d/c home on lisinopril", None),
    ],
)
def test_what_follows_a_short_form_may_decide_its_long_form(text: str, expected: str | None) -> None:
    short_form = text.split(maxsplit=1)[0].rstrip(":")
    known = [
        expected or "", "systolic blood pressure", "heart rate", "respiratory rate",
        "creatine kinase", "mental status", "physical examination", "discontinue",
    ]  # fmt: skip
    assert long_form_by_next(text, Span(0, len(short_form)), short_form, known) == expected
    assert long_form_by_next(text, Span(0, len(short_form)), short_form, ["hour"]) is None


def test_short_forms_are_of_the_sentence_and_the_shorthand_of_the_dictionary_is_found() -> None:
    assert short_forms("MS and RA. HA", Span(7, 10)) == [Span(7, 9)]
    # The words in small letters are named in the pattern too.
    rows = [row[0] for row in read_tsv(CLINICAL, ("short_form", "long_form"))]
    shorthand = {short for short in rows if short.islower() and "/" not in short}
    assert {"prn", "pts", "qhs"} <= shorthand
    for short in shorthand:
        for text in (short, short.capitalize()):
            assert short_forms(text, Span(0, len(text))) == [Span(0, len(text))]
