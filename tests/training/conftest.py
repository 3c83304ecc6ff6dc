"""A small corpus in the forms in which the real ones are published, and encoders that nothing changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

DRUGS = ("Zoloft", "Aspirin", "Clozapine", "Ibuprofen")
EFFECTS = (["rash"], ["severe", "nausea"], ["insomnia"], ["liver", "pain"])


def ade_row(number: int, drug: str, effect: Sequence[str]) -> dict[str, Any]:
    """A sentence in the form of the ADE corpus as SpERT ships it: token positions, effect before drug."""
    tokens = [drug, "caused", *effect, "on", "day", str(number), "."]
    return {
        "orig_id": number,
        "tokens": tokens,
        "entities": [
            {"type": "Adverse-Effect", "start": 2, "end": 2 + len(effect)},
            {"type": "Drug", "start": 0, "end": 1},
        ],
        "relations": [{"type": "Adverse-Effect", "head": 0, "tail": 1}],
    }


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with ade/ and psytar/, twenty sentences of the one and twelve of the other."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "ade").mkdir()
    rows = [ade_row(i, DRUGS[i % 4], EFFECTS[i // 4 % 4]) for i in range(20)]
    (folder / "ade/sentences.json").write_text(json.dumps(rows), encoding="utf-8")
    ids = [str(row["orig_id"]) for row in rows]
    folds = {"split_1": {"train set": ids[:16], "test set": ids[16:]}}
    (folder / "ade/folds.json").write_text(json.dumps(folds), encoding="utf-8")
    negatives = [f"{i} NEG {DRUGS[i % 4]} was given on day {i} ." for i in range(10)]
    (folder / "ade/negatives.txt").write_text("\n".join(negatives) + "\n", encoding="utf-8")
    (folder / "psytar").mkdir()
    for name, numbers in (("train", range(12)), ("test", range(12, 16))):
        sentences = [
            f"Since\tO\nday\tO\n{i}\tO\nof\tO\nzoloft\tO\nno\tB-ADR\nsleep\tI-ADR\n.\tO\n" for i in numbers
        ]
        (folder / f"psytar/ner_{name}.conll").write_text("\n".join(sentences), encoding="utf-8")
    return folder
