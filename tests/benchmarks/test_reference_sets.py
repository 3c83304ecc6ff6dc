"""The store of real texts on which reference sets are counted, with a reader that finds what it is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import reference_sets
from streams.records import CodedReport, Report
from tests.streams.store.messages import event, report


class Reader:
    """Finds Melaena with the stated drug, or with naproxen, in every text."""

    def predict(self, reports: Sequence[Report]) -> list[CodedReport]:
        found = [event((r.drug or ("naproxen",))[0], "Melaena") for r in reports]
        return [report(r.id, 0, e, text=r.text) for r, e in zip(reports, found, strict=True)]


def test_every_text_is_a_report_and_known_effects_are_told_from_controls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = {
        "drug": "lactulose",
        "condition": "",
        "comments": "black",
        "side_effects_text": "ill",
        "benefits": " ",
    }
    rows = [[review], [{"text": "the first"}, {"text": "the second"}, {"text": ""}], [{"text": "the third"}]]
    for name, lines in zip(reference_sets.FILES, rows, strict=True):
        (tmp_path / name).parent.mkdir()
        numbered = [json.dumps({"id": i} | line) for i, line in enumerate(lines)]
        (tmp_path / name).write_text("\n".join(numbered), encoding="utf-8")
    texts = list(reference_sets.reports(tmp_path))
    assert [t.text for t in texts] == ["ill\nblack", "the first", "the second", "the third"]
    assert (texts[0].drug, texts[0].indication) == (("lactulose",), None)
    monkeypatch.setattr(reference_sets, "load", lambda topic: Reader())
    reference_sets.main(tmp_path, tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_bytes())
    assert (figures["texts"], figures["reports with a pair"], figures["pairs"]) == (4, 4, 4)
    for one in figures["sets"]:
        # Of naproxen there are three reports, of lactulose one, and EU-ADR has neither.
        numbers = (one["set"] == "omop", one["set"] == "omop" and one["least"] == 1)
        assert all((row["known"], row["controls"]) == numbers for row in one["rows"]), one
