"""Names of other lists that the terminology has."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.normalization.names import column, effects, share


def test_names_are_compared_without_case_and_suffix(tmp_path: Path) -> None:
    path = tmp_path / "oae.csv"
    path.write_text("oae_id,label\n1,Nausea AE\n2,dry eye AE\n", encoding="utf-8")
    assert column(path, "label") == ["nausea", "dry eye"]
    assert share(column(path, "label"), {"nausea"}) == 0.5


def test_effects_are_counted_as_often_as_they_occur(tmp_path: Path) -> None:
    sentence = {
        "tokens": ["Rash", "after", "lithium"],
        "entities": [
            {"type": "Adverse-Effect", "start": 0, "end": 1},
            {"type": "Drug", "start": 2, "end": 3},
        ],
    }
    path = tmp_path / "sentences.json"
    path.write_text(json.dumps([sentence, sentence]), encoding="utf-8")
    assert effects(path) == ["rash", "rash"]
