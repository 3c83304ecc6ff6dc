"""The parts of the benchmark of speed that need no broker, and what it says of the others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from benchmarks.speed import against
from benchmarks.speed.__main__ import main, measured
from benchmarks.speed.timing import Timed, chunks, median, side_by_side

APP = typer.Typer()
APP.command()(main)


def test_calls_run_side_by_side_and_answer_in_their_order() -> None:
    assert side_by_side([lambda i=i: i for i in range(5)], 2) == [0, 1, 2, 3, 4]  # type: ignore[misc]
    assert [list(part) for part in chunks(range(5), 2)] == [[0, 1], [2, 3], [4]]
    assert median([Timed(1.0, 5.0), Timed(3.0, 4.0), Timed(2.0, 9.0)]) == (2.0, 5.0)


@pytest.mark.slow
def test_a_quick_run_measures_each_stage_of_each_topic(tmp_path: Path) -> None:
    command = ["--data", str(tmp_path), "--quick", "--json", str(tmp_path), "--parts", "stages"]
    answer = CliRunner().invoke(APP, command)
    assert answer.exit_code == 0, answer.output
    found = json.loads((tmp_path / "stages.json").read_bytes())
    assert len(found["rows"]) == 7
    assert all(row["records_per_second"] > 0 and row["cpu_ms_a_record"] > 0 for row in found["rows"].values())
    assert found["commit"]
    assert found["machine"]


def test_an_unknown_part_is_named() -> None:
    answer = CliRunner().invoke(APP, ["--parts", "stages,stage"])
    assert answer.exit_code == 2
    assert "['stage']" in answer.output


def test_without_a_kafka_a_part_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ((name, figures),) = measured(["latency"], tmp_path, quick=True)
    assert name == "latency"
    assert "java" in figures["left_out"]


#: Stands for a tree that measures: its figures are what it says.
PROGRAM = """
import json, sys
from pathlib import Path
for part in ("stages", "brokers"):
    rows = {{part: {{"records": 5, "records_per_second": {}}}}}
    Path(sys.argv[sys.argv.index("--json") + 1], part + ".json").write_text(json.dumps({{"rows": rows}}))
"""


def test_the_commit_of_the_last_results_runs_in_turns_with_this_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(against, "ROOT", tmp_path)

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True
        )

    program, results = tmp_path / "benchmarks/speed/__main__.py", tmp_path / against.RESULTS
    program.parent.mkdir(parents=True)
    results.mkdir(parents=True)
    git("init", "-q")
    for speed, changed in ((100, results / "stages.json"), (150, results / "other.json")):
        program.write_text(PROGRAM.format(speed))
        changed.write_text("{}")
        git("add", ".")
        git("commit", "-q", "-m", "measured")
    program.write_text(PROGRAM.format(125))
    found = against.against(against.landed(), [], minutes=0)
    assert found["turns"] == 1
    assert found["rows"] == {part: {"records_per_second_to_then": 1.25} for part in ("brokers", "stages")}
