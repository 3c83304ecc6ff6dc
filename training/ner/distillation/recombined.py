"""Texts without labels that are made of those with labels, for taggers that learn from others.

Effects are replaced by lay phrases of the teaching corpus that have as many words, and drugs by names of the
lexicon. The teachers say what is what in such a text, so it need not make sense everywhere. Nothing of the
ADE corpus and nothing that is held out is used.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import typer

from models import drugs
from models.releases.manifest import TrainingData
from models.tables import read_tsv
from models.types import DRUG
from training.common.corpora import GoldText, read_psytar
from training.teaching.batches import MARKED
from training.teaching.readers import gold_texts, phrases, teaching_sources

#: Shares of the effects and of the drugs of a text that are replaced.
EFFECTS, DRUGS = 0.6, 0.5
#: Longer mentions are replaced by any phrase of so many words or more.
WORDS = 6
#: Shorter names of drugs are words of the language too often.
NAME = 4
SEED = 7
#: Draws for each text at most: one in which nothing is replaced is drawn again.
MOST_TRIES = 100


def recombined(data: Path, number: int) -> list[str]:
    """So many texts, the same in every run; of equal ones one is kept.

    Raises typer.BadParameter where the teaching corpus is missing, as in an installed wheel.
    """
    pool, rng = training_texts(data), random.Random(SEED)
    known, lay, names = {t.text for t in pool}, lay_phrases(), drug_names()
    if number and not lay:
        raise typer.BadParameter("--recombined: the texts of training/teaching are only in the source tree")
    made = (replaced(rng.choice(pool), lay, names, rng) for _ in range(number * MOST_TRIES)) if pool else ()
    return list(dict.fromkeys(islice((text for text in made if text not in known), number)))


def replaced(
    text: GoldText, lay: Mapping[int, Sequence[str]], names: Sequence[str], rng: random.Random
) -> str:
    """The text with other effects and drugs. `lay`: number of words to phrases; `names`: of drugs."""
    parts, at = [], 0
    for mention in sorted(text.mentions, key=lambda m: m.start):
        if mention.start < at:
            continue
        words = text.text[mention.start : mention.end]
        if mention.label == DRUG:
            words = rng.choice(names) if rng.random() < DRUGS else words
        elif rng.random() < EFFECTS:
            words = rng.choice(lay[_length(words)])
        parts += [text.text[at : mention.start], words]
        at = mention.end
    return "".join([*parts, text.text[at:]])


def lay_phrases() -> dict[int, list[str]]:
    """The teaching corpus' phrases that are not held out, by their number of words up to WORDS."""
    found: dict[int, list[str]] = {}
    for phrase in sorted({g.mention for g in phrases("train")}):
        found.setdefault(_length(phrase), []).append(phrase)
    return found


def training_texts(data: Path) -> list[GoldText]:
    """The texts with mentions: those of the teaching corpus once, PsyTAR's sentences twice."""
    tested = {t.text for part in ("dev", "test") for t in read_psytar(data / f"psytar/ner_{part}.conll")}
    psytar = [t for t in read_psytar(data / "psytar/ner_train.conll") if t.text not in tested]
    return [t for t in (*_taught(), *psytar, *psytar) if t.mentions]


def recombined_sources() -> list[TrainingData]:
    """What the texts are made of beside PsyTAR, as manifests name it."""
    return teaching_sources(_taught())


def _taught() -> list[GoldText]:
    return [t for kind in MARKED for t in gold_texts(kind, "train", candidates=True)]


def drug_names() -> list[str]:
    return sorted({row[0] for row in read_tsv(drugs.BUNDLED, ("name", "generic")) if len(row[0]) >= NAME})


def _length(words: str) -> int:
    return min(WORDS, max(1, len(words.split())))
