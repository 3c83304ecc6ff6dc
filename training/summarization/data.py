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
#: Questions for the validation of a decoder; of fewer than 500 a fifth.
HELD_OUT = 100
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


class Corpora(NamedTuple):
    """The pairs that a decoder is trained and validated on."""

    training: list[Pair]
    validation: list[Pair]
    report: dict[str, Any]
    """counts of what was removed and kept, ids of the validation part, digest of the training ids"""


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


def decoder_pairs(data: Path, seed: int, limit: int = 0) -> Corpora:
    """MeQSum's training part without questions of `evaluated`, a part of them for validation."""
    unique, duplicates = without_duplicates(read_meqsum(data, "train"))
    pairs, leaks = without_leaks(unique, evaluated(data))
    random.Random(seed).shuffle(pairs)
    held_out = min(HELD_OUT, len(pairs) // 5)
    valid, train = pairs[:held_out], pairs[held_out:][: limit or None]
    report = asdict(duplicates) | {"leaked": leaks.leaked, "near": leaks.near, "trained": len(train)}
    digest = hashlib.sha256("\n".join(sorted(p.id for p in train)).encode()).hexdigest()
    return Corpora(
        train, valid, report | {"validation": sorted(p.id for p in valid), "training_sha256": digest}
    )


def extraction_pairs(data: Path, limit: int = 0) -> list[Pair]:
    """Questions of MeQSum's training part and of the teaching corpus, without those of any evaluation; at
    most `limit` of each, 0: all.
    """
    tested = [*written_questions("held_out"), *evaluated(data)]
    meqsum, _ = without_duplicates(read_meqsum(data, "train"))
    parts = [without_leaks(part, tested)[0] for part in (meqsum, written_questions("train"))]
    return [pair for part in parts for pair in part[: limit or None]]
