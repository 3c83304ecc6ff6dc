"""Questions and their summaries: read, without duplicates and evaluation questions, and split."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from training.common.corpora import in_form, json_lines
from training.teaching.batches import Part
from training.teaching.readers import questions

#: Two questions with at least this share of their words in common (Jaccard) count as the same question.
NEAR = 0.6
#: Questions for the validation of a decoder; of fewer than 500 a fifth.
HELD_OUT = 100
_FIELD = re.compile(r"\b(?:subject|message)\s*:", re.IGNORECASE)


class Pair(NamedTuple):
    """A long question and its summary, a short one."""

    id: str
    question: str
    summary: str


def read_meqsum(data: Path, split: str) -> list[Pair]:
    """The pairs of a part; raises CorpusError."""
    return _pairs(data / "questions/meqsum.jsonl", split)


def read_mediqa(data: Path) -> list[Pair]:
    """All pairs; raises CorpusError."""
    return _pairs(data / "questions/mediqa21_val.jsonl", None)


def evaluated(data: Path) -> list[Pair]:
    """Pairs that no run is trained on: MeQSum's test part and, where it is, MEDIQA's validation part."""
    has_mediqa = (data / "questions/mediqa21_val.jsonl").exists()
    return [*read_meqsum(data, "test"), *(read_mediqa(data) if has_mediqa else [])]


def written_questions(part: Part) -> list[Pair]:
    """The questions of the teaching corpus."""
    return [Pair(id_, q.question, q.summary) for id_, q in questions(part)]


def _pairs(file: Path, split: str | None) -> list[Pair]:
    """The questions have their line breaks, as they arrive."""
    with in_form(file):
        rows = [json.loads(line) for _, line in json_lines(file)]
        found = [r for r in rows if split is None or r["split"] == split]
        return [Pair(r["id"], r["question"].strip(), " ".join(r["summary"].split())) for r in found]


def text_key(text: str) -> str:
    """The words in lower case; field names, punctuation and further white space are left out."""
    return " ".join(re.findall(r"[^\W_]+", _FIELD.sub(" ", text).lower()))


def without_duplicates(pairs: Iterable[Pair]) -> list[Pair]:
    """The first pair of each question."""
    first: dict[str, Pair] = {}
    for pair in pairs:
        first.setdefault(text_key(pair.question), pair)
    return list(first.values())


def without_leaks(pairs: Sequence[Pair], tested: Sequence[Pair], near: float = NEAR) -> list[Pair]:
    """Pairs whose question is not in `tested`, neither in the same words nor in most of them."""
    by_size: dict[int, list[set[str]]] = {}
    for words in (set(text_key(t.question).split()) for t in tested):
        by_size.setdefault(len(words), []).append(words)
    return [p for p in pairs if not _is_near(set(text_key(p.question).split()), by_size, near)]


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


def decoder_pairs(data: Path, seed: int, limit: int = 0) -> tuple[list[Pair], list[Pair]]:
    """MeQSum's training part without questions of `evaluated`, and a part of it for validation."""
    pairs = without_leaks(without_duplicates(read_meqsum(data, "train")), evaluated(data))
    random.Random(seed).shuffle(pairs)
    held_out = min(HELD_OUT, len(pairs) // 5)
    return pairs[held_out:][: limit or None], pairs[:held_out]


def extraction_pairs(data: Path, limit: int = 0) -> list[Pair]:
    """Questions to train on of MeQSum and the teaching corpus; at most `limit` of each, 0: all."""
    tested = [*written_questions("held_out"), *evaluated(data)]
    meqsum = without_duplicates(read_meqsum(data, "train"))
    parts = [without_leaks(part, tested) for part in (meqsum, written_questions("train"))]
    return [pair for part in parts for pair in part[: limit or None]]
