"""Texts without labels that are made of those with labels."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from models.types import ADE, DRUG
from training.common.corpora import GoldMention, GoldText, read_psytar
from training.ner.distillation.recombined import DRUGS, EFFECTS, drug_names, lay_phrases, recombined, replaced
from training.teaching.readers import phrases

TEXT = GoldText(
    "x",
    "Paxil: dry mouth, no sleep.",
    (GoldMention(18, 26, ADE), GoldMention(0, 5, DRUG), GoldMention(7, 16, ADE), GoldMention(11, 16, ADE)),
)
LAY = {1: ["itch"], 2: ["cold feet"]}


def test_effects_are_replaced_by_as_many_words_and_drugs_by_drugs() -> None:
    rng = random.Random(1)
    made = Counter(replaced(TEXT, LAY, ["zoloft"], rng) for _ in range(4000))
    assert set(made) == {
        f"{drug}: {one}, {other}."
        for drug in ("Paxil", "zoloft")
        for one in ("dry mouth", "cold feet")
        for other in ("no sleep", "cold feet")
    }
    for words, share in (("zoloft", DRUGS), ("cold feet,", EFFECTS), (", cold feet", EFFECTS)):
        assert abs(sum(n for text, n in made.items() if words in text) / 4000 - share) < 0.04


def test_what_replaces_is_neither_held_out_nor_a_short_name() -> None:
    lay = lay_phrases()
    assert all(len(phrase.split()) == length for length in (1, 2, 5) for phrase in lay[length])
    assert min(len(phrase.split()) for phrase in lay[6]) == 6
    held_out = {g.mention for g in phrases("held_out")} - {g.mention for g in phrases("train")}
    assert not held_out & {phrase for same in lay.values() for phrase in same}
    names = drug_names()
    assert {"zoloft", "sertraline"} <= set(names)
    assert min(map(len, names)) == 4


def test_each_run_has_the_same_texts_and_none_is_a_labelled_one(corpus: Path) -> None:
    made = recombined(corpus, 200)
    assert made == recombined(corpus, 200)
    assert made[:50] == recombined(corpus, 50)[:50]
    assert 190 < len(made) == len(set(made))
    labelled = {
        t.text for part in ("train", "dev", "test") for t in read_psytar(corpus / f"psytar/ner_{part}.conll")
    }
    assert not labelled & set(made)
    assert recombined(corpus, 0) == []
