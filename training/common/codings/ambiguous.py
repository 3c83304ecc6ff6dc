"""Mentions of patients whose words alone have several codes, stand-off: the file names posts of PsyTAR and
reviews by id and holds no text; training/data/marked_reviews/README.md describes it.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from training.common import DATA
from training.common.corpora import CorpusError, GoldCoding, in_form, json_lines
from training.common.marked_reviews import REVIEWS, digest, reviews_by_id

FILE = DATA / "ambiguous_mentions.tsv"
COLUMNS = ("text", "start", "end", "digest", "terms")
POSTS = "streams/posts.jsonl"
Part = Literal["development", "test"]
PARTS: tuple[Part, ...] = ("development", "test")


def part_of(text: str) -> Part:
    """The part of a text, by its id alone: a third of all are kept for tests."""
    is_test = hashlib.sha256(f"ambiguous {text}".encode()).digest()[0] % 3 == 0
    return "test" if is_test else "development"


def read_ambiguous(part: Part, data: Path, path: Path = FILE) -> list[GoldCoding]:
    """The mentions of a part in their whole texts; any of the preferred terms is right. `data` has the texts
    at POSTS and REVIEWS. Raises CorpusError, with the line, for a row that does not fit them.
    """
    with in_form(data / POSTS):
        posts = {row["id"]: row for _, line in json_lines(data / POSTS) for row in [json.loads(line)]}
    reviews = reviews_by_id(data / REVIEWS)
    found = []
    for number, row in _rows(path):
        id_, _, field = row["text"].partition("/")
        source, key = (reviews, field) if field else (posts, "text")
        text, start, end = str(source.get(id_, {}).get(key) or ""), int(row["start"]), int(row["end"])
        if digest(text) != row["digest"] or not text[start:end].strip():
            raise CorpusError(f"{path}, line {number}: no such mention in {row['text']} of the corpus")
        if part_of(row["text"]) == part:
            found.append(GoldCoding(text[start:end], text, "", tuple(row["terms"].split("|")), start))
    return found


def unjudged(golds: Sequence[GoldCoding], data: Path) -> list[GoldCoding]:
    """The mentions without those that the table judges, where its texts are in `data`: what has learned from
    one of them cannot be judged by it.
    """
    if not all((data / name).exists() for name in (POSTS, REVIEWS)):
        return list(golds)
    judged = [g for part in PARTS for g in read_ambiguous(part, data)]
    return [g for g in golds if not any(_is_of(g, j) for j in judged)]


def _is_of(gold: GoldCoding, judged: GoldCoding) -> bool:
    """PsyTAR's sentences are those of its posts, but for what is at their end."""
    begin = gold.sentence[:40].rstrip(". ")
    return judged.mention.lower() in gold.mention.lower() and begin in judged.sentence


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    with in_form(path), path.open(encoding="utf-8", newline="") as file:
        yield from enumerate(csv.DictReader(file, delimiter="\t"), 2)
