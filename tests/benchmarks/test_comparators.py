"""Scores of releases side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from benchmarks.comparators import main
from models.releases.store import bundled


def test_scores_of_two_releases_stand_side_by_side_with_their_settings(tmp_path: Path) -> None:
    one, file = bundled("ner"), tmp_path / "scores.json"
    main([f"one={one}", f"same={one}"], file, ["strict_micro_f1"])
    found = json.loads(file.read_bytes())
    assert found["rows"]["one"] == found["rows"]["same"]
    assert all(name.startswith("strict_micro_f1, ") for name in found["rows"]["one"])
    assert set(found["definitions"]) == {"strict_micro_f1"}
    assert found["settings"]["one"]["base"] == "mini"
    assert str(one.parent) not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("other", "reason"),
    [("relation", "different tasks"), (None, "not NAME=FOLDER"), ("ner", "with a name of its own")],
)
def test_what_cannot_be_compared_is_refused(other: str | None, reason: str, tmp_path: Path) -> None:
    releases = [f"one={bundled('ner')}"]
    releases.append("two" if other is None else f"{'one' if other == 'ner' else 'two'}={bundled(other)}")
    with pytest.raises(typer.BadParameter, match=reason):
        main(releases, tmp_path / "x.json", None)
    assert not (tmp_path / "x.json").exists()
