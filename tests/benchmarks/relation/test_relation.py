"""The benchmarks of the relation stage, on a tiny base model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from benchmarks.relation import folds as relation_folds
from models.types import ADE, DRUG
from tests.training.fakes import mentions, tagger
from training.ner import release as ner
from training.ner.settings import Settings as TaggerSettings
from training.recipes.stages import Place

SMALL: dict[str, Any] = {"folds": "1", "device": "cpu", "plain": 0}
GROUPED: dict[str, Any] = {"grouped": True, "plain": 1}
SETTINGS = ["epochs=1", "negatives=4", "teaching=0.0"]


def folds(corpus: Path, base: str, result: Path, *given: str, **options: Any) -> dict[str, Any]:
    changes = [f"base={base}", *SETTINGS, *given]
    relation_folds.main(data=corpus, result=result, changes=changes, **(SMALL | options))
    content: dict[str, Any] = json.loads(result.read_bytes())
    return content


@pytest.fixture(scope="module")
def trained(
    corpus: Path, tiny_bert: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any], list[TaggerSettings]]:
    """The file of one fold without shared abstracts, what it has, and the settings of plain fine-tuning."""
    plain: list[TaggerSettings] = []
    make = ner.make

    def watched_make(settings: TaggerSettings, place: Place) -> Any:
        plain.append(settings)
        return make(replace(settings, base=tiny_bert, epochs=2), place)

    result = tmp_path_factory.mktemp("folds") / "groups.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ner, "make", watched_make)
        return result, folds(corpus, tiny_bert, result, **GROUPED), plain


def test_folds_that_are_in_the_file_are_not_trained_again(
    corpus: Path,
    tiny_bert: str,
    trained: tuple[Path, dict[str, Any], list[TaggerSettings]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, first, _ = trained
    assert first["folds_done"] == 1
    assert first["re_strict_macro_f1"] == first["folds"]["1"]["scores"]["re_strict_macro_f1"]
    assert set(first["definitions"]) == set(first["folds"]["1"]["scores"])
    for name in ("fold_row", "plain_scores"):
        monkeypatch.setattr(relation_folds, name, lambda *_: pytest.fail("trained again"))
    again = folds(corpus, tiny_bert, result, **GROUPED)
    assert again["folds"] == first["folds"]
    with pytest.raises(typer.BadParameter, match="settings"):
        folds(corpus, tiny_bert, result, "seed=1", **GROUPED)
    monkeypatch.setattr(relation_folds, "code_digest", lambda: "other")
    with pytest.raises(typer.BadParameter, match="code"):
        folds(corpus, tiny_bert, result, **GROUPED)
    with pytest.raises(typer.BadParameter, match="--folds 0"):
        folds(corpus, tiny_bert, result, folds="0")


def test_plain_fine_tuning_is_measured_on_the_same_part_without_shared_abstracts(
    trained: tuple[Path, dict[str, Any], list[TaggerSettings]],
) -> None:
    _, found, plain = trained
    assert [(settings.corpora, settings.split) for settings in plain] == [("ade", "ade_group_1")]
    assert found["plain_folds_done"] == 1
    assert set(found["folds"]["1"]["plain"]) == set(found["folds"]["1"]["scores"])


def test_every_pair_of_a_taggers_mentions_is_linked() -> None:
    model = relation_folds.EveryPair(tagger(Zoloft=DRUG, Aspirin=DRUG, rash=ADE))
    (found,) = model.predict(["Zoloft and Aspirin gave a rash"])
    assert [(r.head, r.tail) for r in found.relations] == [(0, 2), (1, 2)]
    given = mentions("rash Zoloft", Zoloft=DRUG, rash=ADE)
    assert [[(r.head, r.tail) for r in own] for own in model.relate(["rash Zoloft"], [given])] == [[(1, 0)]]


def test_a_mean_over_folds_has_a_standard_deviation_and_baselines() -> None:
    def row(score: float, plain: float) -> dict[str, Any]:
        return {"scores": {"f": score}, "baselines": {"f": 0.5}, "seconds": 10, "plain": {"f": plain}}

    found = relation_folds.summary({"1": row(0.6, 0.4), "2": row(0.8, 0.5)})
    assert found["f"] == pytest.approx(0.7)
    assert found["f_sd"] == pytest.approx(np.std([0.6, 0.8], ddof=1), abs=1e-4)
    assert (found["f_baseline"], found["f_plain_finetuning"], found["plain_folds_done"]) == (0.5, 0.45, 2)
    assert "f_on_plain_folds" not in found
    without = {k: v for k, v in row(0.8, 0.5).items() if k != "plain"}
    part = relation_folds.summary({"1": row(0.6, 0.4), "2": without})
    assert (part["f"], part["f_plain_finetuning"], part["f_on_plain_folds"]) == (0.7, 0.4, 0.6)
