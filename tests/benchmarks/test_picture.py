"""The picture of the demo's output."""

from __future__ import annotations

from pathlib import Path

from benchmarks.picture import lines_of, selected, svg
from models.releases.store import bundled
from models.types import TASKS

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
