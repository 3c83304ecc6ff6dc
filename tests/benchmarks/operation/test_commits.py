"""Figures of commits beside each other, and the files of a commit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.operation.commits import ROOT, Run, measured, rows, unpacked

HAS_GIT = (ROOT / ".git").exists()


def test_gains_are_those_of_each_round() -> None:
    slow, fast = Run(90.0, 8.0, 10.0, 20.0, 2e9), Run(30.0, 2.0, 20.0, 5.0, 1e9)
    busy = Run(300.0, 9.0, 1.0, 60.0, 2e9), Run(100.0, 3.0, 2.0, 20.0, 1e9)
    made = rows({"old": [slow, busy[0], slow], "middle": [slow, busy[0], slow], "new": [fast, busy[1], fast]})
    assert made["old"]["gain_by_cpu"] == made["middle"]["gain_by_cpu"] == 1.0
    assert (made["new"]["gain_by_cpu"], made["new"]["gain_by_wall"]) == (3.0, 2.0)
    assert made["new"]["to_the_first_by_cpu"] == 3.0
    assert (made["new"]["cpu_ms_a_record"], made["new"]["peak_memory_gb"]) == (30.0, 1.0)


def test_the_first_records_are_no_part_of_a_records_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = {"records_per_second": 7.0, "first_result_seconds": 3.0, "peak_memory_bytes": 10}

    def demo(checkout: Path, lines: dict[str, list[bytes]]) -> tuple[dict[str, float], float]:
        return report, 5.0 + 0.25 * sum(map(len, lines.values()))

    monkeypatch.setattr("benchmarks.operation.commits.demo", demo)
    run = measured(tmp_path, {"posts": [b"{}"] * 12, "sentences": [b"{}"] * 10}, few=2)
    assert run == Run(250.0, 6.0, 7.0, 3.0, 10)


@pytest.mark.skipif(not HAS_GIT, reason="not a clone")
def test_the_files_of_a_commit_are_unpacked(tmp_path: Path) -> None:
    folder = unpacked("HEAD", tmp_path / "files")
    listed = subprocess.run(
        ["git", "ls-tree", "--name-only", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert sorted(p.name for p in folder.iterdir()) == sorted(listed)
    (manifest,) = folder.glob("models/pretrained/ner/*/manifest.json")
    assert json.loads(manifest.read_bytes())["task"] == "ner"
