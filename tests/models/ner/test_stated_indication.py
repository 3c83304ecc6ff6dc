"""Effects that are what the source states as the indication, and what the text calls harm all the same."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from models.ner.stated_indication import KnownUses
from models.types import ADE, WITHDRAWAL, Mention, Stated


@pytest.mark.parametrize(
    ("marked", "pt", "drug", "indication", "is_use"),
    [
        # In other words, by its code, and what belongs to it.
        ("I [felt so low] for years", "Depressed mood", "fluoxetine", "depression", True),
        ("my [chest burns] after meals", "Dyspepsia", "omeprazole", "GERD", True),
        ("my [chest burns] after meals", "Dyspepsia", "ibuprofen", "GERD", False),
        ("I [lost 10 pounds]", "Weight decreased", "phentermine", "for weight loss", True),
        # By the words, without a code.
        ("the [zoomies] are gone", None, "gabapentin", "Zoomies at night", True),
        ("the [wobbles] are gone", None, "gabapentin", "Zoomies at night", False),
        # Another use of the drug than the stated one is no excuse.
        ("[very low] since", "Depression", "bupropion", "to stop smoking", False),
        ("[very low] since", "Depression", "bupropion", None, False),
        ("[very low] since", "Depression", "bupropion", " ", False),
        # Harm, though it is what the drug is for.
        ("more [anxiety] at first", "Anxiety", "paroxetine", "anxiety", False),
        ("[more anxiety] at first", "Anxiety", "paroxetine", "anxiety", False),
        ("it gave me [anxiety]", "Anxiety", "paroxetine", "anxiety", False),
        ("[rebound headache]", "Headache", "sumatriptan", "headache", False),
        ("[acne was getting worse]", "Acne", "isotretinoin", "acne", False),
        ("the [acne] got worse", "Acne", "isotretinoin", "acne", False),
        ("[insomnia] from it", "Insomnia", "zolpidem", "insomnia", False),
        ("when I stopped I had [insomnia]", "Insomnia", "zolpidem", "insomnia", False),
    ],
)
def test_an_effect_is_a_use_where_the_source_states_it_and_the_text_does_not_call_it_harm(
    marked: str, pt: str | None, drug: str, indication: str | None, is_use: bool
) -> None:
    before, surface, after = re.split(r"[][]", marked)
    text = before + surface + after
    effect = Mention(len(before), len(before) + len(surface), surface, ADE, 0.9)
    uses = KnownUses(Stated((drug,), indication))
    assert uses.explain(text, effect, pt, [drug]) is is_use
    assert not uses.explain(text, replace(effect, label=WITHDRAWAL), pt, [drug])


def test_what_belongs_to_the_indication_is_known_by_the_drugs() -> None:
    uses = KnownUses(Stated(("Prilosec",), "severe heartburn, esp. at night"))
    assert uses.terms == {"dyspepsia"}
    assert uses.wanted([]) == uses.terms < uses.wanted(["omeprazole"])
    assert "gastrooesophageal reflux disease" in uses.wanted(["omeprazole"])
    assert KnownUses(Stated()).wanted(["omeprazole"]) == frozenset()
