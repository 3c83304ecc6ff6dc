"""Lists of short forms: each part that is an effect is a mention, with the relations of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from models.normalization.short_forms import with_parts
from models.types import ADE, DRUG, INDICATION, Expansion, Mention, Relation, TaggedText


def tagged(text: str, *surfaces: str, label: str = ADE) -> TaggedText:
    places = [(text.index(s), text.index(s) + len(s)) for s in surfaces]
    return TaggedText(tuple(Mention(a, b, text[a:b], label, 0.8, status="own") for a, b in places))


def parts(text: str, *surfaces: str, label: str = ADE, **known: Any) -> list[tuple[str, str]]:
    """The mentions of a text, each with its long form."""
    expansions: Sequence[Expansion] = known.pop("expansions", ())
    read, added = with_parts(text, tagged(text, *surfaces, label=label), expansions, **known)
    long = {(e.start, e.end): e.long_form for e in added}
    assert all(text[m.start : m.end] == m.text for m in read.mentions)
    return [(m.text, long.get((m.start, m.end), "")) for m in read.mentions]


N, V, D = ("N", "nausea"), ("V", "vomiting"), ("D", "diarrhea")
SOB, CP = ("SOB", "shortness of breath"), ("CP", "chest pain")


@pytest.mark.parametrize(
    ("text", "surfaces", "found"),
    [
        ("Ozempic: N/V/D all day", ["/V/D all day"], [N, V, D]),
        ("n/v on metformin", [], [("n", "nausea"), ("v", "vomiting")]),
        ("N&V, N+V+D", [], [N, V, N, V, D]),
        ("SOB/CP on adenosine", ["SOB/CP"], [SOB, CP]),
        ("HA/N/V from it", ["HA", "N/V"], [("HA", "headache"), N, V]),
        ("F/C after it", ["F/C"], [("F", "fever"), ("C", "chills")]),
        ("rash and N/V", ["rash", "N/V"], [("rash", ""), N, V]),
        # Without a mention, of something else, and no lists.
        ("SOB/CP on adenosine", [], []),
        ("had a D/C, c/f SJS, V/Q scan", ["D/C"], [("D/C", "")]),
        ("he/she and/or n/a am/pm 24/7 N/V/X", [], []),
        ("U/A and CXR/CT", ["CXR/CT"], [("CXR/CT", "")]),
        ("@n/v www.n/v n/v-like", [], []),
        ("headache/nausea", ["headache", "nausea"], [("headache", ""), ("nausea", "")]),
    ],
)
def test_each_part_of_a_list_of_a_post_is_an_effect(
    text: str, surfaces: list[str], found: list[tuple[str, str]]
) -> None:
    assert parts(text, *surfaces) == found


@pytest.mark.parametrize(
    ("mention", "names"),
    [
        ("confusion and nausea", ["confusion", "nausea"]),
        ("constipation or dry mouth", ["constipation", "dry mouth"]),
        ("felt so bloated and swollen", ["bloated", "swollen"]),
        ("LIGHT HEADED/OFF BALANCE", ["LIGHT HEADED", "OFF BALANCE"]),
        ("severe headache, and mild nausea", ["severe headache", "mild nausea"]),
        ("chills, fever & hair loss", ["chills", "fever", "hair loss"]),
        # One name, what has a part that is none, and what is no list.
        ("pins and needles", ["pins and needles"]),
        ("muscle and joint pain", ["muscle and joint pain"]),
        ("sick and tired of it", ["sick and tired of it"]),
        ("weight gain or loss", ["weight gain or loss"]),
        ("in and out of sleep", ["in and out of sleep"]),
        ("fingers and toes", ["fingers and toes"]),
        ("nausea", ["nausea"]),
    ],
)
def test_each_name_of_a_term_is_an_effect(mention: str, names: list[str]) -> None:
    text = f"it gave me {mention}, pt reports"
    assert parts(text, mention) == [(name, "") for name in names]
    assert parts(text, mention, label=INDICATION) == [(mention, "")]


def test_a_verbatim_has_the_parts_without_a_mention_and_an_indication_has_none() -> None:
    assert parts("SOB/CP", verbatim=True) == [SOB, CP]
    assert parts("HTN/DM", "HTN/DM", label=INDICATION, verbatim=True) == [("HTN/DM", "")]


def test_in_a_clinical_sentence_the_given_expansions_say_what_parts_mean() -> None:
    text = "SOB/CP, no N/V on it"
    short = Expansion(0, 3, "SOB", "shortness of breath", 1.0, "dictionary")
    pain, child = (Expansion(4, 6, "CP", form, 0.9, "dictionary") for form in ("chest pain", "Child-Pugh"))
    assert parts(text, "SOB/CP", clinical=True) == [("SOB/CP", "")]
    assert parts(text, "SOB/CP", clinical=True, expansions=[short, child]) == [("SOB/CP", "")]
    assert parts(text, "SOB/CP", "N/V", clinical=True, expansions=[short, pain]) == [SOB, CP, N, V]


def test_a_part_has_the_relations_the_label_and_the_status_of_the_whole() -> None:
    text = "N/V and rash on MTX"
    drug = Mention(16, 19, "MTX", DRUG, 0.9, "methotrexate")
    whole = TaggedText(
        (*tagged(text, "N/V", "rash").mentions, drug),
        (Relation(2, 0, 0.7), Relation(2, 1, 0.6)),
    )
    long = Expansion(0, 3, "N/V", "nausea and vomiting", 1.0, "dictionary")
    read, expansions = with_parts(text, whole, [long], clinical=True)
    assert [(m.text, m.status, m.score) for m in read.mentions[:2]] == [("N", "own", 0.8), ("V", "own", 0.8)]
    assert read.mentions[2:] == whole.mentions[1:]
    assert [(r.head, r.tail, r.score) for r in read.relations] == [(3, 0, 0.7), (3, 1, 0.7), (3, 2, 0.6)]
    assert [(e.start, e.end) for e in expansions] == [(0, 1), (0, 3), (2, 3)]
    again = with_parts(text, read, expansions, clinical=True)
    assert again == (read, expansions)
    assert with_parts("rash on MTX", whole, [long]) == (whole, (long,))
