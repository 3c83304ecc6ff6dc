"""Corpora of users: rows of a file, each a text with what is right for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from training.common.corpora import GoldCoding
from training.evaluation import normalization
from training.evaluation.posts.corpus import Corpus, GoldEvent, GoldPost, kind_of
from training.evaluation.summarization import measure as summarization

#: Task to the fields of its rows beside the text: first the one that says what is right, then those that a
#: file may lack. `terms` are names of terms: in a post those of its events, of a mention the right ones.
FIELDS: dict[str, tuple[str, ...]] = {
    "posts": ("terms", "drug"),
    "normalization": ("terms", "mention", "drug"),
    "summarization": ("summary",),
}
_BETWEEN_TERMS = re.compile(r"[|;]")


def gold_of(task: str, value: object) -> Any:
    """What is right by the value of a cell: names of terms that are separated by `|` or `;` or are a list, or
    a short question. None where the value says nothing; a post without an event has an empty one, or none.
    """
    if task == "summarization":
        return value if isinstance(value, str) and value.strip() else None
    found = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return None
    names = tuple(n.strip() for name in found for n in _BETWEEN_TERMS.split(name) if n.strip())
    return names if names or task == "posts" else None


def corpus_of(task: str, path: Path, rows: Sequence[Mapping[str, Any]]) -> Any:
    """What the task is measured on, of rows with `text`, the fields of the task, and `gold_of` in the first
    of them. Of posts only the terms are known, not where their events are told.
    """
    return _MAKERS[task](path, rows)


def _posts(path: Path, rows: Sequence[Mapping[str, Any]]) -> Corpus:
    posts = []
    for row in rows:
        events = tuple(GoldEvent(0, len(row["text"]), (name,)) for name in row["terms"])
        posts.append(GoldPost(row["text"], events, kind_of(len(events), ()), drug=row.get("drug")))
    return Corpus(path.name, posts, spans=False)


def _mentions(path: Path, rows: Sequence[Mapping[str, Any]]) -> normalization.Corpus:
    golds = [
        GoldCoding(row.get("mention") or row["text"], row["text"], row.get("drug") or "", row["terms"])
        for row in rows
    ]
    return normalization.Corpus(path.name, golds, [])


def _questions(path: Path, rows: Sequence[Mapping[str, Any]]) -> summarization.Corpus:
    asked = [summarization.Question(row["text"], row["summary"]) for row in rows]
    return summarization.Corpus(path.name, asked, path.parent / "stanza")


_MAKERS: dict[str, Callable[[Path, Sequence[Mapping[str, Any]]], Any]] = {
    "posts": _posts,
    "normalization": _mentions,
    "summarization": _questions,
}
