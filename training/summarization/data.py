"""Questions and their summaries: read, without duplicates and evaluation questions, and split."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from training.common.corpora import in_form, json_lines
from training.teaching.batches import Part
from training.teaching.readers import questions

#: Two questions with at least this share of their words in common (Jaccard) count as the same question.
NEAR = 0.6
_FIELD = re.compile(r"\b(?:subject|message)\s*:", re.IGNORECASE)


class Pair(NamedTuple):
    """A long question and its summary, a short one."""

    id: str
    question: str
    summary: str


@dataclass(frozen=True, slots=True)
class Removed:
    """Pairs that were left out of a corpus, by reason."""

    exact: int = 0
    """question and summary as in an earlier pair"""
    normalised: int = 0
    """question as in an earlier pair but for case, punctuation and names of form fields"""
    leaked: int = 0
    """question as in the other set, with the same text key"""
    near: int = 0
    """question with most words of one in the other set, see `NEAR`"""


@dataclass(frozen=True, slots=True)
class Corpora:
    """The pairs that a run is trained and validated on."""

    pretraining: list[Pair]
    training: list[Pair]
    validation: list[Pair]
    report: dict[str, Any]
    """seed, ids of the validation part, digest of the training ids, counts of what was removed"""


def read_questions(data: Path, file: str, summary: str = "summary") -> list[dict[str, Any]]:
    rows = (json.loads(line) for _, line in json_lines(data / "questions" / file))
    return [row | {"summary": row[summary]} for row in rows]


def read_meqsum(data: Path, split: str) -> list[Pair]:
    """The pairs of a part; raises CorpusError."""
    with in_form(data / "questions/meqsum.jsonl"):
        return [_pair(r) for r in read_questions(data, "meqsum.jsonl") if r["split"] == split]


def read_rqe(data: Path) -> list[Pair]:
    """The pairs in which the question entails its short form; raises CorpusError."""
    with in_form(data / "questions/rqe_train.jsonl"):
        return [_pair(r) for r in read_questions(data, "rqe_train.jsonl", "faq") if r["entails"]]


def read_mediqa(data: Path) -> list[Pair]:
    """All pairs; raises CorpusError."""
    with in_form(data / "questions/mediqa21_val.jsonl"):
        return [_pair(r) for r in read_questions(data, "mediqa21_val.jsonl")]


def evaluated(data: Path) -> list[Pair]:
    """Pairs that no run is trained on: MeQSum's test part and, where it is, MEDIQA's validation part."""
    has_mediqa = (data / "questions/mediqa21_val.jsonl").exists()
    return [*read_meqsum(data, "test"), *(read_mediqa(data) if has_mediqa else [])]


def _pair(row: Mapping[str, Any]) -> Pair:
    return Pair(row["id"], " ".join(row["question"].split()), " ".join(row["summary"].split()))


def text_key(text: str) -> str:
    """The words in lower case; field names, punctuation and further white space are left out."""
    return " ".join(re.findall(r"[^\W_]+", _FIELD.sub(" ", text).lower()))


def without_duplicates(pairs: Iterable[Pair]) -> tuple[list[Pair], Removed]:
    """The first pair of each question."""
    keys: set[str] = set()
    contents: set[tuple[str, str]] = set()
    kept, exact, same_key = [], 0, 0
    for pair in pairs:
        key = text_key(pair.question)
        if pair[1:] in contents:
            exact += 1
        elif key in keys:
            same_key += 1
        else:
            kept.append(pair)
        keys.add(key)
        contents.add(pair[1:])
    return kept, Removed(exact, same_key)


def without_leaks(
    pairs: Sequence[Pair], tested: Sequence[Pair], near: float = NEAR
) -> tuple[list[Pair], Removed]:
    """Pairs whose question is not in `tested`, neither in the same words nor in most of them."""
    keys = {text_key(t.question) for t in tested}
    by_size: dict[int, list[set[str]]] = {}
    for key in keys:
        words = set(key.split())
        by_size.setdefault(len(words), []).append(words)
    kept, leaked, similar = [], 0, 0
    for pair in pairs:
        key = text_key(pair.question)
        words = set(key.split())
        if key in keys:
            leaked += 1
        elif _is_near(words, by_size, near):
            similar += 1
        else:
            kept.append(pair)
    return kept, Removed(leaked=leaked, near=similar)


def _is_near(words: set[str], by_size: Mapping[int, Sequence[set[str]]], near: float) -> bool:
    """Whether any set has this share, the Jaccard index, with the words."""
    own = len(words)
    for size, others in by_size.items():
        # The sizes bound the share from above; that decides most sets without counting.
        large = max(own, size)
        if not large or min(own, size) / large < near:
            continue
        for other in others:
            both = len(words & other)
            if both / (own + size - both) >= near:
                return True
    return False


def read(data: Path, *, held_out: int, seed: int, limit: int = 0) -> Corpora:
    """MeQSum's training part, of which `held_out` questions are for validation, and the pairs of the first
    stage. No question of either is in a set of `evaluated`, and none of the first stage in the validation
    part.
    """
    report: dict[str, Any] = {"seed": seed}
    tested = evaluated(data)
    meqsum, report["meqsum"] = _clean(read_meqsum(data, "train"), tested)
    random.Random(seed).shuffle(meqsum)
    valid, train = meqsum[:held_out], meqsum[held_out:]
    rqe, report["rqe"] = _clean(read_rqe(data), [*tested, *valid])
    if limit:
        rqe, train = rqe[:limit], train[:limit]
    report["validation"] = sorted(p.id for p in valid)
    report["training_sha256"] = _digest(train)
    report["pairs"] = {"meqsum": len(train), "rqe": len(rqe)}
    return Corpora(rqe, train, valid, report)


def written_questions(part: Part) -> list[Pair]:
    """The questions of the teaching corpus."""
    return [Pair(id_, q.question, q.summary) for id_, q in questions(part)]


def _digest(pairs: Iterable[Pair]) -> str:
    return hashlib.sha256("\n".join(sorted(p.id for p in pairs)).encode()).hexdigest()


def _clean(pairs: Sequence[Pair], tested: Sequence[Pair]) -> tuple[list[Pair], dict[str, int]]:
    unique, duplicates = without_duplicates(pairs)
    kept, leaks = without_leaks(unique, tested)
    report = asdict(duplicates) | {"leaked": leaks.leaked, "near": leaks.near, "kept": len(kept)}
    return kept, report
