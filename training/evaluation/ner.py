"""Evaluation of tagging: strict spans on PsyTAR and ADE folds, beside a dictionary of mentions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

from models.scores import micro_f1, span_counts
from models.types import ADE, DRUG, LABELS
from training.common.corpora import GoldText, ade_part, read_psytar
from training.common.tagging.spans import DictionaryTagger, gold_spans, mention_spans
from training.evaluation.measures import macro_f1
from training.evaluation.relation import SPLITS as ADE_SPLITS
from training.evaluation.relation import split_texts
from training.evaluation.result import Result

SPLITS = ("psytar_test", "psytar_dev", *ADE_SPLITS)
PRIMARY = "strict_micro_f1"
PSYTAR_TAGS = tuple(label for label in LABELS if label != DRUG)
ADE_TAGS = (DRUG, ADE)
DICTIONARY = (
    "longest match of the mentions of the corpus' training part, each with its commonest label, training "
    "sentences that are test sentences left out"
)


class Corpus(NamedTuple):
    """What a release is evaluated on; `labels` are those that the corpus annotates."""

    data: str
    labels: tuple[str, ...]
    training: list[GoldText]
    records: list[GoldText]


def read(data: Path, split: str, limit: int) -> Corpus:
    """The sentences of a split, and the training part of the same corpus."""
    clinical = split in ADE_SPLITS
    if clinical:
        training, test = split_texts(data / "ade", split)
        name = f"ADE corpus {ade_part(split)} test"
    else:
        part = split.removeprefix("psytar_")
        training = read_psytar(data / "psytar/ner_train.conll")
        test = read_psytar(data / f"psytar/ner_{part}.conll")
        name = f"PsyTAR {part}"
    # A few sentences of PsyTAR occur in two parts.
    tested = {t.text for t in test}
    labels = ADE_TAGS if clinical else PSYTAR_TAGS
    return Corpus(
        name, labels, [t for t in training if t.text not in tested], test[:limit] if limit else test
    )


def measure(model: Any, corpus: Corpus) -> Result:
    """Evaluates the mentions that `model.predict` gives."""
    texts, gold = [t.text for t in corpus.records], gold_spans(corpus.records)
    started = time.perf_counter()
    mentions = model.predict(texts)
    seconds = time.perf_counter() - started
    names = ", ".join(corpus.labels)
    strict = (
        "exact boundaries and label; predictions of labels that the corpus does not annotate are left out"
    )
    triples = [3 * i for i in range(len(corpus.labels))]
    measures = (
        micro_f1("strict_micro_f1", f"{strict}; micro F1 over {names}", triples),
        macro_f1("strict_macro_f1", f"{strict}; macro F1 over {names}", triples),
        micro_f1("ade_strict_micro_f1", f"{strict}; F1 over ADE", [3 * corpus.labels.index(ADE)]),
    )
    return Result(
        span_counts(mention_spans(mentions), gold, corpus.labels),
        span_counts(DictionaryTagger(corpus.training).predict(texts), gold, corpus.labels),
        measures,
        {m.name: DICTIONARY for m in measures},
        seconds,
    )
