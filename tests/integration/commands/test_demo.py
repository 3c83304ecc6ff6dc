"""The whole flow on the embedded broker, with the models that ship: every good record is processed, every bad
line is refused.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from models.reading_form.form import reading_form
from models.releases.manifest import Release
from streams.agents.pipeline import FINAL_TOPICS
from streams.cli.demo.run import Demo, samples
from streams.cli.feed import Arrival, Tally
from streams.records import CodedReport, Summary
from streams.settings import Settings


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def broken_lines() -> list[bytes]:
    """Lines that are no report, of every kind that a real source has been seen to send."""
    return [
        b"not json at all",
        b'{"text": "no id"}',
        b'{"id": "no-text"}',
        b'{"id": 1.5, "text": "a fraction for an id"}',
        b'{"id": "x", "text": ["a", "list"]}',
        b'{"id": "x", "text": ""}',
        b'{"id": "x", "text": "   "}',
        b'{"id": "x", "text": "lone \\ud83d surrogate"}',
        b'{"id": "x", "text": "raw \x00 NUL"}',
        b'{"id": "x", "text": "cut off',
        b"\xff\xfe\x00",
        b"[1, 2, 3]",
        b"null",
        orjson.dumps({"id": "huge", "text": "x" * 2_000_000}),
    ]


def odd_reports() -> list[bytes]:
    """Texts that are strange and still are texts."""
    return [
        orjson.dumps({"id": "emoji", "text": "😀🤮💊"}),
        orjson.dumps({"id": "nul", "text": "zoloft\u0000 gave me hives"}),
        orjson.dumps({"id": "one", "text": "x"}),
        orjson.dumps({"id": "rtl", "text": "\u202ezoloft and nausea"}),
        orjson.dumps({"id": "word", "text": "a" * 20_000}),
        orjson.dumps({"id": "long", "text": "I took aspirin and got a headache. " * 300}),
        orjson.dumps({"id": "date", "text": "a rash", "created_at": "last Tuesday"}),
        orjson.dumps({"id": "ünï", "text": "Kopfschmerzen nach Aspirin"}),
    ]


async def run(files: dict[str, Path], **settings: Any) -> tuple[Demo, list[Arrival]]:
    """The demo of these files by topic, with these settings, and all records that it showed."""
    seen: list[Arrival] = []

    def keep(arrival: Arrival, _tally: Tally) -> None:
        seen.append(arrival)

    demo = Demo(files, Settings(http_port=0, **settings))
    await demo.run(on_arrival=keep)
    return demo, seen


@pytest.mark.slow
async def test_samples_and_broken_lines_are_all_accounted_for(tmp_path: Path) -> None:
    files, good = {}, {}
    rng = random.Random(3)
    for topic, path in samples().items():
        reports = [*path.read_bytes().splitlines()[:20], *odd_reports()]
        good[topic] = {orjson.loads(line)["id"] for line in reports}
        lines = reports + broken_lines()
        rng.shuffle(lines)
        files[topic] = tmp_path / f"{topic}.jsonl"
        files[topic].write_bytes(b"\n".join(lines) + b"\n")
    demo, seen = await run(files)
    outcome = demo.outcome.as_dict()

    assert outcome["missing"] == []
    assert outcome["duplicated"] == []
    assert outcome["dead"] == []
    assert len(outcome["refused"]) == 3 * len(broken_lines())
    assert all(r["reason"] and r["line"] > 0 for r in outcome["refused"])
    ends = [a for a in seen if a.topic in ("events", "summaries")]
    for topic, ids in good.items():
        for final in FINAL_TOPICS[topic]:
            assert {a.record.id for a in ends if (a.source, a.topic) == (topic, final.name)} == ids
    for arrival in ends:
        check_record(arrival.record)
    shorts = [a.record.summary for a in ends if isinstance(a.record, Summary)]
    assert {s.method for s in shorts} == {"extractive"}
    assert outcome["peak_memory_bytes"] > 0
    assert outcome["releases"].keys() == {"ner", "acronym", "relation", "normalization", "summarization"}


def check_record(record: Any) -> None:
    """Offsets point at the text they name; the chain of releases is complete and in the record's id."""
    stages = {
        "posts": ["ner", "normalization"],
        "questions": ["ner", "normalization"],
        "sentences": ["acronym", "ner", "relation", "normalization"],
    }
    if isinstance(record, Summary):
        short = record.summary
        # Of a word that nobody writes both ends are shown.
        form = reading_form(record.text)
        assert short.start is not None and short.end is not None
        place = form.in_form(short.start, short.end)
        own = form.text[place.start : place.end]
        assert own.strip() and short.text.strip()
        if short.focus is not None:
            assert record.text[short.focus_start : short.focus_end] == short.focus
        if short.method == "extractive":
            # What is inserted is of the text too, and the rest is of the sentences named.
            shown = set(words_of(short.text))
            assert shown <= set(words_of(form.text))
            assert len(shown & set(words_of(own))) >= len(shown) / 2
        assert list(record.releases) == ["summarization"]
        return
    assert isinstance(record, CodedReport)
    assert list(record.releases) == stages[record.source]
    assert record.record_id.endswith("/normalization@" + "+".join(record.releases.values()))
    assert record.received_at is not None
    for mention in record.mentions:
        assert record.text[mention.start : mention.end] == mention.text
    for expansion in record.expansions:
        assert record.text[expansion.start : expansion.end] == expansion.short_form
    for event in record.events:
        assert event.candidates, "NIL or not, a reviewer sees the nearest terms"
        assert (event.pt is None) == event.nil
        assert len({c.pt for c in event.candidates}) == len(event.candidates)
        # Names and phrases add up, so a candidate behind another may have the nearer name.
        assert all(-1 <= c.score <= 1 for c in event.candidates)


async def test_a_second_report_under_the_same_id_is_refused(tmp_path: Path, tiny: dict[str, Release]) -> None:
    """What comes out of topics with a prefix is counted under the names of the table."""
    file = tmp_path / "questions.jsonl"
    file.write_bytes(b'{"id": "a", "text": "Is one safe?"}\n{"id": "a", "text": "Is two safe?"}\n')
    releases = {task: release.path for task, release in tiny.items()}
    demo, seen = await run({"questions": file}, releases=releases, prefix="here-")
    assert demo.outcome.refused == [{"topic": "questions", "id": "a", "reason": "duplicate id"}]
    assert sorted((a.topic, a.record.text) for a in seen) == [
        (topic, "Is one safe?") for topic in ("events", "mentions", "summaries")
    ]
    assert demo.outcome.as_dict()["outputs"].items() >= {"mentions": 1, "events": 1, "summaries": 1}.items()
