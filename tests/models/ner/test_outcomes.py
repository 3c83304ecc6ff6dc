"""Deaths and hospital stays of others that a text blames on a drug, by rules, in pairs of texts."""

from __future__ import annotations

import pytest

from models.drugs import DrugLexicon
from models.ner import untagged_events
from models.ner.untagged_events import named_outcomes
from models.types import ADE, DRUG, OTHER, Mention

DRUGS = DrugLexicon({"taxol": "paclitaxel", "singulair": "montelukast", "vioxx": "rofecoxib"})


def named(text: str, *further: Mention) -> list[str]:
    drugs = [Mention(s.start, s.end, text[s.start : s.end], DRUG, 1.0) for s, _ in DRUGS.find(text)]
    made = named_outcomes(text, [*drugs, *further])
    assert all((m.label, m.status, text[m.start : m.end]) == (ADE, OTHER, m.text) for m in made)
    return [m.text for m in made]


#: A text, its outcome, and a text that differs in what it says of the drug, the person or the outcome.
PAIRS = [
    (
        "My mother died after her second dose of Taxol.",
        "died",
        "My mother died before her second dose of Taxol.",
    ),
    ("My son was hospitalized on Singulair", "hospitalized", "My son was hospitalized, I am on Singulair"),
    (
        "our neighbor's in the ICU because of Vioxx",
        "in the ICU",
        "our neighbor works in the ICU, I take Vioxx",
    ),
    (
        "Dad passed away three weeks after the Taxol",
        "passed away",
        "Dad passed away in May. Taxol is on sale",
    ),
    ("Vioxx killed my grandfather.", "killed my grandfather", "Vioxx killed my headache."),
    (
        "Singulair put our little boy in the psych ward",
        "put our little boy in the psych ward",
        "Singulair put our little boy in a good mood",
    ),
    (
        "After one Taxol infusion my aunt was rushed to hospital",
        "rushed to hospital",
        "After one Taxol infusion my aunt was home again",
    ),
    ("hubby ended up in the ER from Vioxx", "ended up in the ER", "hubby ended up with no Vioxx"),
    (
        "My 3 year old daughter had to be admitted to the hospital due to Singulair",
        "admitted to the hospital",
        "My 3 year old daughter was never admitted, not even on Singulair",
    ),
    ("A friend of mine died on Vioxx last year", "died", "A friend of mine almost died on Vioxx last year"),
    (
        "my late husband, who took it daily, died from Vioxx",
        "died",
        "my late husband, who took it daily, died without Vioxx",
    ),
    (
        "Her mom went into a coma while on Taxol",
        "went into a coma",
        "Her mom went into a shop while on Taxol",
    ),
    (
        "my best friend was taken by ambulance within an hour of Singulair",
        "taken by ambulance",
        "my best friend drives an ambulance and takes Singulair",
    ),
    (
        "His brother is on life support since the Taxol",
        "on life support",
        "His brother is on holiday since the Taxol",
    ),
    ("Our dog died following a Vioxx tablet", "died", "Our dog would have died but for a Vioxx tablet"),
    ("granny was intubated due to Taxol", "intubated", "granny was delighted due to Taxol"),
    (
        "My sister-in-law died in her sleep after starting Vioxx",
        "died in her sleep",
        "My sister-in-law died laughing when she read of Vioxx",
    ),
    (
        "thanks to Singulair my poor cousin landed in the hospital",
        "landed in the hospital",
        "thanks to Singulair my poor cousin works in the hospital",
    ),
    ("my uncle died of an overdose of Vioxx", "died", "my uncle died of old age, no Vioxx"),
    ("Vioxx hospitalised my dad", "hospitalised my dad", "Vioxx bills upset my dad"),
]


@pytest.mark.parametrize(("text", "outcome", "other"), PAIRS)
def test_what_a_drug_did_to_somebody_is_named_and_nothing_else(text: str, outcome: str, other: str) -> None:
    assert named(text) == [outcome]
    assert named(other) == []


def test_no_outcome_is_passed_over_for_want_of_a_stem(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for pair in PAIRS for text in pair]
    gated = [named(text) for text in texts]
    monkeypatch.setattr(untagged_events, "STEMS", ("",))
    assert [named(text) for text in texts] == gated


def test_without_a_drug_or_inside_of_another_mention_there_is_none() -> None:
    assert named("My mother died after her second dose.") == []
    text = "Our dog died of seizures on Vioxx"
    found = Mention(8, 24, text[8:24], ADE, 0.9)
    assert named(text, found) == []
