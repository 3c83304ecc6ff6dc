"""The table of scores of several releases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from benchmarks.comparators import in_words, main
from models.releases.store import bundled, open_release


def test_scores_of_two_releases_are_written_with_their_settings(tmp_path: Path) -> None:
    one, file = bundled("ner"), tmp_path / "scores.json"
    main([f"one={one}", f"same={one}"], file, ["strict_micro_f1"])
    content = json.loads(file.read_bytes())
    assert content["rows"]["one"] == content["rows"]["same"]
    trained_with, *names = content["rows"]["one"]
    epochs = open_release(one).manifest.configuration["training"]["epochs"]
    assert f"epochs {epochs}" in content["rows"]["one"][trained_with]
    assert names
    assert all(name.startswith("strict_micro_f1, ") for name in names)
    assert set(content["definitions"]) == {"strict_micro_f1"}
    assert content["settings"]["one"]["base"] == "mini"
    assert str(one.parent) not in file.read_text(encoding="utf-8")


def test_settings_are_named_in_one_line() -> None:
    settings = {"objective": "m", "corpora": ["sdu22"], "surface": False, "dropout": 0.5}
    assert in_words(settings) == "objective m, corpora sdu22, surface off, dropout 0.5"
    assert in_words("nothing was trained") == "nothing was trained"


@pytest.mark.parametrize(
    ("other", "reason"),
    [("relation", "different tasks"), (None, "not NAME=FOLDER"), ("ner", "with a unique name")],
)
def test_releases_that_cannot_be_compared_are_refused(other: str | None, reason: str, tmp_path: Path) -> None:
    releases = [f"one={bundled('ner')}"]
    releases.append("two" if other is None else f"{'one' if other == 'ner' else 'two'}={bundled(other)}")
    with pytest.raises(typer.BadParameter, match=reason):
        main(releases, tmp_path / "x.json", None)
    assert not (tmp_path / "x.json").exists()
