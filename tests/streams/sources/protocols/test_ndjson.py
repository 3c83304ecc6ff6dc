"""Lines of JSON Lines as reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.input_reports import read_report
from streams.intake.authors import AuthorKeys
from streams.intake.duplicates import Window
from streams.intake.filter import Filter
from streams.intake.intake import PostIntake, Privacy
from streams.intake.items import Post
from streams.records import MAX_TEXT
from streams.sources.protocols.connection import MAX_LINE
from streams.sources.protocols.growing_file import GrowingFile
from streams.sources.protocols.ndjson import Ndjson
from tests.streams.sources.json_lines import line, malformed, read_to_the_end
from tests.streams.sources.kept import KeptDelivery, runner


async def test_lines_become_reports_and_deletions_tombstones_by_any_field_names(tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_bytes(line(1) + line(2) + b'{"id": "post-1", "deleted": true}\n' + line(1, text="again"))
    delivery = await read_to_the_end(file)
    assert [(key, value is None) for _, key, value in delivery.sent] == [
        ("post-1", False), ("post-2", False), ("post-1", True), ("post-1", False),
    ]  # fmt: skip
    assert delivery.state() == {"post-1": "again", "post-2": "awake 2"}
    values = ["false", "False", "0", "no", "", 0, None, "true", "2026-03-04", 1]
    file.write_bytes(b"".join(line(n, deleted=value) for n, value in enumerate(values)))
    delivery = await read_to_the_end(file)
    assert [value is None for _, _, value in delivery.sent] == [False] * 7 + [True] * 3
    file.write_bytes(
        b'{"post": {"key": 17}, "body": "awake", "removed": 0}\n{"post": {"key": 18}, "removed": 1}\n'
    )
    fields = {"id": "post.key", "text": "body", "deleted": "removed"}
    delivery = await read_to_the_end(file, fields=fields)
    assert delivery.state() == {"17": "awake", "18": None}


def test_an_author_and_an_original_may_be_numbers_as_an_id_may() -> None:
    item = Ndjson(path=None)._item(b'{"id": 2, "text": "awake", "author": 7, "repost_of": 1}')
    assert isinstance(item, Post)
    assert (item.id, item.author, item.repost_of) == ("2", "7", "1")


def test_a_read_that_comes_after_the_end_opens_no_file(tmp_path: Path) -> None:
    # A cancelled task closes its files while a thread may be about to read.
    path = tmp_path / "posts.jsonl"
    path.write_bytes(line(1))
    file = GrowingFile(path, None)
    file.close()
    assert file.read_lines() == []
    other = GrowingFile(path, None)
    assert other.read_lines() == [line(1)]
    other.close()
    assert other.read_lines() == []


async def test_drug_and_indication_of_a_review_are_read_from_fields_that_are_mapped(tmp_path: Path) -> None:
    file = tmp_path / "reviews.jsonl"
    names: list[Any] = ["Zoloft", ["Zoloft", "Wellbutrin"], 7, None]
    lines = (line(i, review={"medicine": name, "for": name}) for i, name in enumerate(names))
    file.write_bytes(b"".join(lines))
    source = Ndjson(path=file, follow=False, fields={"drug": "review.medicine", "indication": "review.for"})
    posts = [item async for step in source.read(None) for item in step.items]
    assert [(p.drugs, p.indication) for p in posts if isinstance(p, Post)] == [
        (("Zoloft",), "Zoloft"), (("Zoloft", "Wellbutrin"), None), ((), None), ((), None),
    ]  # fmt: skip


async def test_a_time_without_a_zone_is_stated_to_be_assumed(tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    moments = ["2026-03-04T09:15:02", "2026-03-04T10:15:02+01:00"]
    file.write_bytes(b"".join(line(i, created_at=moment) for i, moment in enumerate(moments)))
    intake = PostIntake(Filter(None, ["en"]), Privacy(AuthorKeys(), ()), Window(1000, 1.0))
    delivery = KeptDelivery()
    await runner(Ndjson(path=file, follow=False), delivery, intake=intake).run()
    reports = [read_report(value) for _, _, value in delivery.sent if value is not None]
    assert [r.created_at_assumed_utc for r in reports] == [True, False]
    assert reports[0].created_at == reports[1].created_at


@pytest.mark.parametrize("text", ["", "  ", "x" * (MAX_TEXT + 1)])
async def test_a_line_that_takes_the_text_away_deletes_the_report(tmp_path: Path, text: str) -> None:
    file, delivery, everything = tmp_path / "posts.jsonl", KeptDelivery(), Filter(None, ["en"])
    file.write_bytes(line(1, text="Zoloft kept me up") + line(1, text=text) + line(2, text=text))
    intake = PostIntake(everything, Privacy(AuthorKeys(), ()), Window(1000, 7.0))
    await runner(Ndjson(path=file, follow=False), delivery, intake=intake).run()
    assert [(key, value is None) for _, key, value in delivery.sent] == [("post-1", False), ("post-1", True)]


async def test_lines_that_are_no_report_are_counted_and_left_out(tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    bad = [
        b"{", b"[]", b'{"id": "a"}', b'{"text": "a"}', b'{"deleted": true}', b"\xff",
        b'{"id": "a", "text": 5}',
    ]  # fmt: skip
    large = line(3, text="x" * (MAX_LINE + 10))
    file.write_bytes(b"\n".join(bad) + b"\n\n" + large + line(1))
    before = malformed()
    delivery = await read_to_the_end(file)
    assert delivery.state() == {"post-1": "awake 1"}
    assert malformed() == before + len(bad) + 1


@pytest.mark.parametrize("end", [b"", b"\n"])
async def test_the_first_line_of_a_file_of_windows_is_a_report(tmp_path: Path, end: bytes) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + line(1).rstrip() + end)
    before = malformed()
    assert (await read_to_the_end(file)).state() == {"post-1": "awake 1"}
    assert malformed() == before
