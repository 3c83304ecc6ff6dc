"""Counting of what is sent and comes out, waiting for capacity, and files that commands write."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from pathlib import Path

import pytest

from streams.cli.feed import GROWTH, MAX_IN_FLIGHT, Arrival, Tally, admit
from streams.cli.files import check_writable, write_whole
from streams.records import CodedReport, Report, TaggedReport


def coded(id_: str, version: str = "v") -> Arrival:
    record = CodedReport(id=id_, text="x", source="posts", record_id=f"posts/{id_}/normalization@{version}")
    return Arrival("events", id_, "posts", record)


def tagged(id_: str) -> Arrival:
    record = TaggedReport(id=id_, text="x", source="posts", record_id=f"posts/{id_}/ner@v")
    return Arrival("mentions", id_, "posts", record)


def test_a_report_is_missing_until_it_reaches_its_final_topic_or_is_a_dead_letter() -> None:
    tally = Tally()
    tally.count_sent("posts", "a", 10)
    tally.count_arrival(tagged("a"))
    assert tally.missing == ["posts/a"]
    tally.count_sent("posts", "a", 30)  # sent twice, in flight once
    tally.count_arrival(coded("a"))
    assert tally.missing == []
    assert tally.in_flight == 0
    tally.count_sent("sentences", "a", 10)
    tally.count_arrival(coded("a"))
    assert tally.missing == ["sentences/a"], "the same id in another topic"
    tally = Tally()
    tally.count_sent("posts", "a", 10)
    tally.count_arrival(Arrival("posts.dead", "a", "posts", None, {"pv-reason": "poison"}))
    assert tally.missing == []
    assert tally.dead_letters == [{"topic": "posts.dead", "id": "a", "pv-reason": "poison"}]


@pytest.mark.parametrize("refusing", [None, "ner", "normalization", "summarization"])
def test_a_question_is_missing_until_it_has_its_events_and_its_short_form(refusing: str | None) -> None:
    tally = Tally()
    tally.count_sent("questions", "a", 10)
    record = CodedReport(id="a", text="x", source="questions", record_id="questions/a/normalization@v")
    coded, short = (Arrival(topic, "a", "questions", record) for topic in ("events", "summaries"))
    topic = "mentions.dead" if refusing == "normalization" else "questions.dead"
    letter = Arrival(topic, "a", "questions", None, {"pv-stage": refusing or ""})
    for arrival in (short, letter if refusing in ("ner", "normalization") else coded):
        assert tally.missing == ["questions/a"] and tally.in_flight == 10 * GROWTH
        tally.count_arrival(letter if arrival is short and refusing == "summarization" else arrival)
    assert tally.missing == [] and tally.in_flight == 0


def test_a_repeat_is_recognised_by_its_record_id() -> None:
    tally = Tally()
    tally.count_sent("posts", "a", 10)
    tally.count_arrival(coded("a"))
    tally.count_arrival(coded("a", "after a reload"))
    assert tally.duplicated == []
    tally.count_arrival(coded("a"))
    assert tally.duplicated == ["posts/a/normalization@v"]


async def test_a_sender_waits_until_there_is_capacity_and_sends_a_larger_report_alone() -> None:
    tally = Tally()
    tally.count_sent("posts", "a", MAX_IN_FLIGHT // GROWTH)
    waiting = asyncio.create_task(admit(tally, "posts", Report(id="b", text="x")))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), 0.05)
    assert not tally.was_sent("posts", "b")
    tally.count_arrival(coded("a"))
    await asyncio.wait_for(waiting, 1)
    assert tally.missing == ["posts/b"]
    larger = Report(id="c", text="x" * (MAX_IN_FLIGHT // GROWTH + 1))
    await asyncio.wait_for(admit(Tally(), "posts", larger), 1)


OLD, NEW = b"a" * 4_000_000, b"b" * 5_000_000


def test_a_reader_never_finds_a_part_of_a_file(tmp_path: Path) -> None:
    path, found = tmp_path / "signals.jsonl", set[int]()
    path.write_bytes(OLD)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            found.add(len(path.read_bytes()))

    reader = threading.Thread(target=read)
    reader.start()
    for content in (NEW, OLD) * 15:
        write_whole(path, content)
    stop.set()
    reader.join()
    assert found <= {len(OLD), len(NEW)}


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    path.write_bytes(b"old")
    path.chmod(0o640)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_whole(path, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["figures.json"]
    write_whole(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "kept").read_bytes() == b"new" and (tmp_path / "link").is_symlink()
    write_whole(Path("/dev/null"), b"new")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "file", b"")


def test_what_can_be_written_is_not_refused_before_a_command(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o400)
    (tmp_path / "link").symlink_to(tmp_path / "not yet")
    for name in ("new", "old", "link"):
        check_writable(output=tmp_path / name)
    check_writable(output=None, json=Path("/dev/stdout"), html=Path("/dev/null"))
