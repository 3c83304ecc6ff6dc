"""Senses held out of training: which sentences are used, and which long forms there are to choose from."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.acronym.senses import Found, figures, narrowed, rows_without, some_sentences
from models.acronym.prototypes import WRITTEN
from models.types import Span
from tests.training.acronym.corpus import write_corpus
from training.acronym.prototypes import EncodedRows
from training.acronym.settings import Settings
from training.evaluation.acronym import Row


def test_the_first_or_the_second_sentence_of_each_sense_is_used() -> None:
    rows = [Row(f"PD {n}", Span(0, 2), ("a", "b"), gold) for n, gold in enumerate("aabb")]
    written = EncodedRows(WRITTEN, rows, [[0.0, 0.0]] * 4, torch.eye(4))
    assert [r.text for r in some_sentences(written, (1,)).rows] == ["PD 1", "PD 3"]
    assert some_sentences(written, (0, 1)).rows == rows
    assert some_sentences(written, ()).rows == []


def test_no_row_of_a_held_out_sense_is_trained_or_validated_on(tmp_path: Path) -> None:
    data = write_corpus(tmp_path)
    settings = Settings(corpora="sdu22_scientific,casi", validated="ade_defined", held_out=0.4)
    training, validation = rows_without(data, settings, {("PD", "pain-drug"), ("TP", "thepain")})
    golds = {row.gold for rows in (training, *validation) for row in rows}
    assert len(validation) == 3
    assert {"drug day", "plain dose"} <= golds
    assert not golds & {"pain drug", "the pain", "thepain"}


def test_narrowed_rows_have_the_data_sets_long_forms_and_their_logits() -> None:
    row = Row("PD", Span(0, 2), ("a", "b", "of the dictionary"), "b")
    (found,), (logits,) = narrowed(
        EncodedRows("casi", [row], [[1.0, 2.0, 3.0]], torch.eye(1)), {"PD": ("a", "b")}
    )[1:3]
    assert (found.senses, logits) == (("a", "b"), [1.0, 2.0])


def test_figures_are_over_rows_and_over_senses() -> None:
    senses = [("PD", "a")] * 3 + [("PD", "b")]
    part = Found(senses, [2] * 4, [True, True, True, False], [True, False, False, False], [True])
    values = figures([part])
    assert (values["accuracy"], values["mean over senses"]) == (0.75, 0.5)
    assert (values["accuracy in the dictionary"], values["accuracy of the other senses' held-out rows"]) == (
        0.25,
        1,
    )
