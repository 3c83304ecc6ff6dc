"""Records that Kafka accepts and no producer should write, and deletions: what every stage makes of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from streams import metrics
from streams.agents import ner
from streams.agents.pipeline import STAGES
from streams.codec import encode
from streams.dead_letters.headers import MAX_LETTER_BYTES
from streams.dead_letters.redrive import redrive_headers
from streams.records import ExpandedReport, Inbound, Report, TaggedReport
from streams.stage import Stage, run_stage
from streams.topics import INPUTS, MENTIONS, POSTS, TOPICS, Topic
from tests.fakes import FakePorts, FakeTagger, batches_of, inbound, loaded

STAGE: Stage[Report, TaggedReport] = Stage("ner", POSTS, MENTIONS, ner.predict)
#: A stage that does not read an input topic.
LATER: Stage[TaggedReport, TaggedReport] = Stage("normalization", MENTIONS, MENTIONS, lambda m, b: list(b))


def post(offset: int) -> Inbound:
    return inbound(offset, orjson.dumps({"id": f"r{offset}", "text": "fine"}))


async def run(*batch: Inbound) -> FakePorts:
    ports = FakePorts(loaded(FakeTagger()))
    await asyncio.wait_for(run_stage(STAGE, batches_of(list(batch)), ports), 120)
    assert ports.acked == [r.offset for r in batch]
    return ports


def dropped() -> float:
    return (
        metrics.REGISTRY.get_sample_value("pv_records_total", {"stage": "ner", "outcome": "dropped"}) or 0.0
    )


async def test_a_deletion_has_the_origin_of_its_source_record_in_all_stages_and_no_impossible_time() -> None:
    forged = (("origin", b"posts/0/999"), ("trace", b"7"))
    ports = await run(replace(inbound(1, None), headers=forged))
    ((_, _, headers),) = ports.to("mentions")
    assert headers == {"origin": b"posts/0/1", "received-at": b"2025-10-09T08:53:20+00:00"}
    passed = replace(inbound(80, None, "mentions"), headers=(*headers.items(), ("trace", b"7")))
    later = FakePorts(loaded(FakeTagger()))
    await run_stage(LATER, batches_of([passed]), later)
    ((_, _, again),) = later.to("mentions")
    assert again == headers
    ports = await run(replace(inbound(1, None), timestamp=float("inf")))
    assert [headers for _, _, headers in ports.to("mentions")] == [{"origin": b"posts/0/1"}]


async def test_a_deletion_larger_than_that_of_any_report_is_no_output_but_a_dead_letter() -> None:
    longest = ("\U0001f48a" * 256).encode()
    ports = await run(replace(inbound(0, None), key=longest), replace(inbound(1, None), key=longest * 3000))
    assert [(key, value) for key, value, _ in ports.to("mentions")] == [(longest, None)]
    ((key, _, headers),) = ports.to("posts.dead")
    assert (key, headers["pv-reason"], headers["pv-offset"]) == (None, b"bad_record", b"1")
    forged = replace(inbound(2, None, "mentions"), headers=[("origin", b"posts/0/1" * 400_000)])
    ports = FakePorts(loaded(FakeTagger()))
    await run_stage(LATER, batches_of([forged]), ports)
    assert (len(ports.to("mentions")), len(ports.to("mentions.dead")), ports.acked) == (0, 1, [2])


async def test_a_record_without_key_and_value_is_dropped_whatever_its_headers_are_and_counted() -> None:
    before = dropped()
    ports = await run(post(0), replace(inbound(1, None), key=None), post(2))
    assert len(ports.to("mentions")) == 2
    assert ports.to("posts.dead") == []
    assert dropped() == before + 1
    forged = replace(inbound(2, None, "mentions"), key=None, headers=[("origin", b"posts/0/1" * 400)])
    ports = FakePorts(loaded(FakeTagger()))
    await run_stage(LATER, batches_of([forged]), ports)
    assert (ports.sent, ports.acked) == ([], [2])


@pytest.mark.parametrize("timestamp", [-7e10, 7e15, float("inf"), float("nan")])
async def test_a_timestamp_out_of_range_is_the_fault_of_that_record_alone(timestamp: float) -> None:
    ports = await run(post(0), replace(post(1), timestamp=timestamp), post(2))
    assert len(ports.to("mentions")) == 2
    ((key, _, headers),) = ports.to("posts.dead")
    assert (key, headers["pv-reason"]) == (b"key-1", b"bad_record")
    assert headers["pv-detail"] == b"the timestamp of the record is out of range"


async def test_what_is_too_large_for_a_dead_letter_is_cut_or_left_out_and_the_letter_says_so() -> None:
    value = b"{" + b"x" * (3 * MAX_LETTER_BYTES)
    ports = await run(post(0), inbound(1, value))
    ((key, kept, headers),) = ports.to("posts.dead")
    assert key == b"key-1"
    assert kept is not None and value.startswith(kept)
    assert MAX_LETTER_BYTES - 2000 < len(kept) <= MAX_LETTER_BYTES
    assert headers["pv-truncated"] == str(len(value)).encode()
    assert headers["pv-sha256"] == hashlib.sha256(value).hexdigest().encode()
    large = [(f"h{i}", b"x" * (MAX_LETTER_BYTES // 2)) for i in range(3)]
    ports = await run(replace(inbound(0, b"no json"), headers=large))
    ((key, kept, headers),) = ports.to("posts.dead")
    assert (key, kept) == (b"key-0", b"no json")
    assert not any(name.startswith("h") for name in headers)
    assert headers["pv-truncated"] == b"7"
    ports = await run(replace(inbound(0, b"no json"), key=b"k" * (2 * MAX_LETTER_BYTES)))
    ((key, kept, _),) = ports.to("posts.dead")
    assert (key, kept) == (None, b"no json")


@pytest.mark.parametrize(
    "attempts", [b"1" * (2 * MAX_LETTER_BYTES), b"-1", b"again", b"", b"1.5", b"\xb2", None]
)
async def test_a_header_of_attempts_that_no_redrive_wrote_is_left_out(attempts: bytes | None) -> None:
    ports = await run(replace(inbound(0, b"no json"), headers=[("pv-attempts", attempts), ("own", b"7")]))
    ((key, value, headers),) = ports.to("posts.dead")
    assert (key, value, headers["own"]) == (b"key-0", b"no json", b"7")
    assert headers.keys().isdisjoint({"pv-attempts", "pv-truncated"})


async def test_a_name_of_the_producers_is_in_no_header() -> None:
    value = orjson.dumps({"id": "a", "text": 3, "releases": {"secret": 1}})
    tagged = orjson.dumps({"id": "a", "text": "b", "releases": {"secret": 1}})
    ports = await run(inbound(0, value))
    ((_, _, headers),) = ports.to("posts.dead")
    assert b"secret" not in (headers["pv-detail"] or b"")
    ports = FakePorts(loaded(FakeTagger()))
    await run_stage(LATER, batches_of([inbound(0, tagged, "mentions")]), ports)
    ((_, _, headers),) = ports.to("mentions.dead")
    assert headers["pv-reason"] == b"bad_record"
    assert b"secret" not in (headers["pv-detail"] or b"")


def test_a_null_header_value_stays_null_when_a_letter_goes_back() -> None:
    assert redrive_headers([("trace", None), ("pv-stage", b"ner")]) == [
        ("trace", None),
        ("pv-attempts", b"1"),
    ]


@pytest.mark.parametrize(
    ("stage", "source"),
    [pytest.param(s, source, id=f"{s.name} of {source.name}") for s in STAGES for source in s.sources],
)
async def test_each_stage_passes_a_deletion_on_in_place(stage: Stage[Any, Any], source: Topic[Any]) -> None:
    seen: list[str] = []

    def predict(model: Any, batch: Sequence[Any]) -> list[Any]:
        seen.extend(r.id for r in batch)
        return list(batch)

    kind = source.record
    assert kind is not None and issubclass(kind, Report)

    def record(offset: int, value: bytes | None) -> Any:
        return replace(inbound(offset, value, source.name), key=b"a")

    def full(text: str) -> bytes:
        return (
            encode(kind(id="a", text=text))
            if source not in INPUTS
            else orjson.dumps({"id": "a", "text": text})
        )

    ports = FakePorts(loaded(FakeTagger()))
    records = [record(0, full("first")), record(1, None), record(2, full("again")), record(3, None)]
    await run_stage(replace(stage, predict=predict, count=None), batches_of(records), ports)
    made = ports.to(stage.sink_of(source.name).name)
    sent = [(key, value is None) for key, value, _ in made]
    assert sent == [(b"a", False), (b"a", True), (b"a", False), (b"a", True)]
    assert seen == ["a", "a"] and ports.acked == [0, 1, 2, 3]
    origins = [headers.get("origin") for _, value, headers in made if value is None]
    assert origins == ([f"{source.name}/0/{n}".encode() for n in (1, 3)] if source in INPUTS else [None] * 2)
    assert [p.report is None for p in ports.observed] == [False, True, False, True]
    assert kind in (Report, ExpandedReport, TaggedReport)


def test_every_topic_with_texts_forgets_them_and_keeps_tombstones_as_long_as_the_texts() -> None:
    for topic in TOPICS:
        entries = topic.configuration()
        if topic.record is not None and issubclass(topic.record, Report):
            assert entries["cleanup.policy"] == "compact,delete", topic.name
            assert entries["delete.retention.ms"] == entries["retention.ms"]
            assert int(entries["max.compaction.lag.ms"]) < 24 * 3600 * 1000
        if topic.name not in {"releases", "cursors", "signals", "reviews"}:
            assert 0 < int(entries["retention.ms"]) <= 30 * 24 * 3600 * 1000
            assert int(entries["segment.ms"]) <= 24 * 3600 * 1000
