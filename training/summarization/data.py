"""Questions and their summaries: read, freed of duplicates and of what is tested on, and split."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from training.common.corpora import read_ade_negatives, read_psytar

#: Two questions with so large a share of their words in common are the same question asked twice.
NEAR = 0.6
_FIELD = re.compile(r"\b(?:subject|message)\s*:", re.IGNORECASE)


class Pair(NamedTuple):
    """A long question and the short one that it comes to."""

    id: str
    question: str
    summary: str


@dataclass(frozen=True, slots=True)
class Removed:
    """Pairs that were left out of a corpus, by reason."""

    exact: int = 0
    """question and summary as in an earlier pair"""
    normalised: int = 0
    """question as in an earlier pair but for case, punctuation and the names of a form's fields"""
    leaked: int = 0
    """question as in the other set, normalised"""
    near: int = 0
    """question with most words of one of the other set, see `NEAR`"""


@dataclass(frozen=True, slots=True)
class Corpora:
    """What a run learns from and by what it is chosen."""

    pretraining: list[Pair]
    training: list[Pair]
    validation: list[Pair]
    report: dict[str, Any]
    """seed, ids of the validation part, digest of the training ids, what was removed where"""


def read_questions(data: Path, file: str, summary: str = "summary") -> list[dict[str, Any]]:
    lines = (data / "questions" / file).read_text(encoding="utf-8").splitlines()
    return [row | {"summary": row[summary]} for row in map(json.loads, lines)]


def read_meqsum(data: Path, split: str) -> list[Pair]:
    return [_pair(r) for r in read_questions(data, "meqsum.jsonl") if r["split"] == split]


def read_rqe(data: Path) -> list[Pair]:
    """The pairs in which the question entails its short form."""
    return [_pair(r) for r in read_questions(data, "rqe_train.jsonl", "faq") if r["entails"]]


def read_mediqa(data: Path) -> list[Pair]:
    return [_pair(r) for r in read_questions(data, "mediqa21_val.jsonl")]


def _pair(row: Mapping[str, Any]) -> Pair:
    return Pair(row["id"], " ".join(row["question"].split()), " ".join(row["summary"].split()))


def normalised(text: str) -> str:
    """Words in lower case; field names, punctuation and white space are left out."""
    return " ".join(re.findall(r"[^\W_]+", _FIELD.sub(" ", text).lower()))


def without_duplicates(pairs: Iterable[Pair]) -> tuple[list[Pair], Removed]:
    """The first pair of each question."""
    seen: set[str] = set()
    whole: set[tuple[str, str]] = set()
    kept, exact, same = [], 0, 0
    for pair in pairs:
        question = normalised(pair.question)
        if pair[1:] in whole:
            exact += 1
        elif question in seen:
            same += 1
        else:
            kept.append(pair)
        seen.add(question)
        whole.add(pair[1:])
    return kept, Removed(exact, same)


def without_leaks(
    pairs: Sequence[Pair], tested: Sequence[Pair], near: float = NEAR
) -> tuple[list[Pair], Removed]:
    """Pairs whose question is not asked in `tested`, in the same words or in most of them (Jaccard)."""
    questions = {normalised(t.question) for t in tested}
    bags = [set(q.split()) for q in questions]
    kept, leaked, close = [], 0, 0
    for pair in pairs:
        question = normalised(pair.question)
        mine = set(question.split())
        if question in questions:
            leaked += 1
        elif any(_jaccard(mine, other) >= near for other in bags):
            close += 1
        else:
            kept.append(pair)
    return kept, Removed(leaked=leaked, near=close)


def _jaccard(one: set[str], other: set[str]) -> float:
    # The larger set bounds the share from above; most pairs are told apart by their sizes.
    small, large = sorted((len(one), len(other)))
    if not large or small / large < NEAR:
        return 0.0
    both = len(one & other)
    return both / (small + large - both)


def read(data: Path, *, held_out: int, seed: int, denoise: int = 0, limit: int = 0) -> Corpora:
    """MeQSum's training part without `held_out` questions, and what is learnt before it; nothing of either is
    asked in MeQSum's test part, and nothing of the first stage in the validation part.
    """
    report: dict[str, Any] = {"seed": seed}
    tested = read_meqsum(data, "test")
    meqsum, report["meqsum"] = _clean(read_meqsum(data, "train"), tested)
    random.Random(seed).shuffle(meqsum)
    valid, train = meqsum[:held_out], meqsum[held_out:]
    extra = read_mediqa(data) if (data / "questions/mediqa21_val.jsonl").exists() else []
    rqe, report["rqe"] = _clean([*read_rqe(data), *extra], [*tested, *valid])
    if limit:
        rqe, train = rqe[:limit], train[:limit]
    report["validation"] = sorted(p.id for p in valid)
    ids = "\n".join(sorted(p.id for p in train))
    report["training_sha256"] = hashlib.sha256(ids.encode()).hexdigest()
    report["pairs"] = {"meqsum": len(train), "rqe": len(rqe), "denoising": denoise}
    return Corpora([*rqe, *denoising(data, denoise, seed)], train, valid, report)


def _clean(pairs: Sequence[Pair], tested: Sequence[Pair]) -> tuple[list[Pair], dict[str, int]]:
    once, double = without_duplicates(pairs)
    kept, leaks = without_leaks(once, tested)
    report = asdict(double) | {"leaked": leaks.leaked, "near": leaks.near, "kept": len(kept)}
    return kept, report


def denoising(data: Path, wanted: int, seed: int) -> list[Pair]:
    """Sentences of the ADE corpus and of PsyTAR with a fifth of their words left out, to be written whole
    (the span deletion of BART): the decoder learns to copy and to speak.
    """
    if not wanted:
        return []
    rng = random.Random(seed)
    texts = [t.text for t in read_ade_negatives(data / "ade/negatives.txt")]
    texts += [t.text for t in read_psytar(data / "psytar/ner_train.conll")]
    fit = [t for t in dict.fromkeys(texts) if 6 <= len(t.split()) <= 30]  # noqa: PLR2004  a question's length
    chosen = rng.sample(fit, min(wanted, len(fit)))
    return [Pair(f"denoise-{i}", _with_gaps(t, rng), t) for i, t in enumerate(chosen)]


def _with_gaps(text: str, rng: random.Random) -> str:
    found = text.split()
    for _ in range(max(1, len(found) // 10)):
        at = rng.randrange(len(found))
        del found[at : at + rng.choice((1, 2, 3))]
        if not found:
            return text
    return " ".join(found)
