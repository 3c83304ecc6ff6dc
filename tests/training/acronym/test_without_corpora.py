"""Releases for whoever cannot use CASI or the ADE corpus: nothing is read of what they are made without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from models.acronym.prototypes import WRITTEN
from models.loading import load
from models.releases.manifest import Release
from models.releases.store import open_release
from tests.training.acronym.corpus import write_dictionary
from training.acronym import assemble, data, written
from training.acronym.__main__ import main
from training.teaching.batches import AcronymContext

WRITTEN_CONTEXTS = [
    AcronymContext(short, form, f"{text} {short} {n}")
    for short, forms in {"PD": ("pain drug", "plain dose"), "TP": ("the pain", "top pick")}.items()
    for form in forms
    for n, text in enumerate((f"{form[0]} with", f"{form[-1]} near", "she had"))
]


@pytest.fixture(autouse=True)
def contexts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small teaching corpus, and a sentence to choose weights on."""
    for module in (assemble, data):
        monkeypatch.setattr(module, "acronym_contexts", lambda part: WRITTEN_CONTEXTS)
    rows = ["sentence\tshort_form\tlong_forms", "her PD was mild\tPD\tpain drug"]
    (tmp_path / "sentences.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr(written, "SENTENCES", tmp_path / "sentences.tsv")


def only_release(root: Path) -> Release:
    (path,) = (root / "acronym").iterdir()
    return open_release(path)


def run(base: str, tmp_path: Path) -> dict[str, Any]:
    return {
        "dictionary": write_dictionary(tmp_path / "dictionary.tsv"), "base": base, "layers": 1, "epochs": 1,
        "batch": 8, "max_pieces": 64, "held_out": 0.34, "precision": "float32",
    }  # fmt: skip


def test_a_release_is_made_without_both_corpora(tiny_bert: str, tmp_path: Path) -> None:
    own = run(tiny_bert, tmp_path) | {"output": tmp_path / "out", "corpora": "written"}
    main(data=tmp_path, without="casi,ade", **own)
    release = only_release(tmp_path / "out")
    assert [s.licence for s in release.manifest.training_data] == ["CC0-1.0"]
    assert release.manifest.scores == []
    model: Any = load(release, dtype="float32").model
    assert {use.source for use in model.scorer.prototypes.entries} == {WRITTEN}
    # The senses of CASI are not in the dictionary.
    assert "PE" not in model.dictionary


@pytest.mark.parametrize(("without", "kept"), [("casi", "ADE corpus"), ("ade", "CASI")])
def test_a_release_made_without_one_of_them_learns_from_the_other_and_is_scored_on_both(
    without: str, kept: str, tiny_bert: str, folder: Path, tmp_path: Path
) -> None:
    own = run(tiny_bert, tmp_path) | {"output": tmp_path / "out", "corpora": "written"}
    main(data=folder, without=without, **own)
    manifest = only_release(tmp_path / "out").manifest
    named = [s.name for s in manifest.training_data]
    assert manifest.training_data[-1].licence == "CC0-1.0"
    assert len(named) == 2
    assert named[0].startswith(kept)
    assert {"accuracy", "accuracy_defined"} <= {s.name for s in manifest.scores}


def test_training_on_a_corpus_that_is_left_out_is_refused(folder: Path, tmp_path: Path) -> None:
    for corpora, validated in (("written,phrases", ""), ("written", "ade_defined")):
        with pytest.raises(typer.BadParameter, match="--without ade: it is among the training corpora"):
            main(data=folder, output=tmp_path, corpora=corpora, validated=validated, without="ade")
    with pytest.raises(typer.BadParameter, match="--without takes casi and ade, not 'psytar'"):
        main(data=folder, output=tmp_path, without="psytar")
