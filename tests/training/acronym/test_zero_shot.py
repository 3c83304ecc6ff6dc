"""The acronym program without training, run whole on a tiny base and a handful of rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from models.loading import load
from models.releases.manifest import Release
from models.releases.store import open_release
from training.acronym import __main__ as acronym
from training.evaluation.result import EvaluationError


def only_release(root: Path, task: str) -> Release:
    (path,) = (root / task).iterdir()
    return open_release(path)


def test_the_acronym_program_builds_its_dictionary_and_scores_every_set(
    tmp_path: Path, tiny_bert: str
) -> None:
    folder = tmp_path / "data/acronyms"
    folder.mkdir(parents=True)
    (folder / "casi_dev.csv").write_text(
        "acronym_,expansion,text\nMS,multiple sclerosis,seen with MS today\nMS,morphine,MS was given\n"
        "MS,morphine,the MSG was eaten\n",
        encoding="utf-8",
    )
    rows = [{"sentence": "a CNN was trained", "acronym": "CNN", "label": "cable news network"}]
    for name in ("scientific", "legal"):
        (folder / f"sdu22_{name}_dev.json").write_text(json.dumps(rows), encoding="utf-8")
        senses = {"CNN": ["cable news network"]}
        (folder / f"sdu22_{name}_dictionary.json").write_text(json.dumps(senses), encoding="utf-8")
    dictionary = tmp_path / "dictionary.tsv"
    dictionary.write_text("short_form\tlong_form\nMTX\tmethotrexate\n", encoding="utf-8")

    acronym.main(
        data=tmp_path / "data", dictionary=dictionary, output=tmp_path / "out", base=tiny_bert, zero_shot=True
    )
    release = only_release(tmp_path / "out", "acronym")
    scores = {s.data: s for s in release.manifest.scores if s.name == "accuracy"}
    casi, *sdu = scores.values()
    # Of one sense only, the choice is right.
    assert [(s.records, s.value) for s in sdu] == [(1, 1.0)] * 2
    assert 0 < casi.records < 3
    assert release.file("dictionary.tsv").read_bytes() == dictionary.read_bytes()
    ((found,),) = load(release, dtype="float32").model.predict(["she took MTX today"])
    assert (found.long_form, found.source) == ("methotrexate", "dictionary")


def test_a_release_is_scored_on_the_sets_that_are_there_and_needs_one(
    tmp_path: Path, tiny_bert: str, folder: Path
) -> None:
    """SDU@AAAI-22 is for non-commercial use, so that many have CASI alone."""
    (tmp_path / "data/acronyms").mkdir(parents=True)
    options = {"data": tmp_path / "data", "output": tmp_path / "out", "base": tiny_bert, "zero_shot": True}
    with pytest.raises(EvaluationError, match="casi: no file"):
        acronym.main(**options)
    shutil.copyfile(folder / "acronyms/casi_dev.csv", tmp_path / "data/acronyms/casi_dev.csv")
    acronym.main(**options)
    scores = only_release(tmp_path / "out", "acronym").manifest.scores
    assert {s.data for s in scores} == {"CASI, held-out three tenths of the rows of every acronym"}
