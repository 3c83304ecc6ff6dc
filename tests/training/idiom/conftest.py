"""A small corpus of idioms in the file formats of SemEval-2022 task 2B."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.training.idiom.corpus import EXPRESSIONS

TRAINING_FIELDS = (
    *("ID", "MWE1", "Language", "sentence_1", "sentence_2", "sim", "alternative_1", "alternative_2"),
)
DEV = [
    ("1", "EN", "night owl", "a night owl", "a late person"),
    ("2", "EN", "night owl", "a night owl", "a dark bird"),
    ("3", "EN", "None", "a late person", "a dark bird"),
    ("4", "EN", "None", "drug", "the drug"),
    ("5", "EN", "None", "drug", "a shop"),
    ("6", "EN", "None", "pain", "a dark shop"),
    ("7", "PT", "olho", "um olho", "uma vista"),
]
GOLD = [
    ("1", "EN", "1", ""),
    ("2", "EN", "", "3"),
    ("4", "EN", "0.9", ""),
    ("5", "EN", "0.3", ""),
    ("6", "EN", "0.1", ""),
    ("7", "PT", "1", ""),
]


@pytest.fixture(scope="session")
def semeval(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with idioms/: four expressions with three sentences each for training, but one of them
    one-shot, in one sentence.
    """
    folder = tmp_path_factory.mktemp("corpora")
    idioms = folder / "idioms"
    idioms.mkdir()
    write(idioms / "semeval22_train.csv", TRAINING_FIELDS, training_lines())
    write(idioms / "semeval22_dev.csv", ["ID", "Language", "MWE1", "sentence1", "sentence2"], DEV)
    write(idioms / "semeval22_dev_gold.csv", ["ID", "Language", "sim", "otherID"], GOLD)
    return folder


def training_lines() -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for expression in EXPRESSIONS:
        one_shot = expression == "night owl"
        name = "train_one_shot" if one_shot else "train_zero_shot"
        for place in ("the pub", "a shop", "his club")[: 1 if one_shot else 3]:
            variants = (expression, expression[::-1], f"{expression} pain")
            sentence, right, wrong = (f"the {variant} of {place}" for variant in variants)
            lines += [
                (f"{name}.en.{len(lines)}", expression, "EN", sentence, right, "1", "", ""),
                (f"{name}.en.{len(lines)}", expression, "EN", sentence, wrong, "None", right, wrong),
            ]
    return [*lines, ("train_zero_shot.pt.1", "olho", "PT", "um olho", "uma vista", "1", "", "")]


def write(path: Path, fields: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([fields, *lines])
