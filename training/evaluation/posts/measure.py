"""Reads a split and scores what the stages find in it."""

from __future__ import annotations

import time
from pathlib import Path

from training.common.codings.split import pts_by_term
from training.evaluation.posts import corpus as corpora
from training.evaluation.posts.corpus import Corpus
from training.evaluation.posts.counts import PRIMARY, counts_of, measures_of, posts_of
from training.evaluation.posts.found import DICTIONARY, PostModels, unflagged
from training.evaluation.result import Part, Result

__all__ = ["PRIMARY", "SPLITS", "measure", "read"]

TEACHING, PSYTAR_TEST = "teaching", "psytar_test"
SPLITS = (TEACHING, PSYTAR_TEST)


def read(data: Path, split: str, limit: int) -> Corpus:
    """The posts of a split; `teaching` reads nothing of `data`."""
    return corpora.teaching(limit) if split == TEACHING else corpora.psytar(data, limit)


def measure(models: PostModels, corpus: Corpus) -> Result:
    """Evaluates the unflagged events of the stages beside the method without a model."""
    started = time.perf_counter()
    records = models.predict(corpus.records)
    seconds = time.perf_counter() - started
    by_term = pts_by_term(models.coder.terms)
    named = models.dictionary().predict(corpus.records)
    ours, dictionary = (
        counts_of(corpus, [unflagged(r) for r in found], by_term) for found in (records, named)
    )
    measures = measures_of(corpus)
    counted = {m.name: posts_of(m.name, corpus) for m in measures}
    parts = {name: Part(corpus.data, n) for name, n in counted.items() if n is not None}
    return Result(
        ours, dictionary, measures, dict.fromkeys((m.name for m in measures), DICTIONARY), seconds, parts
    )
