"""Names of other lists that the terminology has."""

from __future__ import annotations

from pathlib import Path

from benchmarks.normalization.names import column, share


def test_names_are_compared_without_case_and_suffix(tmp_path: Path) -> None:
    path = tmp_path / "oae.csv"
    path.write_text("oae_id,label\n1,Nausea AE\n2,dry eye AE\n", encoding="utf-8")
    assert column(path, "label") == ["nausea", "dry eye"]
    assert share(column(path, "label"), {"nausea"}) == 0.5
    assert share(["nausea", "nausea", "rash"], {"nausea"}) == 0.6667
