"""The benchmarks of the relation stage, on a tiny base model."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import typer
from torch import Tensor

from benchmarks.relation import __main__ as speed
from benchmarks.relation import acronyms, classes, spaces, written
from benchmarks.relation import false as relation_false
from benchmarks.relation import folds as relation_folds
from benchmarks.relation import tables as relation_tables
from models.acronym.model import AcronymModel
from models.relation.model import RelationModel
from models.releases.store import bundled, open_release
from models.scores import F1
from models.types import ADE, DRUG
from tests.training.fakes import mentions, tagger
from training.common.corpora import GoldMention, GoldText
from training.evaluation.relation import Corpus
from training.ner import assemble as ner
from training.ner.settings import Settings as TaggerSettings
from training.relation import release as relation
from training.relation.linear_probe import probe
from training.relation.settings import Settings, SupportSizes
from training.relation.written import held_out
from training.teaching.readers import gold_texts

SMALL = {"folds": "1", "device": "cpu", "epochs": 1, "pair_epochs": 1, "negatives": 4, "plain": 0}


def folds(corpus: Path, base: str, result: Path, **options: Any) -> dict[str, Any]:
    relation_folds.main(data=corpus, result=result, base=base, **(SMALL | options))
    content: dict[str, Any] = json.loads(result.read_bytes())
    return content


def test_folds_that_are_in_the_file_are_not_trained_again(
    corpus: Path, tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tmp_path / "folds.json"
    first = folds(corpus, tiny_bert, result)
    assert first["folds_done"] == 1
    assert first["re_strict_macro_f1"] == first["folds"]["1"]["scores"]["re_strict_macro_f1"]
    assert set(first["definitions"]) == set(first["folds"]["1"]["scores"])
    monkeypatch.setattr(relation_folds, "fold_row", lambda *_: pytest.fail("trained again"))
    again = folds(corpus, tiny_bert, result)
    assert again["folds"] == first["folds"]
    with pytest.raises(typer.BadParameter, match="settings"):
        folds(corpus, tiny_bert, result, seed=1)
    monkeypatch.setattr(relation_folds, "code_digest", lambda: "other")
    with pytest.raises(typer.BadParameter, match="code"):
        folds(corpus, tiny_bert, result)
    with pytest.raises(typer.BadParameter, match="--folds 0"):
        folds(corpus, tiny_bert, result, folds="0")


def test_plain_fine_tuning_is_measured_on_the_same_part_without_shared_abstracts(
    corpus: Path, tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = []

    def watched_make(settings: TaggerSettings, *arguments: Any) -> Any:
        splits.append((settings.corpora, settings.split))
        return make(replace(settings, base=tiny_bert, epochs=2), *arguments)

    make = ner.make
    monkeypatch.setattr(ner, "make", watched_make)
    found = folds(corpus, tiny_bert, tmp_path / "groups.json", grouped=True, plain=1)
    assert splits == [("ade", "ade_group_1")]
    assert found["plain_folds_done"] == 1
    assert set(found["folds"]["1"]["plain"]) == set(found["folds"]["1"]["scores"])


def test_every_pair_of_a_taggers_mentions_is_linked() -> None:
    model = relation_folds.EveryPair(tagger(Zoloft=DRUG, Aspirin=DRUG, rash=ADE))
    (found,) = model.predict(["Zoloft and Aspirin gave a rash"])
    assert [(r.head, r.tail) for r in found.relations] == [(0, 2), (1, 2)]
    given = mentions("rash Zoloft", Zoloft=DRUG, rash=ADE)
    assert [[(r.head, r.tail) for r in own] for own in model.relate(["rash Zoloft"], [given])] == [[(1, 0)]]


def test_false_relations_are_counted_by_verdict(tmp_path: Path) -> None:
    model: Any = relation_folds.EveryPair(tagger(Zoloft=DRUG, Aspirin=DRUG, rash=ADE))
    texts = [
        GoldText("neg-0", "Zoloft was given", ()),
        GoldText("neg-1", "Aspirin against a rash from Zoloft", ()),
        GoldText("neg-2", "rash after Zoloft", ()),
    ]
    predicted = list(relation_false.predicted(model, texts))
    assert predicted[0] == (("neg-1", 0, 7, 18, 22), "Aspirin against a rash from Zoloft")
    table = tmp_path / "read.tsv"
    header = "\t".join(relation_false.COLUMNS)
    table.write_text(f"{header}\nneg-1\t0\t7\t18\t22\t0\nneg-1\t28\t34\t18\t22\t1\n", encoding="utf-8")
    figures = relation_false.count(
        [row for row, _ in predicted], relation_false.read_verdicts(table), len(texts)
    )
    assert figures == {
        "sentences": 3,
        "relations": 3,
        "relations_read": 2,
        "relations_said": 1,
        "sentences_with_a_relation": 2,
        "sentences_with_one_said": 1,
        "false_relations_per_1000": 1000.0,
        "false_relations_per_1000_not_said": 666.7,
    }
    table.write_text(f"{header}\nneg-1\t0\t7\t18\t22\t?\n", encoding="utf-8")
    with pytest.raises(ValueError, match="neg-1: said is 0 or 1"):
        relation_false.read_verdicts(table)


def test_relations_of_drug_classes_are_counted_and_printed_beside_those_of_named_drugs(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(corpus, data)
    with (data / "ade/negatives.txt").open("a", encoding="utf-8") as file:
        # As many abstracts as it takes that one of them is held out.
        file.writelines(
            f"{n} NEG A severe rash and fever developed in a woman taking antibiotics {n} .\n"
            for n in range(9000, 9020)
        )
    classes.main(data=data, result=tmp_path / "classes.json")
    figures = json.loads((tmp_path / "classes.json").read_bytes())
    named, both = (
        figures["rows"][name]["false_relations_per_1000"] for name in ("named drugs", "classes too")
    )
    assert figures["relations in addition"] > 0
    assert both > named
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("neg-")]
    assert len(lines) == figures["relations in addition"]
    assert any("\tantibiotics\tfever\t" in line for line in lines)


def test_written_sentences_are_scored_apart_by_whether_they_have_an_effect() -> None:
    ids = [t.id for t in gold_texts("clinical", "held_out")]
    parts = [held_out(batches) for batches in written.PARTS.values()]
    assert sorted(t.id for data in parts for t in data.records) == sorted(ids)
    data = parts[0]
    assert all(any(m.label == ADE for m in t.mentions) for t in data.test)
    assert not any(m.label == ADE for t in data.negatives for m in t.mentions)
    known = {t.text for t in data.training}
    assert not any(t.text in known for t in data.records)
    text = GoldText(
        "own-1", "rash after Zoloft", (GoldMention(11, 17, DRUG), GoldMention(0, 4, ADE)), ((0, 1),)
    )
    small = Corpus("two", [], [text], [GoldText("own-2", "Zoloft against a rash", ())])
    model: Any = relation_folds.EveryPair(tagger(Zoloft=DRUG, rash=ADE))
    found = written.figures(model, small)
    assert found["re_strict_macro_f1"]["value"] == 1
    assert found["false_relations_per_1000"]["value"] == 1000
    assert "re_corpus_f1" not in found


def test_records_are_read_with_the_long_forms_of_their_acronyms() -> None:
    text = GoldText(
        "own-1",
        "SJS on lamotrigine, transferred to burn unit.",
        (GoldMention(7, 18, DRUG), GoldMention(0, 3, ADE)),
        ((0, 1),),
    )
    data = Corpus("one", [], [text], [GoldText("own-2", "On lamotrigine 100 mg, no complaints.", ())])
    tagged, expanded = (
        RelationModel.load(open_release(bundled("relation"))),
        AcronymModel.load(open_release(bundled("acronym"))),
    )
    found = acronyms.compared(tagged, expanded, data)
    score = "re_strict_macro_f1"
    assert (found["texts"], found["texts with such long forms"]) == (2, 1)
    assert (found["as written"][score]["value"], found["with long forms"][score]["value"]) == (0, 1)


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


def test_maps_of_both_spaces_are_drawn_for_the_base_and_the_release(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    settings = Settings(base=tiny_bert, epochs=1, pair_epochs=1, negatives=4)
    release = relation.make("all", settings, SupportSizes(), corpus, tmp_path)
    spaces.main(
        data=corpus, release=release.path, output=tmp_path / "maps", each=8, result=tmp_path / "maps.json"
    )
    names = sorted(p.name for p in (tmp_path / "maps").iterdir())
    assert names == sorted(
        f"{one}-{space}.svg"
        for one in ("plain-base", f"release-{release.version}")
        for space in ("entities", "relations")
    )
    tree = ElementTree.parse(tmp_path / "maps" / "plain-base-relations.svg")
    circles = tree.findall("{http://www.w3.org/2000/svg}circle")
    # Four relations, a wrong pair for each, and two in the legend.
    assert len(circles) == 8 + 2
    figures = json.loads((tmp_path / "maps.json").read_bytes())
    assert figures["plain base, relations, by chance"] == 0.5
    assert 0 <= figures[f"release {release.version}, entities"] <= 1


def test_the_tables_have_untrained_baselines(
    corpus: Path, tiny_bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(base=tiny_bert, epochs=1, pair_epochs=1, negatives=4)
    release = relation.make("all", settings, SupportSizes(), corpus, tmp_path)
    result = tmp_path / "tables.json"
    seen: list[Tensor] = []

    def watched(train: tuple[Any, Tensor], test: tuple[Any, Tensor]) -> F1:
        seen.append(test[1])
        return probe(train, test)

    monkeypatch.setattr(relation_tables, "probe", watched)
    relation_tables.main(corpus, result, release=release.path, pair_epochs=1)
    figures = json.loads(result.read_bytes())
    ours = {k: row for k, row in figures["rows"].items() if "paper" not in k}
    assert list(ours) == ["pretrained", "CLNER", "CLDR", "CLGS"]
    # Each row is from a different encoder.
    assert not any(torch.equal(one, other) for one, other in combinations(seen, 2))
    vectors = [tuple(row.values()) for row in ours.values()]
    assert all(0 <= value <= 100 for row in vectors for value in row)
    assert figures["similarity_check_baseline"] == pytest.approx(1 / 9, abs=1e-4)
    assert 0 <= figures["similarity_check_untrained"] <= 1
    assert 0 <= figures["similarity_check"] <= 1
    assert figures["release"] == release.version


def test_the_share_of_neighbours_of_the_same_kind_is_one_for_separate_kinds() -> None:
    vectors = np.repeat(np.eye(2, dtype=np.float32), 5, axis=0) + 0.01 * np.arange(20).reshape(10, 2)
    points = spaces.Points("x", vectors.astype(np.float32), np.repeat([0, 1], 5), ("a", "b"))
    assert points.share() == (1.0, 0.5)
    assert spaces.Points("x", points.vectors, np.array([0, 1] * 5), ("a", "b")).share()[0] < 1


def test_a_clock_counts_nested_calls_once() -> None:
    class Work:
        calls = 0

        def outer(self) -> None:
            self.inner()

        def inner(self) -> None:
            self.calls += 1

    work, clock = Work(), speed.Clock()
    clock.around(work, "outer")
    clock.around(work, "inner")
    work.outer()
    once = clock.seconds
    work.inner()
    assert work.calls == 2
    assert 0 < once < clock.seconds
