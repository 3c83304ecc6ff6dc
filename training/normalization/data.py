"""What normalization learns from: PsyTAR's mentions in their sentences, and lay phrases."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from models import terminology
from models.encoder.model import Encoder
from models.normalization.context_refining import marked_sentences
from models.normalization.spelling import ALIKE, LEAST_LETTERS
from models.terminology import Term
from models.types import Query
from training.common.codings.split import (
    Split,
    extended,
    heldout_split,
    pts_by_term,
    query,
    right_terms,
    split_groups,
)
from training.common.corpora import GoldCoding, read_psytar_codes
from training.normalization.settings import BUNDLED, Settings
from training.teaching.batches import MARKED
from training.teaching.readers import codings, phrases


@dataclass(frozen=True, slots=True)
class Example:
    """A mention and rows of the terminology."""

    query: Query
    pieces: list[int] | None
    """what S_context reads; None without context"""
    gold_rows: tuple[int, ...]
    """the gold terms"""
    right_rows: tuple[int, ...]
    """all terms of a right preferred term: none of them is a negative"""


class Phrase(NamedTuple):
    """Words of a patient and a preferred term that they mean, in lower case."""

    words: str
    pt: str
    row: int | None = None
    """of a name that is used as a phrase: its row in the terminology"""


def read(data: Path, more: Sequence[GoldCoding] = (), limit: int = 0) -> Split:
    """PsyTAR's coded mentions in three parts, with `more` for training. Raises CorpusError."""
    groups = split_groups()
    golds = list(read_psytar_codes(data / "psytar/normalization.csv"))
    split = extended(heldout_split(golds, groups), more, groups)
    return split._replace(train=split.train[: limit or None])


def terms_of(settings: Settings) -> list[Term]:
    """The bundled terminology or that of a file; with a limit the names of as many preferred terms, of those
    that are reported most.
    """
    path = terminology.BUNDLED if settings.terms == BUNDLED else Path(settings.terms)
    terms = terminology.load(path)
    if not settings.limit:
        return terms
    reported = dict.fromkeys(t.pt for t in sorted(terms, key=lambda t: -t.frequency))
    kept = set(list(reported)[: settings.limit])
    return [t for t in terms if t.pt in kept]


def examples(golds: Sequence[GoldCoding], terms: Sequence[Term], context: Encoder) -> list[Example]:
    """An example for each mention with a gold term that the terminology contains by name."""
    by_term, by_pt = pts_by_term(terms), rows_by_pt(terms)
    by_name: dict[str, list[int]] = {}
    for row, term in enumerate(terms):
        by_name.setdefault(term.llt.lower(), []).append(row)
    known = [g for g in golds if right_terms(g, by_term)]
    queries = [query(g) for g in known]
    result = []
    for gold, mention, pieces in zip(known, queries, marked_sentences(context, queries), strict=True):
        gold_rows = tuple(row for t in gold.terms for row in by_name.get(t.lower(), ()))
        right = tuple(row for pt in sorted(right_terms(gold, by_term)) for row in by_pt[pt])
        result.append(Example(mention, pieces, gold_rows, right))
    return result


def negative(example: Example, terms: int, rng: random.Random) -> int:
    """A random row of `terms` whose preferred term is another."""
    while (row := rng.randrange(terms)) in example.right_rows:
        pass
    return row


def rows_by_pt(terms: Sequence[Term]) -> dict[str, list[int]]:
    """Preferred term to the rows of its lowest-level terms."""
    rows: dict[str, list[int]] = {}
    for row, term in enumerate(terms):
        rows.setdefault(term.pt, []).append(row)
    return rows


def taught_phrases(terms: Sequence[Term], golds: Sequence[GoldCoding] = ()) -> list[Phrase]:
    """The phrases and coded marks of the teaching corpus that are not held out, and the mentions `golds`,
    where the terminology has their preferred term; each pair once, sorted.
    """
    by_term, pts = pts_by_term(terms), {t.pt for t in terms}
    taught = [*phrases("train"), *(g for kind in MARKED for g in codings(kind, "train"))]
    pairs = {(g.mention.lower(), pt) for g in taught for pt in g.terms if pt in pts}
    pairs |= {(g.mention.lower(), pt) for g in golds for pt in right_terms(g, by_term)}
    return [Phrase(*pair) for pair in sorted(pairs)]


def marks_in_context(limit: int = 0) -> list[GoldCoding]:
    """The teaching corpus' coded marks that are not held out, in their texts; at most `limit`, 0: all."""
    return [g for kind in MARKED for g in codings(kind, "train")][: limit or None]


def shortened(gold: GoldCoding, rng: random.Random) -> GoldCoding:
    """The same code for the first or the last words of the mention alone, so that the others are context; the
    mention itself where it is one word.
    """
    asked = query(gold)
    words = list(re.finditer(r"\S+", asked.surface))
    if len(words) < 2:  # noqa: PLR2004
        return gold
    cut = rng.randrange(1, len(words))
    kept = words[:cut] if rng.random() < 1 / 2 else words[cut:]
    start, end = kept[0].start(), kept[-1].end()
    return replace(gold, mention=asked.surface[start:end], sentence=asked.text, start=asked.start + start)


def misspelled(text: str, rng: random.Random) -> str:
    """The text with one of its longer words misspelled: two neighbouring letters exchanged, one deleted,
    doubled, or replaced by one of similar sound; never the first or last. Unchanged if no word is long
    enough.
    """
    words = text.split(" ")
    chosen = [i for i, word in enumerate(words) if len(word) >= LEAST_LETTERS and word.isalpha()]
    if not chosen:
        return text
    i = rng.choice(chosen)
    word = words[i]
    place = rng.randrange(1, len(word) - 2)
    before, letter, after = word[:place], word[place], word[place + 1 :]
    alike = ALIKE.get(letter.lower(), letter)
    written = (
        f"{after[0]}{letter}{after[1:]}",
        after,
        f"{letter}{letter}{after}",
        f"{rng.choice(alike)}{after}",
    )
    words[i] = before + rng.choice(written)
    return " ".join(words)
