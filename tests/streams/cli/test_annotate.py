"""`pvstream annotate`: files through the bundled models, without a broker."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner, Result

import streams.library
from streams.__main__ import app
from streams.codec import decode
from streams.library import Annotator, load
from streams.records import CodedReport
from streams.settings import Settings

pytestmark = pytest.mark.slow
BROKEN = "this text breaks the model"


@pytest.fixture(scope="module")
def loaded() -> Annotator:
    """The bundled models of posts, of which the tagger fails on one text."""
    annotator = load("posts", settings=Settings())
    (tagger, model), *others = annotator.steps

    def failing(live: Any, reports: Sequence[Any]) -> Sequence[Any]:
        if any(report.text == BROKEN for report in reports):
            raise RuntimeError("broken")
        return tagger.predict(live, reports)

    return replace(annotator, steps=((replace(tagger, predict=failing), model), *others))


@pytest.fixture
def annotate(loaded: Annotator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(streams.library, "load", lambda *_, **__: loaded)

    def run(texts: Sequence[dict[str, Any]], *options: str) -> Result:
        path = tmp_path / "posts.jsonl"
        path.write_text("".join(json.dumps(text) + "\n" for text in texts), encoding="utf-8")
        return CliRunner().invoke(app, ["annotate", str(path), *options])

    return run


RASH = {"id": "a", "text": "Zoloft gave me a rash."}
FINE = {"id": "b", "text": "No complaints at all."}


def test_each_text_has_a_line_with_its_record_and_only_a_kept_text(annotate: Any, loaded: Annotator) -> None:
    result = annotate([RASH, FINE])
    assert result.exit_code == 0
    records = [decode(CodedReport, line.encode()) for line in result.stdout.splitlines()]
    assert records == loaded.predict([RASH, FINE])
    assert "2 posts read, 0 refused" in result.stderr
    result = annotate([RASH | {"aggregate_only": True}])
    (record,) = map(json.loads, result.stdout.splitlines())
    assert record["text"] == ""
    assert "gave me" not in result.stdout


def test_an_event_has_a_row_and_no_cell_a_formula(annotate: Any, loaded: Annotator, tmp_path: Path) -> None:
    posts = [RASH, FINE | {"id": "=1+1"}]
    events = [
        (record.id, event.pt, record.mentions[event.mention].start)
        for record in loaded.predict(posts)
        for event in record.events
    ]
    assert "=1+1" in {id_ for id_, *_ in events}
    rows = list(csv.DictReader(StringIO(annotate(posts, "--format", "csv").stdout)))
    found = [(row["report_id"].removeprefix("'"), row["pt"] or None, int(row["span_start"])) for row in rows]
    assert found == events
    assert "'=1+1" in {row["report_id"] for row in rows}
    path = tmp_path / "it's.parquet"
    assert annotate(posts, "--format", "parquet", "--output", str(path)).exit_code == 0
    assert duckdb.read_parquet(str(path)).project("report_id, pt, span_start").fetchall() == events
    assert sorted(p.name for p in tmp_path.iterdir()) == ["it's.parquet", "posts.jsonl"]


def test_what_a_model_fails_on_is_refused_and_the_others_are_read(annotate: Any, tmp_path: Path) -> None:
    rejected = tmp_path / "rejected.jsonl"
    posts = [RASH, {"id": "x", "text": BROKEN}, FINE, {"id": "y", "text": " "}]
    result = annotate(posts, "--rejected", str(rejected))
    assert result.exit_code == 1
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["a", "b"]
    assert "2 posts read, 2 refused" in result.stderr
    reasons = [json.loads(line) for line in rejected.read_text(encoding="utf-8").splitlines()]
    assert [(r["line"], r["reason"].split()[0]) for r in reasons] == [(4, "text:"), (2, "RuntimeError")]


def test_a_file_appears_when_it_is_whole(annotate: Any, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("as before")
    broken = tmp_path / "posts.parquet"
    broken.write_bytes(b"PAR1")
    result = CliRunner().invoke(app, ["annotate", str(broken), "--output", str(path)])
    assert result.exit_code != 0
    assert path.read_text() == "as before"
    assert not list(tmp_path.glob(".events*"))
    assert annotate([RASH], "--output", str(path)).exit_code == 0
    assert json.loads(path.read_text())["id"] == "a"
