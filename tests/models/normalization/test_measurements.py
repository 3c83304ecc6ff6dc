"""Readings of what is measured, in words."""

from __future__ import annotations

import pytest

from models.normalization.measurements import end_with_reading, in_words, only_reading


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plt 210\u219238", "plt decreased"),
        ("platelets 38,000 -> 210,000", "platelets increased"),
        ("\u2191lfts", "increased lfts"),
        ("blood sugar of 45", "blood sugar low"),
        ("cholesterol went from 280 to 160", "cholesterol went lower"),
        ("blood sugar of 120", "blood sugar of 120"),
        ("5 -> 5 mg", "; mg"),
        ("resp rate 6", "respiratory rate low"),
        ("respirations 44", "respiratory rate high"),
        ("respirations 16", "respirations 16"),
        ("lithium level 2.1", "lithium level high"),
        ("lithium 300 mg", "lithium 300 mg"),
        ("digoxin level of 4.2", "digoxin level high"),
        ("pH 7.1", "ph low"),
        ("pH 7.4", "pH 7.4"),
        ("urine pH 7.1", "urine pH 7.1"),
        ("albumin 1.9", "albumin low"),
        ("albumin 40", "albumin 40"),
        ("microalbumin 2.5", "microalbumin 2.5"),
        ("K 6.4", "potassium high"),
        ("K+ 2.8", "potassium low"),
        ("k 4.1", "k 4.1"),
        ("Na 118", "sodium low"),
        ("plts 22k", "platelets low"),
        ("Hb 61", "hemoglobin low"),
        ("INR >10", "international normalised ratio high"),
        ("SBP <140", "SBP <140"),
        ("SBP 70s", "blood pressure low"),
        ("sats 82%", "oxygen saturation low"),
        ("platelets 20%", "platelets 20%"),
        ("ALT 12x ULN", "ALT increased"),
        ("international normalized ratio 9.4", "international normalised ratio high"),
        ("alanine aminotransferase 612", "alanine aminotransferase high"),
        ("absolute neutrophil count of 0.3", "neutrophils low"),
        ("mean arterial pressure 48", "blood pressure low"),
        ("12 hr 30", "12 hr 30"),
        ("100 mg 3", "100 mg 3"),
        ("don't 40", "don't 40"),
        ("b12 is 140", "vitamin b12 low"),
        ("vitamin b12 of 400", "vitamin b12 of 400"),
        ("vitamin d level dropped to 11", "vitamin d low"),
        ("vitamin d 2000 units", "vitamin d 2000 units"),
        ("ferritin 6", "ferritin low"),
        ("ferritin jumped to 1,800", "ferritin high"),
        ("magnesium 4.2", "magnesium high"),
        ("magnesium 400 mg", "magnesium 400 mg"),
        ("magnesium 5 mg", "magnesium 5 mg"),
        ("hematocrit 22", "hematocrit low"),
        ("cortisol was 1.2", "cortisol low"),
        ("phosphorus 0.5", "phosphorus low"),
        ("no number", "no number"),
    ],
)
def test_values_changes_and_arrows_are_put_into_words(text: str, words: str) -> None:
    assert in_words(text) == words


def test_a_mention_ends_with_the_reading_that_begins_in_it() -> None:
    text = "my blood sugar was in the 40s again"
    assert text[3 : end_with_reading(text, 3, 18)] == "blood sugar was in the 40s"
    assert end_with_reading("nausea for 40 days", 0, 6) == len("nausea")
    assert end_with_reading("potassium was 4.1 today", 0, 13) == len("potassium was 4.1")


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("respirations 16", "normal"),
        ("HR 72", "normal"),
        ("BP 120/80 mmHg", "normal"),
        ("potassium 4.1 mEq/L", "normal"),
        ("oxygen saturation 97% on RA", "normal"),
        ("Cr 0.9 stable", "normal"),
        ("creatine kinase of 12,000", "high"),
        ("sodium 118", "low"),
        ("K 5.3", None),
        ("BP 92/50", None),
        ("SBP <120", None),
        ("hypotension, BP 120/80", None),
        ("HR 72 to 130", None),
        ("rash", None),
    ],
)
def test_a_text_is_only_a_reading_where_it_has_nothing_else(text: str, level: str | None) -> None:
    assert only_reading(text) == level
