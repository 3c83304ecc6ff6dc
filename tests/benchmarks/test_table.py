"""The table of results, the machine that it names, and the picture of it."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import pytest

from benchmarks import table
from benchmarks.headline import HEADLINES, Row, result_file
from benchmarks.machine import processor
from benchmarks.picture import lines_of, selected, svg
from models.releases.store import bundled
from models.types import TASKS

PROGRAM = re.compile(r"python -m (benchmarks[\w.]*\w)")


def test_the_committed_file_is_what_the_program_writes() -> None:
    written = (table.ROOT / "RESULTS.md").read_text(encoding="utf-8")
    assert written == table.text(), "run: python -m benchmarks.table"


def test_speeds_without_a_result_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.headline.RESULTS", tmp_path)
    assert len(table.speed()) == 4
    (tmp_path / "speed").mkdir()
    rows = {row: {column: 1.5} for _, name, row, column in table.SPEED if name == "scaling"}
    rows["2 processes of 1 threads"] |= {"speed_to_one": 1.9}
    found = {"machine": "Some CPU", "load_average": 0.5, "commit": "abc", "rows": rows}
    (tmp_path / "speed/scaling.json").write_text(json.dumps(found))
    assert table.speed()[4:] == [
        "| two threads to one, by records a second | 1.5 | Some CPU | 0.5 | abc |",
        "| two processes to one, over Kafka | 1.9 | Some CPU | 0.5 | abc |",
        "| memory of each of the two, MB | 1.5 | Some CPU | 0.5 | abc |",
    ]


def test_every_task_has_a_headline_with_a_baseline() -> None:
    assert {row.task for row in HEADLINES} == {*TASKS, "idiom", "posts"}
    for row in HEADLINES:
        figure = row.figure()
        assert float(figure.value) >= 0
        assert float(figure.baseline) >= 0


def test_a_figure_among_the_words_of_a_baseline_is_read_from_the_result() -> None:
    typed = [row.trivial for row in HEADLINES if re.search(r"\d\.\d", row.trivial)]
    assert typed == []
    (row,) = (row for row in HEADLINES if row.task == "summarization")
    rows = json.loads(result_file(row.result).read_bytes())["rows"]
    value = f"{rows['rouge1_template']['value']:.1f}"
    assert row.trivial_in_words().endswith(f"kind of question: {value}")
    for page in ("README.md", "docs/models/summarization.md"):
        text = (table.ROOT.parent / page).read_text(encoding="utf-8")
        assert f"kind of question: {value})" in text or f"more on MeQSum ({value} and" in text, page


@pytest.mark.parametrize("row", [row for row in HEADLINES if row.task == "posts"])
def test_the_posts_are_measured_with_both_bundled_releases(row: Row) -> None:
    result = json.loads(result_file(row.result).read_bytes())
    assert result["release"] == "+".join(bundled(task).name for task in ("ner", "normalization"))
    assert "not the bundled one" not in row.figure().spread


#: Programs of results that stay, though the programs are in the history, as docs/contributing.md says.
HISTORY = {
    "benchmarks.fuzz", "benchmarks.fuzz.broker", "benchmarks.ner.folds",
    "benchmarks.operation.reload", "benchmarks.operation.steady",
    "benchmarks.operation.suspension", "benchmarks.signals", "benchmarks.signals.simulation",
    "benchmarks.sources", "benchmarks.sources.duplicates", "benchmarks.store",
}  # fmt: skip
MEASURED = [row for row in HEADLINES if row.result.startswith("evaluation_") and row.task != "posts"]


@pytest.mark.parametrize("row", MEASURED)
def test_a_headline_is_of_the_bundled_release_and_agrees_with_its_manifest(row: Row) -> None:
    path = bundled(row.task)
    result = json.loads(result_file(row.result).read_bytes())
    assert result["release"] == path.name
    manifest = json.loads((path / "manifest.json").read_bytes())
    # A score may be of a part of the data.
    stated, *_ = [s for s in manifest["scores"] if s["name"] == row.score and s["data"] in result["data"]]
    if manifest["kind"].startswith("edited:"):
        # Its editor is not read any more; the page says what the manifest has.
        page = " ".join(
            (table.ROOT.parent / f"docs/models/{row.task}.md").read_text(encoding="utf-8").split()
        )
        assert f"manifest ({stated['value']:.1f} on MeQSum) are of edited answers" in page
        return
    # The mentions of the end-to-end score come from the bundled tagger, which may be newer than the manifest.
    tolerance = 0.05 if row.result.endswith("end_to_end") else 1e-3
    assert result["rows"][row.score]["value"] == pytest.approx(stated["value"], rel=tolerance)


def test_a_figure_of_another_release_than_the_bundled_one_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in HEADLINES if row.result == "evaluation_ner")
    assert "not the bundled one" not in row.figure().spread
    monkeypatch.setattr("benchmarks.headline.bundled", lambda task: bundled(task).with_name("0" * 12))
    assert "not the bundled one" in row.figure().spread


@pytest.mark.parametrize("file", sorted((table.ROOT / "results").rglob("*.json")), ids=lambda file: file.stem)
def test_the_command_of_a_result_names_a_program(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for path in re.findall(r"tests/[\w/]+\.py", text):
        assert (table.ROOT.parent / path).exists(), path
    for name in PROGRAM.findall(text):
        path = table.ROOT.parent / name.replace(".", "/")
        is_here = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        assert is_here != (name in HISTORY), name


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu avx2 avx512f avx512_bf16 amx_bf16", "Some CPU: fast (AMX)"),
        ("fpu avx2 avx512f avx512_bf16", "Some CPU: fast (AVX-512 BF16)"),
        ("fpu avx2", "Some CPU: fast (AVX2)"),
        ("fpu avx", "Some CPU: fast"),
    ],
)
def test_a_processor_is_named_with_its_fastest_instructions(
    tmp_path: Path, flags: str, expected: str
) -> None:
    file = tmp_path / "cpuinfo"
    core = f"processor\t: 0\nmodel name\t: Some CPU: fast\nflags\t\t: {flags}\n\n"
    file.write_text(core * 2)
    assert processor(file) == expected


def test_without_a_list_of_processors_the_platform_names_its_own(tmp_path: Path) -> None:
    assert processor(tmp_path / "nothing") == platform.processor()


PICTURE = Path(__file__).parents[2] / "docs/pictures/demo.svg"

OUTPUT = (
    " DRUG \n"
    "\x1b[?25l\x1b[32m-\x1b[0m starting 0/2\r\x1b[2Kposts \x1b[1mpost-1\x1b[0m\n  a rash\n"
    "\x1b[32m-\x1b[0m records 1/2\r\x1b[2Kposts \x1b[1mpost-2\x1b[0m\n  <none>\n"
    "records 2/2\r\x1b[1A\x1b[2K│ posts │ 2 │\n"
    "2 records in 1.0 s\n"
)


def test_a_line_that_the_progress_bar_wrote_over_is_read_as_it_stays() -> None:
    lines = [line.plain for line in lines_of(OUTPUT)]
    assert lines[:3] == [" DRUG ", "posts post-1", "  a rash"]
    assert lines[5] == "│ posts │ 2 │"


def test_the_chosen_results_stand_between_the_legend_and_the_counts_in_the_given_order() -> None:
    lines = [line.plain for line in selected(lines_of(OUTPUT), ["post-2", "post-1"])]
    assert lines == [" DRUG ", "posts post-2", "  <none>", "posts post-1", "  a rash", "│ posts │ 2 │"]


def test_the_picture_quotes_the_text_safely_and_names_no_font_of_another_site() -> None:
    picture = svg(selected(lines_of(OUTPUT), ["post-2"]))
    assert picture.startswith("<svg")
    assert "&lt;none&gt;" in picture
    assert "font-face" not in picture


def test_the_committed_picture_shows_what_the_bundled_releases_find() -> None:
    picture = PICTURE.read_text(encoding="utf-8")
    shown = [task for task in TASKS if task != "idiom" and bundled(task).name in picture]
    assert sorted(shown) == ["acronym", "ner", "normalization", "relation", "summarization"]
