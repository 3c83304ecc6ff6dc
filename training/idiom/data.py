"""Sentences with an idiom and their paraphrases, from the training file of SemEval-2022 task 2B."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from models.idiom.model import Marker, idiom_token
from training.evaluation.idiom import Pair


@dataclass(frozen=True, slots=True)
class Group:
    """A sentence with an expression, paraphrases that mean the same, and paraphrases that do not."""

    expression: str
    sentence: str
    one_shot: bool
    """whether the expression is one of those that the dev file asks about"""
    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Row(NamedTuple):
    """A text, the label that it shares with what means the same, the number of its group, and whether it is
    the sentence with the expression.
    """

    text: str
    label: int
    group: int
    idiom: bool


def read_groups(path: Path, language: str = "EN") -> list[Group]:
    """The groups of one language in the order of the file; rows of one sentence make one group."""
    groups: dict[tuple[str, str], Group] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["Language"] != language:
                continue
            key = (row["MWE1"], row["sentence_1"])
            group = groups.setdefault(key, Group(*key, row["ID"].startswith("train_one_shot")))
            if row["sim"] == "1":
                group.right.append(row["sentence_2"])
            else:
                group.wrong.append(row["sentence_2"])
    return [g for g in groups.values() if g.right]


def split_groups(groups: Sequence[Group], share: float, seed: int) -> tuple[list[Group], list[Group]]:
    """(for training, for validation) by expression; one sentence of each held-out expression stays in
    training, as one of each of the dev file's does.
    """
    expressions = sorted({g.expression for g in groups if not g.one_shot and g.wrong})
    random.Random(seed).shuffle(expressions)
    held = set(expressions[: round(len(expressions) * share)])
    shown: set[str] = set()
    training, validation = [], []
    for g in groups:
        if g.expression not in held or (g.wrong and g.expression not in shown):
            shown.add(g.expression)
            training.append(g)
        else:
            validation.append(g)
    return training, validation


def at_most(groups: Sequence[Group], number: int) -> list[Group]:
    """Some groups of each expression, 0: all. Those with a wrong paraphrase come first, of them the shortest:
    they say as much in less time.
    """
    if not number:
        return list(groups)
    kept: dict[str, list[Group]] = {}
    for g in sorted(groups, key=lambda g: (not g.wrong, len(g.sentence))):
        kept.setdefault(g.expression, []).append(g)
    chosen = {id(g) for members in kept.values() for g in members[:number]}
    return [g for g in groups if id(g) in chosen]


def rows(groups: Sequence[Group], marker: Marker) -> list[Row]:
    """A sentence and its right paraphrases share a label, every wrong one has its own (section 3.2); in the
    order of the file.
    """
    made: list[Row] = []
    label = 0
    for number, g in enumerate(groups):
        made.append(Row(marker.mark(g.sentence), label, number, True))
        made += [Row(text, label, number, False) for text in g.right]
        made += [Row(text, label + n, number, False) for n, text in enumerate(g.wrong, 1)]
        label += 1 + len(g.wrong)
    return made


def meanings(groups: Sequence[Group], marker: Marker) -> dict[str, list[str]]:
    """What stands in the place of each of the marker's expressions in the right paraphrases."""
    found: dict[str, list[str]] = {e: [] for e in marker.expressions}
    for g in groups:
        for text in g.right if g.expression in found else ():
            if meaning := _in_place_of(idiom_token(g.expression), marker.mark(g.sentence), text):
                found[g.expression].append(meaning)
    return found


def _in_place_of(token_: str, marked: str, text: str) -> str:
    """The words that are `text`'s wherever `marked` has the token; none where the two differ elsewhere."""
    parts = marked.split(token_)
    times = len(parts) - 1
    length = (len(text) - sum(map(len, parts))) // times if times else 0
    words = text[len(parts[0]) : len(parts[0]) + max(length, 0)]
    return words.strip() if words.join(parts) == text else ""


def batches(data: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """Not shuffled: a group's rows stand together, and a triplet needs them in one batch."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


def validation_pairs(groups: Sequence[Group]) -> list[Pair]:
    """What the task would ask about these groups: gold 1 for a right paraphrase, for a wrong one the system's
    own similarity of the right one and it.
    """
    pairs = []
    for g in groups:
        pairs += [Pair(g.sentence, text, 1.0, None, True) for text in g.right]
        pairs += [Pair(g.sentence, text, None, (g.right[0], text), True) for text in g.wrong]
    return pairs
