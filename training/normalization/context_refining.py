"""Trains Dynamic Context Refining (CONORM-EN): S_context, M_K and M_Q, with S_isolated frozen unless told
otherwise.

Default, as the paper: cosine embedding loss with margin 0, a random term of another preferred term for each
positive, AdamW, one-cycle rate, gradients clipped at 1.0, the epoch with the best validation micro F1 (one
prediction for each mention: the share of right ones). Every option beside that is a name of `Settings`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.encoder.model import Encoder
from models.normalization.context_refining import marked_sentences
from models.terminology import Term
from models.types import Query
from training.common.coding_split import pts_by_term, query, right_terms
from training.common.corpora import GoldCoding


@dataclass(frozen=True)
class Settings:
    epochs: int = 20
    rank: int = 16
    """of the adapter of S_context; 0 trains all of it"""
    lr: float = 3e-4
    batch: int = 32
    seed: int = 42
    window: int = 16
    """pieces of a sentence that S_context sees"""
    in_batch: bool = False
    """softmax over the batch's terms instead of the cosine embedding loss"""
    all_terms: bool = False
    """softmax over the whole terminology"""
    temperature: float = 0.05
    hard_negatives: bool = False
    """the negative is one of the nearest wrong terms, looked up before each epoch"""
    synonyms: bool = False
    """every lowest-level term of a right preferred term is a positive"""
    swap: float = 0.0
    """share of the mentions that are replaced in their sentences, anew in each epoch, by a term; the others
    of its preferred term are its positives"""
    isolated: bool = False
    """S_isolated gets an adapter and is trained too"""
    precision: str = "float32"


@dataclass(frozen=True, slots=True)
class Example:
    query: Query
    pieces: list[int] | None
    """what S_context sees; None without context"""
    named: tuple[int, ...]
    """rows of the gold terms"""
    same: tuple[int, ...]
    """rows of the terms that count as gold with --synonyms"""
    right: tuple[int, ...]
    """rows of all terms of a right preferred term: none of them is a negative"""


def cosine_embedding(refined: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """All (n, d): mean over 2n pairs of 1 - cos(e', m) and of max(0, cos(e', m))."""
    loss = nn.functional.cosine_embedding_loss
    ones = torch.ones(len(refined), device=refined.device)
    return (loss(refined, positive, ones, margin=0.0) + loss(refined, negative, -ones, margin=0.0)) / 2


def softmax_loss(
    refined: Tensor, terms: Tensor, positive: Tensor, ignored: Tensor, temperature: float
) -> Tensor:
    """Refined (n, d), terms (m, d), positive and ignored (n, m): -log of the positives' share of
    sum exp(cos / t) over the terms that are not ignored, mean over n.
    """
    unit = nn.functional.normalize
    logits = (unit(refined, dim=-1) @ unit(terms, dim=-1).T) / temperature
    logits = logits.masked_fill(ignored & ~positive, float("-inf"))
    wanted = logits.masked_fill(~positive, float("-inf")).logsumexp(1)
    return (logits.logsumexp(1) - wanted).mean()


def examples(golds: Sequence[GoldCoding], terms: Sequence[Term], context: Encoder) -> list[Example]:
    """One for each mention with a gold term that the terminology knows by name."""
    by_term = pts_by_term(terms)
    by_name: dict[str, list[int]] = {}
    by_pt = rows_by_pt(terms)
    for row, term in enumerate(terms):
        by_name.setdefault(term.llt.lower(), []).append(row)
    known = [g for g in golds if right_terms(g, by_term)]
    queries = [query(g) for g in known]
    made = []
    for gold, asked, pieces in zip(known, queries, marked_sentences(context, queries), strict=True):
        named = tuple(row for t in gold.terms for row in by_name.get(t.lower(), ()))
        right = tuple(row for pt in sorted(right_terms(gold, by_term)) for row in by_pt[pt])
        made.append(Example(asked, pieces, named, right, right))
    return made


def rows_by_pt(terms: Sequence[Term]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row, term in enumerate(terms):
        found.setdefault(term.pt, []).append(row)
    return found


def like_length(
    rows: list[tuple[Example, int]], size: int, rng: random.Random
) -> list[list[tuple[Example, int]]]:
    """Shuffled batches with sentences of like length together, so that little padding is computed."""
    rng.shuffle(rows)
    pool, made = size * 10, []
    for start in range(0, len(rows), pool):
        near = sorted(rows[start : start + pool], key=lambda row: len(row[0].pieces or ()))
        made += [near[i : i + size] for i in range(0, len(near), size)]
    rng.shuffle(made)
    return made
