"""Evaluation of idioms: SemEval-2022 task 2B, rank correlation of a model's similarities with the gold ones;
the baseline is the untrained base.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.scores import Counts
from training.common.corpora import ENCODING, in_form
from training.evaluation.measures import spearman
from training.evaluation.result import Part, Result
from training.teaching.batches import PARTS
from training.teaching.readers import idioms

#: Training selects its epoch on the first, third, ... STS row; `heldout` has the other rows, and `unwritten`
#: no pair with an expression of the teaching corpus: a release that learned from that alone saw none of them.
SPLITS = ("dev_en", "dev_en_heldout", "dev_en_unwritten", "dev_pt")
PRIMARY = "spearman_idiom"
STS = "spearman_sts"
FOLDER = "idioms"
#: Columns: the system's similarity, the gold one, whether the pair is about an idiom.
_FOUND, _GOLD, _IDIOM = range(3)
HOW = "Spearman's rho of the cosine of the two sentences' vectors and gold"
SELF = "where the gold is empty it is the system's own cosine of the pair with the right paraphrase instead"
MEASURES = (
    spearman(
        PRIMARY,
        f"{HOW}, pairs with an idiom and a right paraphrase (gold 1) or a wrong one: {SELF}",
        (_FOUND, _GOLD),
        (_IDIOM, 1),
    ),
    spearman(STS, f"{HOW}, pairs of the STS benchmarks", (_FOUND, _GOLD), (_IDIOM, 0)),
    spearman("spearman_all", f"{HOW}, idiom and STS pairs in one ranking; {SELF}", (_FOUND, _GOLD)),
)
BASELINE = "the base that was not trained, with the same pooling"


class Pair(NamedTuple):
    """Two sentences and their gold similarity, or a pair whose similarity by the system is gold."""

    first: str
    second: str
    gold: float | None
    other: tuple[str, str] | None
    idiom: bool


class Corpus(NamedTuple):
    """What a release is evaluated on."""

    data: str
    records: list[Pair]


def read(data: Path, split: str, limit: int) -> Corpus:
    """The pairs of a split, in the order of the gold file."""
    language = split.split("_")[1].upper()
    unwritten = split.endswith("_unwritten")
    pairs = read_pairs(data / FOLDER, language, without=_written() if unwritten else frozenset())
    name = f"SemEval-2022 task 2B, dev, {language}" + unwritten * ", no expression of the teaching corpus"
    if split.endswith("_heldout"):
        _, sts = halves(pairs)
        pairs = [p for p in pairs if p.idiom] + sts
        name += ", the STS pairs that training does not see"
    return Corpus(name, pairs[:limit] if limit else pairs)


def _written() -> frozenset[str]:
    """The expressions of the teaching corpus, without articles."""
    return frozenset(_plain(i.expression) for part in PARTS for i in idioms(part))


def _plain(expression: str) -> str:
    words = expression.lower().replace("-", " ").split()
    return " ".join(w for w in words if w not in ("a", "an", "the"))


def read_pairs(folder: Path, language: str, without: Container[str] = frozenset()) -> list[Pair]:
    """Rows of the dev gold file in one language, with the sentences of the dev file, but for those with an
    expression of `without`. Raises CorpusError.
    """
    asked, gold_file = folder / "semeval22_dev.csv", folder / "semeval22_dev_gold.csv"
    with in_form(asked), asked.open(encoding=ENCODING, newline="") as file:
        sentences = {r["ID"]: (r["sentence1"], r["sentence2"], r["MWE1"]) for r in csv.DictReader(file)}
    pairs = []
    with in_form(gold_file), gold_file.open(encoding=ENCODING, newline="") as file:
        for row in csv.DictReader(file):
            first, second, expression = sentences[row["ID"]]
            if row["Language"] == language and _plain(expression) not in without:
                gold = float(row["sim"]) if row["sim"] else None
                other = None if row["sim"] else sentences[row["otherID"]][:2]
                pairs.append(Pair(first, second, gold, other, expression != "None"))
    return pairs


def halves(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """The STS pairs in turn: (for validation in training, held out)."""
    sts = [p for p in pairs if not p.idiom]
    return sts[::2], sts[1::2]


def measure(model: Any, corpus: Corpus) -> Result:
    """Evaluates the vectors that `model.predict` gives."""
    baseline = pair_counts(model.untrained(), corpus.records)
    started = time.perf_counter()
    counts = pair_counts(model, corpus.records)
    seconds = time.perf_counter() - started
    idioms = int(counts[:, _IDIOM].sum())
    return Result(
        counts,
        baseline,
        MEASURES,
        {m.name: BASELINE for m in MEASURES},
        seconds,
        {
            PRIMARY: Part(f"{corpus.data}, idiom pairs", idioms),
            STS: Part(f"{corpus.data}, STS pairs", len(counts) - idioms),
        },
    )


def pair_counts(model: Any, pairs: Sequence[Pair]) -> Counts:
    """(pairs, 3): the cosine by `model.predict`, the gold similarity, 1 for a pair about an idiom."""
    texts = {t: None for p in pairs for t in (p.first, p.second, *(p.other or ()))}
    place = {text: i for i, text in enumerate(texts)}
    vectors = np.asarray(model.predict(list(texts)), dtype=np.float64)

    def cosine(first: str, second: str) -> float:
        return float(vectors[place[first]] @ vectors[place[second]])

    rows = []
    for p in pairs:
        gold = p.gold if p.other is None else cosine(*p.other)
        rows.append((cosine(p.first, p.second), gold, p.idiom))
    return np.array(rows, np.float64).reshape(len(rows), 3)


def scores(counts: Counts) -> dict[str, float]:
    """All scores by name."""
    return {m.name: m.of(counts) for m in MEASURES}
