"""Sentences with an idiom and their paraphrases, of SemEval-2022 task 2B and of the teaching corpus."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from models.idiom import Marker, idiom_token
from training.common.corpora import ENCODING, in_form
from training.evaluation.idiom import Pair
from training.teaching.batches import Idiom


@dataclass(frozen=True, slots=True)
class Group:
    """A sentence with an expression, paraphrases of the same meaning, and paraphrases of another one."""

    expression: str
    sentence: str
    one_shot: bool
    """whether the expression also occurs in the dev file"""
    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Row(NamedTuple):
    """One text of a batch."""

    text: str
    label: int
    """the same for texts of the same meaning"""
    group: int
    """the number of its group"""
    idiom: bool
    """whether it is the sentence with the expression"""


def read_groups(path: Path, language: str = "EN") -> list[Group]:
    """The groups of one language in the order of the file; rows with the same sentence form one group.

    Raises CorpusError.
    """
    groups: dict[tuple[str, str], Group] = {}
    with in_form(path), path.open(encoding=ENCODING, newline="") as file:
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


def written_groups(idioms: Iterable[Idiom]) -> list[Group]:
    """The groups of the teaching corpus. The right paraphrase of an idiom has its meaning in its place, the
    wrong one the gloss of its words; of words that are meant literally it is the other way round.
    """
    groups = []
    for i in idioms:
        for use, meaning in i.figurative:
            groups.append(Group(i.expression, use.text, False, [use.put(meaning)], [use.put(i.gloss)]))
        _, meaning = i.figurative[0]
        for use in i.literal:
            groups.append(Group(i.expression, use.text, False, [use.put(i.gloss)], [use.put(meaning)]))
    return groups


def split_by_expression(groups: Sequence[Group], share: float, seed: int) -> tuple[list[Group], list[Group]]:
    """(for training, for validation): the groups of a share of the expressions are held out, but one sentence
    of each stays in training, since the expressions of the dev file have one sentence in training too.
    """
    expressions = sorted({g.expression for g in groups if not g.one_shot and g.wrong})
    random.Random(seed).shuffle(expressions)
    held = set(expressions[: round(len(expressions) * share)])
    in_training: set[str] = set()
    training, validation = [], []
    for g in groups:
        if g.expression not in held or (g.wrong and g.expression not in in_training):
            in_training.add(g.expression)
            training.append(g)
        else:
            validation.append(g)
    return training, validation


def limit_sentences(groups: Sequence[Group], number: int) -> list[Group]:
    """At most `number` groups of each expression, 0: all. Those with a wrong paraphrase are preferred, of
    them the shortest, which take the least time.
    """
    if not number:
        return list(groups)
    by_expression: dict[str, list[Group]] = {}
    for g in sorted(groups, key=lambda g: (not g.wrong, len(g.sentence))):
        by_expression.setdefault(g.expression, []).append(g)
    kept = {id(g) for members in by_expression.values() for g in members[:number]}
    return [g for g in groups if id(g) in kept]


def training_rows(groups: Sequence[Group], marker: Marker) -> list[Row]:
    """The texts of all groups in their order: a sentence and its right paraphrases share a label, each wrong
    paraphrase has its own (section 3.2).
    """
    rows: list[Row] = []
    label = 0
    for number, g in enumerate(groups):
        rows.append(Row(marker.mark(g.sentence), label, number, True))
        rows += [Row(text, label, number, False) for text in g.right]
        rows += [Row(text, label + n, number, False) for n, text in enumerate(g.wrong, 1)]
        label += 1 + len(g.wrong)
    return rows


def meanings(groups: Sequence[Group], marker: Marker) -> dict[str, list[str]]:
    """For each of the marker's expressions the words that replace it in right paraphrases."""
    words: dict[str, list[str]] = {e: [] for e in marker.expressions}
    for g in groups:
        for text in g.right if g.expression in words else ():
            if meaning := _replacement(idiom_token(g.expression), marker.mark(g.sentence), text):
                words[g.expression].append(meaning)
    return words


def _replacement(token_: str, marked: str, text: str) -> str:
    """The words that `text` has wherever `marked` has the token; empty where the two differ elsewhere."""
    parts = marked.split(token_)
    times = len(parts) - 1
    length = (len(text) - sum(map(len, parts))) // times if times else 0
    words = text[len(parts[0]) : len(parts[0]) + max(length, 0)]
    return words.strip() if words.join(parts) == text else ""


def validation_pairs(groups: Sequence[Group]) -> list[Pair]:
    """The pairs that the task would ask about these groups: gold 1 for a right paraphrase; for a wrong one
    the model's own similarity of the right and the wrong paraphrase.
    """
    pairs = []
    for g in groups:
        pairs += [Pair(g.sentence, text, 1.0, None, True) for text in g.right]
        pairs += [Pair(g.sentence, text, None, (g.right[0], text), True) for text in g.wrong]
    return pairs
