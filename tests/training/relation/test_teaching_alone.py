"""Relations that are learned from the teaching corpus alone, for whoever cannot use the ADE corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from models.releases.manifest import Release
from models.releases.store import open_release
from models.types import ADE
from training.common.corpora import GoldText
from training.relation.__main__ import main
from training.relation.data import read_taught
from training.teaching.readers import gold_texts


def only_release(root: Path) -> Release:
    (path,) = (root / "relation").iterdir()
    return open_release(path)


def batches(texts: list[GoldText]) -> set[str]:
    return {t.id.split("-")[1] for t in texts}


def small_run(base: str) -> dict[str, Any]:
    return {
        "corpora": "teaching", "teaching": 0.5, "limit": 12, "base": base, "epochs": 1, "pair_epochs": 1,
        "batch": 4,
        "precision": "float32",
    }  # fmt: skip


def test_whole_author_batches_are_for_validation() -> None:
    found = read_taught(seed=42)
    trained, valid = found.train + found.negatives, found.valid + found.valid_negatives
    assert not batches(trained) & batches(valid)
    texts = gold_texts("clinical", "train")
    assert {t.id for t in trained + valid} == {t.id for t in texts}
    assert 0.1 <= len(valid) / len(texts) < 0.3
    assert all(any(m.label == ADE for m in t.mentions) for t in found.train + found.valid)
    assert not any(m.label == ADE for t in found.negatives + found.valid_negatives for m in t.mentions)
    assert sum(bool(t.relations) for t in found.valid) > 50
    half = read_taught(seed=42, share=0.5)
    assert half.valid == found.valid
    assert len(half.train) + len(half.negatives) == round(len(trained) / 2)


@pytest.mark.matrix
def test_a_release_is_made_without_a_public_corpus(tiny_bert: str, tmp_path: Path) -> None:
    main(output=tmp_path, **small_run(tiny_bert))
    manifest = only_release(tmp_path).manifest
    (source,) = manifest.training_data
    assert source.licence == "CC0-1.0"
    assert source.name == "teaching corpus of pvstream, 24 synthetic texts"
    held_out = gold_texts("clinical", "held_out")
    records = {s.name: s.records for s in manifest.scores}
    assert records["re_corpus_f1"] == len(held_out)
    assert records["re_strict_macro_f1"] + records["false_relations_per_1000"] == len(held_out)
    assert all(s.data.startswith("teaching corpus") and "ADE" not in s.data for s in manifest.scores)
    assert all(s.baseline is not None for s in manifest.scores)


@pytest.mark.matrix
def test_its_scores_are_of_the_ade_corpus_too_where_that_is(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    main(data=corpus, output=tmp_path / "first", **small_run(tiny_bert))
    first = only_release(tmp_path / "first")
    assert [s.licence for s in first.manifest.training_data] == ["CC0-1.0"]
    of_ade = [s for s in first.manifest.scores if s.data.startswith("ADE corpus fold 1 test")]
    assert {s.name for s in of_ade} >= {"re_corpus_f1", "re_strict_macro_f1", "ner_strict_macro_f1"}
    assert len(first.manifest.scores) == 2 * len({s.name for s in first.manifest.scores})
    main(output=tmp_path / "like", like=first.path)
    again = only_release(tmp_path / "like").manifest
    assert again.scores == [s for s in first.manifest.scores if s.data.startswith("teaching corpus")]


def test_a_run_over_the_ade_corpus_needs_it_and_one_without_needs_a_share(
    tiny_bert: str, tmp_path: Path
) -> None:
    with pytest.raises(typer.BadParameter, match="--corpora ade needs --data"):
        main(output=tmp_path, base=tiny_bert)
    with pytest.raises(typer.BadParameter, match="--corpora teaching needs --teaching"):
        main(output=tmp_path, base=tiny_bert, corpora="teaching")
