"""The split of the coded mentions by drug and preferred term: none is both trained on and tested."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from models import terminology
from models.terminology import Term
from models.types import Query
from training.common.corpora import CorpusError, GoldCoding

SEED = 42
#: The first terms of the bundled terminology, by which the mentions are split.
SPLIT_TERMS = 10_163
#: Shares of the drugs (at least one) and of the preferred terms of the other drugs.
TEST_DRUGS, TEST_TERMS = 0.2, 0.05
#: Shares of the rest: of its preferred terms, and of its rows including those of these terms.
VALID_TERMS, VALID = 0.03, 0.1


class Split(NamedTuple):
    """No mention of a part occurs in another part, case and white space ignored."""

    train: list[GoldCoding]
    valid: list[GoldCoding]
    test: list[GoldCoding]


def mention_key(mention: str) -> str:
    """The key by which mentions are compared: lower case, white space collapsed."""
    return " ".join(mention.lower().split())


def pts_by_term(terms: Sequence[Term]) -> dict[str, set[str]]:
    """Lowest-level term in lower case to its preferred terms."""
    by_name: dict[str, set[str]] = {}
    for term in terms:
        by_name.setdefault(term.llt.lower(), set()).add(term.pt)
    return by_name


@cache
def split_groups() -> Mapping[str, set[str]]:
    """By what `heldout_split` groups names: the terms that the bundled terminology had when the split was
    made. With later ones other mentions would be held out than those that releases were not trained on.
    """
    return pts_by_term(terminology.load()[:SPLIT_TERMS])


def right_terms(gold: GoldCoding, by_term: Mapping[str, set[str]]) -> set[str]:
    """The preferred terms of the gold terms; empty where no gold term is in the terminology by name."""
    return {pt for t in gold.terms for pt in by_term.get(t.lower(), ())}


def heldout_split(golds: Sequence[GoldCoding], by_term: Mapping[str, set[str]], seed: int = SEED) -> Split:
    """Test: all mentions of some drugs, and all mentions of some preferred terms of any drug. Validation:
    some preferred terms of the rest, and randomly drawn mention strings. Rows of another part with the
    mention string of a test or validation row are left out.

    `by_term` groups gold names by preferred term; a name that is not in it is a preferred term of its own.
    Raises CorpusError where there is nothing to split.
    """
    if not golds:
        raise CorpusError("there is no mention with a term: does psytar/normalization.csv have any?")
    rng = random.Random(seed)
    drugs = sorted({g.drug.lower() for g in golds})
    held = set(rng.sample(drugs, max(1, round(TEST_DRUGS * len(drugs)))))
    rest = [g for g in golds if g.drug.lower() not in held]
    terms = _drawn(rest, by_term, TEST_TERMS, rng)
    test = [g for g in golds if g.drug.lower() in held or _groups(g, by_term) & terms]
    rest = _without(rest, terms, test, by_term)

    terms = _drawn(rest, by_term, VALID_TERMS, rng)
    strings = {mention_key(g.mention) for g in rest if _groups(g, by_term) & terms}
    order = sorted({mention_key(g.mention) for g in rest} - strings)
    rng.shuffle(order)
    rows = sum(mention_key(g.mention) in strings for g in rest)
    counts: dict[str, int] = {}
    for g in rest:
        counts[mention_key(g.mention)] = counts.get(mention_key(g.mention), 0) + 1
    for mention in order:
        if rows >= VALID * len(rest):
            break
        strings.add(mention)
        rows += counts[mention]
    valid = [g for g in rest if mention_key(g.mention) in strings]
    return Split(_without(rest, terms, valid, by_term), valid, test)


def extended(split: Split, more: Sequence[GoldCoding], by_term: Mapping[str, set[str]]) -> Split:
    """The split with more mentions to train on: none of a preferred term that only the other parts have, and
    none with a mention string of theirs.
    """
    held = [*split.valid, *split.test]
    trained = {pt for g in split.train for pt in _groups(g, by_term)}
    terms = {pt for g in held for pt in _groups(g, by_term)} - trained
    return split._replace(train=[*split.train, *_without(more, terms, held, by_term)])


@cache
def query(gold: GoldCoding) -> Query:
    """The mention in its sentence, or alone where the sentence does not contain it literally."""
    if gold.start is not None:
        return Query(gold.sentence, gold.start, gold.start + len(gold.mention), gold.mention)
    mention = gold.mention.strip()
    written = r"\s+".join(map(re.escape, mention.split()))
    for pattern in (rf"(?<!\w){written}(?!\w)", written):
        if mention and (place := re.search(pattern, gold.sentence, re.IGNORECASE)):
            return Query(gold.sentence, place.start(), place.end(), place.group())
    return Query(gold.mention, 0, len(gold.mention), gold.mention)


def _groups(gold: GoldCoding, by_term: Mapping[str, set[str]]) -> set[str]:
    return {pt for t in gold.terms for pt in by_term.get(t.lower(), {t.lower()})}


def _drawn(
    golds: Sequence[GoldCoding], by_term: Mapping[str, set[str]], share: float, rng: random.Random
) -> set[str]:
    terms = sorted({pt for g in golds for pt in _groups(g, by_term)})
    return set(rng.sample(terms, round(share * len(terms))))


def _without(
    golds: Sequence[GoldCoding], terms: set[str], held: Sequence[GoldCoding], by_term: Mapping[str, set[str]]
) -> list[GoldCoding]:
    """Rows without these terms and without the mention string of a held-out row."""
    strings = {mention_key(g.mention) for g in held}
    return [g for g in golds if mention_key(g.mention) not in strings and not _groups(g, by_term) & terms]
