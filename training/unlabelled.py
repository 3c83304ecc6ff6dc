"""Texts of the domain without labels, for taggers that learn from others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from models.releases.manifest import TrainingData
from training.common.corpora import (
    ADE_NEGATIVES,
    PSYTAR_TRAINING,
    RQE_TRAINING,
    ade_corpus,
    in_form,
    json_lines,
    own_texts,
    read_psytar,
)
from training.evaluation.relation import split_negatives, split_texts
from training.teaching.readers import gold_texts, teaching_source

#: Questions of RQE that are shorter say nothing of patients' language.
LEAST_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Texts:
    """Different texts and where they are from: none is in a test part or in PsyTAR's development part; those
    of a training part that a program validates on are among them.
    """

    texts: list[str]
    sources: list[TrainingData]

    @property
    def sha256(self) -> str:
        """A run resumes only over the same texts."""
        return hashlib.sha256("\0".join(self.texts).encode()).hexdigest()


def read_unlabelled(data: Path, split: str, own: Path | None = None) -> Texts:
    """The texts of the public corpora, the questions only if they are there, and of the teaching corpus'
    training part, and those of the file `own` of JSON Lines with `text`. Raises typer.BadParameter for a line
    of it without one, and CorpusError.
    """
    train, test = split_texts(data / "ade", split)
    taught = [t.text for kind in ("posts", "clinical") for t in gold_texts(kind, "train")]
    parts: dict[TrainingData, Iterable[str]] = {
        ade_corpus(split): (t.text for t in train),
        ADE_NEGATIVES: (t.text for t in split_negatives(data / "ade", split)[0]),
        PSYTAR_TRAINING: (t.text for t in read_psytar(data / "psytar/ner_train.conll")),
        teaching_source(len(taught)): taught,
    }
    questions = data / "questions/rqe_train.jsonl"
    if questions.exists():
        parts[RQE_TRAINING] = _questions(questions)
    tested = {t.text for t in test}
    for part in ("dev", "test"):
        tested |= {t.text for t in read_psytar(data / f"psytar/ner_{part}.conll")}
    if own is not None:
        parts[own_source(own)] = own_texts(own)
    texts = dict.fromkeys(text for part in parts.values() for text in part if text not in tested)
    return Texts(list(texts), list(parts))


def _questions(path: Path) -> Iterable[str]:
    with in_form(path):
        rows = [json.loads(line) for _, line in json_lines(path)]
        return [
            row[name] for row in rows for name in ("question", "faq") if len(row[name]) > LEAST_CHARACTERS
        ]


def own_source(path: Path) -> TrainingData:
    """How a file of a user's texts is named among what a release was trained on."""
    return TrainingData(name=f"texts of {path.name}", licence="not stated")
