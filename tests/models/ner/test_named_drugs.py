"""Drugs that the tagger's lexicon does not have get the names of the bundled tables; classes are found."""

from __future__ import annotations

import pytest

from models.ner.named_drugs import with_named_drugs
from models.types import ADE, DRUG, Mention


def mention(text: str, surface: str, label: str = DRUG, generic: str | None = None) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 0.9, generic)


@pytest.mark.parametrize(
    ("text", "surface", "generic"),
    [
        ("moderna", "moderna", "elasomeran"),
        ("Spikevax", "Spikevax", "elasomeran"),
        ("cybalta made me sick", "cybalta", "duloxetine"),
        ("addy keeps me up", "addy", "dextroamphetamine/amphetamine"),
        ("pfizer stock", "pfizer", None),
        ("red devil chemo", "red devil chemo", "doxorubicin"),
        ("homebrew", "homebrew", None),
    ],
)
def test_a_tagged_drug_gets_its_generic_name(text: str, surface: str, generic: str | None) -> None:
    (made,) = with_named_drugs(text, [mention(text, surface)])
    assert (made.text, made.generic, made.kind, made.members) == (surface, generic, None, ())


def test_a_class_or_regimen_is_a_drug_with_its_members_where_it_is_named_first() -> None:
    text = "Folfox gave me hives, antiemetics did nothing. No more FOLFOX"
    hives = mention(text, "hives", ADE)
    found = with_named_drugs(text, [hives])
    assert [(m.text, m.label, m.generic, m.kind) for m in found] == [
        ("Folfox", DRUG, "FOLFOX", "regimen"),
        ("hives", ADE, None, None),
        ("antiemetics", DRUG, "antiemetic", "class"),
        ("FOLFOX", DRUG, "FOLFOX", "regimen"),
    ]
    assert found[0].members == ("leucovorin", "fluorouracil", "oxaliplatin")
    assert "ondansetron" in found[2].members
    assert (found[1], found[3].members) == (hives, ())
    tagged = with_named_drugs(text, [mention(text, "antiemetics"), hives])
    assert [(m.text, m.score) for m in tagged if m.generic == "antiemetic"] == [("antiemetics", 0.9)]


@pytest.mark.parametrize(
    ("text", "tagged", "found"),
    [
        ("20mgLexapro and nausea", "", "Lexapro=escitalopram"),
        ("Lexapro10mg, Lexapro20mg", "Lexapro10mg", "Lexapro10mg=escitalopram Lexapro=escitalopram"),
        ("#thanksOzempic @teamHumira", "", "Ozempic=semaglutide"),
        ("#lexaproproblems", "lexaproproblems", "lexaproproblems=escitalopram"),
        ("amoxicillin/clav: hives", "amoxicillin clav", "amoxicillin/clav=amoxicillin/clavulanic_acid"),
        ("pip/tazo: hives", "pip", "pip/tazo=piperacillin/tazobactam"),
        ("hives on pip/tazo", "", "pip/tazo=piperacillin/tazobactam"),
        ("hives on pip/tazo", "tazo", "pip/tazo=piperacillin/tazobactam"),
        ("clav/amoxicillin", "amoxicillin", "clav/amoxicillin=amoxicillin/clavulanic_acid"),
        (
            "amoxicillin/Zoloft or Zoloft/day",
            "amoxicillin Zoloft",
            "amoxicillin=amoxicillin Zoloft=sertraline",
        ),
        ("planet10", "planet10", "planet10=None"),
    ],
)
def test_names_are_found_as_people_write_them(text: str, tagged: str, found: str) -> None:
    mentions = [mention(text, surface) for surface in tagged.split()]
    made = with_named_drugs(text, mentions)
    assert [f"{m.text}={m.generic}".replace(" ", "_") for m in made] == found.split()
    assert all(text[m.start : m.end] == m.text for m in made)


def test_a_known_drug_stays_and_no_class_is_found_within_a_mention_or_a_handle() -> None:
    text = "@statins statin cramps after Lipitor #statins"
    known = [mention(text, "statin cramps", ADE), mention(text, "Lipitor", DRUG, "atorvastatin")]
    found = with_named_drugs(text, known)
    assert found[:2] == known
    assert [text[m.start : m.end] for m in found[2:]] == ["statins"] and found[2].start == text.rindex(
        "s"
    ) - 6


def test_a_text_of_thousands_of_names_has_the_members_once() -> None:
    found = with_named_drugs("antibiotics " * 5000, [])
    assert len(found) == 5000
    assert [i for i, m in enumerate(found) if m.members] == [0]
