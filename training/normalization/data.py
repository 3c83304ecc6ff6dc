"""Training examples of Dynamic Context Refining: mentions in their sentences with the rows of their terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from models.encoder.model import Encoder
from models.normalization.context_refining import marked_sentences
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


def read(data: Path | None, more: Sequence[GoldCoding] = ()) -> Split:
    """PsyTAR's coded mentions in three parts, `more` for training; empty ones without data."""
    golds = list(read_psytar_codes(data / "psytar/normalization.csv")) if data else []
    groups = split_groups()
    return extended(heldout_split(golds, groups), more, groups) if golds else Split([], [], [])


def examples(golds: Sequence[GoldCoding], terms: Sequence[Term], context: Encoder) -> list[Example]:
    """One for each mention with a gold term that the terminology contains by name."""
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


def rows_by_pt(terms: Sequence[Term]) -> dict[str, list[int]]:
    """Preferred term to the rows of its lowest-level terms."""
    rows: dict[str, list[int]] = {}
    for row, term in enumerate(terms):
        rows.setdefault(term.pt, []).append(row)
    return rows
