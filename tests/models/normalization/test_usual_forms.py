"""What short forms in the mentions of a post are read as."""

from __future__ import annotations

import pytest

from models.normalization.queries import query_of
from models.normalization.short_forms import usual_expansions
from models.types import ADE, Mention


def read(text: str, mention: str) -> str:
    start = text.index(mention)
    end = start + len(mention)
    found = Mention(start, end, mention, ADE, 0.9)
    return query_of(text, found, [found], usual_expansions(text, start, end)).surface


@pytest.mark.parametrize(
    ("text", "mention", "surface"),
    [
        ("My OH is back, I faint.", "OH", "orthostatic hypotension"),
        ("Got two UTIs since.", "two UTIs", "two urinary tract infections"),
        ("it gave me GERD", "GERD", "gastroesophageal reflux disease"),
        ("worse IBS than ever", "worse IBS", "worse irritable bowel syndrome"),
        ("Bad RLS at night.", "Bad RLS", "Bad restless legs syndrome"),
        ("a H/A on day 2", "H/A", "headache"),
        ("The SOB began in week two", "SOB", "shortness of breath"),
        ("severe LBP from it", "severe LBP", "severe low back pain"),
        ("some VB between periods", "VB", "vaginal bleeding"),
        ("it ended in SDH", "SDH", "subdural hematoma"),
        # What is expected is no effect, or several meanings are, or none; other words follow.
        ("my IUD moved, I blame the IUD", "IUD", "IUD"),
        ("ED since I took it", "ED", "ED"),
        ("SSRI discontinuation was awful", "SSRI discontinuation", "SSRI discontinuation"),
        ("GI upset and BP changes", "GI upset", "GI upset"),
        ("my RA got worse", "RA", "RA"),
        ("two BMs a day", "two BMs", "two BMs"),
        ("a BS crash at night", "BS crash", "BS crash"),
        ("XQZ attacks", "XQZ attacks", "XQZ attacks"),
        ("TEN times more tired", "TEN times more tired", "TEN times more tired"),
        # Words in small letters, shouted words, parts of others.
        ("a rash under my dress", "rash under my dress", "rash under my dress"),
        ("ten times more tired", "ten times more tired", "ten times more tired"),
        ("IT GAVE ME A RASH UNDER MY DRESS AND NOTHING ELSE", "DRESS", "DRESS"),
        ("TEN TIMES MORE TIRED EVERY DAY", "TEN TIMES MORE TIRED", "TEN TIMES MORE TIRED"),
        ("a non-IBS", "non-IBS", "non-IBS"),
        ("I felt GOOD and so SAD", "SAD", "SAD"),
    ],
)
def test_one_expected_meaning_is_read_and_others_are_left(text: str, mention: str, surface: str) -> None:
    assert read(text, mention) == surface
