from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import orjson
import pytest

from streams import metrics
from streams.agents import ner
from streams.records import NO_TIMESTAMP, Inbound, Report, TaggedReport
from streams.stage import Stage, run_stage
from streams.topics import EVENTS, MENTIONS, POSTS, QUESTIONS
from tests.fakes import FakePorts, FakeTagger, batches_of, inbound, loaded

STAGE: Stage[Report, TaggedReport] = Stage("ner", POSTS, MENTIONS, ner.predict)


def post(offset: int, text: str = "fine") -> Inbound:
    return inbound(offset, orjson.dumps({"id": f"r{offset}", "text": text}))


async def run(ports: FakePorts, *batches: Sequence[Inbound]) -> None:
    await asyncio.wait_for(run_stage(STAGE, batches_of(*batches), ports), 120)


@pytest.mark.parametrize(
    ("case", "middle", "sent", "dead", "reason"),
    [
        ("ok", post(1), 3, 0, None),
        ("bad bytes", inbound(1, b"\xff{"), 2, 1, "bad_record"),
        ("one poison", post(1, "poison"), 2, 1, "poison"),
    ],
)
async def test_every_record_gives_an_output_or_a_dead_letter_and_is_then_acknowledged(
    case: str, middle: Inbound, sent: int, dead: int, reason: str | None
) -> None:
    ports = FakePorts(loaded(FakeTagger()))
    await run(ports, [post(0), middle, post(2)])
    assert len(ports.to("mentions")) == sent, case
    dead_letters = ports.to("posts.dead")
    assert len(dead_letters) == dead
    assert ports.acked == [0, 1, 2]
    assert ports.log.index("ack 0") > max(
        i for i, entry in enumerate(ports.log) if entry.startswith("confirmed")
    )
    for key, value, headers in dead_letters:
        assert (key, value) == (middle.key, middle.value), "the original bytes"
        assert headers["pv-reason"] == (reason or "").encode()
        assert headers["pv-offset"] == b"1"
        assert headers["pv-topic"] == b"posts"
        assert headers["pv-release"] == b"0123456789ab"


async def test_a_record_of_another_source_is_of_that_source_in_all_that_is_made_of_it() -> None:
    ports = FakePorts(loaded(FakeTagger()))
    stage = replace(STAGE, further=(QUESTIONS,))
    asked = [replace(record, topic="questions") for record in (post(1), post(2, "poison"), inbound(3, b"{"))]
    await asyncio.wait_for(run_stage(stage, batches_of([post(0), *asked]), ports), 120)
    made = [orjson.loads(value or b"") for _, value, _ in ports.to("mentions")]
    assert [(m["source"], m["origin"]["topic"], m["record_id"].split("/")[0]) for m in made] == [
        ("posts",) * 3, ("questions",) * 3,
    ]  # fmt: skip
    letters = ports.to("questions.dead")
    assert [headers["pv-topic"] for _, _, headers in letters] == [b"questions"] * 2
    assert [headers["pv-reason"] for _, _, headers in letters] == [b"poison", b"bad_record"]
    assert (ports.to("posts.dead"), ports.acked) == ([], [0, 1, 2, 3])


@pytest.mark.parametrize("topic", ["mentions", "posts.dead"])
async def test_a_failed_delivery_ends_the_stage_and_acknowledges_no_record_of_its_batch(topic: str) -> None:
    ports = FakePorts(loaded(FakeTagger()))
    ports.failing_topics = {topic}

    async def one_batch_then_silence() -> AsyncIterator[Sequence[Inbound]]:
        yield [post(0), inbound(1, b"no json")]
        await asyncio.Event().wait()

    with pytest.raises(ConnectionError):
        await asyncio.wait_for(run_stage(STAGE, one_batch_then_silence(), ports), 120)
    assert ports.acked == []


async def test_a_cancelled_stage_acknowledges_no_unconfirmed_record() -> None:
    ports = FakePorts(loaded(FakeTagger()))
    ports.hold = asyncio.Event()
    task = asyncio.create_task(run_stage(STAGE, batches_of([post(0)], [post(1)]), ports))
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(ports.sent) == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ports.acked == []


async def test_a_dead_letter_keeps_the_headers_of_its_record_and_quotes_no_text() -> None:
    ports = FakePorts(loaded(FakeTagger()))
    await run(ports, [post(0, "poison of a private life"), inbound(1, b'{"id": "x", "text": 17}')])
    for _, _, headers in ports.to("posts.dead"):
        assert b"private" not in b"".join(v or b"" for v in headers.values())
        assert b"17" not in (headers["pv-detail"] or b"")
    ports = FakePorts(loaded(FakeTagger()))
    await run(ports, [replace(inbound(0, b"{"), headers=OWN_HEADERS)])
    ((_, _, headers),) = ports.to("posts.dead")
    assert headers["trace"] == b"7"
    assert headers["pv-attempts"] == b"2", "the number of attempts, which limits redrives"
    assert headers["pv-reason"] == b"bad_record"


async def test_an_output_too_large_and_a_wrong_number_of_outputs_become_dead_letters() -> None:
    ports = FakePorts(loaded(FakeTagger()))
    ports.max_output_bytes = 800
    await run(ports, [post(0), post(1, "long " * 200)])
    ((_, _, headers),) = ports.to("posts.dead")
    assert headers["pv-reason"] == b"output_too_large"
    assert ports.acked == [0, 1]
    short = Stage("ner", POSTS, MENTIONS, lambda model, reports: ner.predict(model, reports)[1:])
    ports = FakePorts(loaded(FakeTagger()))
    await run_stage(short, batches_of([post(0), post(1)]), ports)
    assert ports.to("mentions") == []
    assert [h["pv-reason"] for _, _, h in ports.to("posts.dead")] == [b"poison", b"poison"]


async def test_an_output_has_its_provenance_and_a_repeat_is_equal() -> None:
    ports = FakePorts(loaded(FakeTagger()))
    await run(ports, [post(0)])
    await run(ports, [post(0), post(1)])
    first, repeat = ports.to("mentions")[:2]
    assert first == repeat
    record = orjson.loads(first[1] or b"")
    assert record["record_id"] == "posts/r0/4a17c599/ner@0123456789ab"
    assert record["source"] == "posts"
    assert record["releases"] == {"ner": "0123456789ab"}
    assert record["received_at"] == "2025-10-09T08:53:20Z"
    assert record["origin"] == {"topic": "posts", "partition": 0, "offset": 0}
    assert record["generations"] == {"ner": 0}
    assert first[0] == b"r0"
    await run(ports, [post(0, "not fine any more")])
    edited = orjson.loads(ports.to("mentions")[-1][1] or b"")
    assert (edited["id"], edited["releases"]) == (record["id"], record["releases"])
    assert edited["record_id"] != record["record_id"]


async def test_a_later_stage_passes_origin_and_time_on_and_adds_its_generation() -> None:
    first = FakePorts(replace(loaded(FakeTagger()), generation=4))
    await run(first, [post(3)])
    ((_, value, _),) = first.to("mentions")
    coder: Stage[TaggedReport, TaggedReport] = Stage("normalization", MENTIONS, EVENTS, lambda m, b: list(b))
    second = FakePorts(replace(loaded(FakeTagger()), generation=9))
    old = orjson.dumps({"id": "old", "text": "of a version without an origin", "releases": {"ner": "f" * 12}})
    batch = [inbound(80, value, "mentions"), inbound(81, old, "mentions")]
    await run_stage(coder, batches_of(batch), second)
    new, unknown = (orjson.loads(value or b"") for _, value, _ in second.to("events"))
    assert new["origin"] == {"topic": "posts", "partition": 0, "offset": 3}
    assert new["generations"] == {"ner": 4, "normalization": 9}
    assert (unknown["origin"], unknown["generations"]) == (None, {"normalization": 9})
    first, second = FakePorts(loaded(FakeTagger())), FakePorts(loaded(FakeTagger()))
    await run(first, [replace(post(3), timestamp=NO_TIMESTAMP)])
    ((_, value, _),) = first.to("mentions")
    again: Stage[TaggedReport, TaggedReport] = Stage("normalization", MENTIONS, EVENTS, lambda m, b: list(b))
    await run_stage(again, batches_of([inbound(80, value, "mentions")]), second)
    ((_, coded, _),) = second.to("events")
    assert [orjson.loads(v or b"")["received_at"] for v in (value, coded)] == [None, None]


async def test_a_batch_that_belongs_to_another_worker_is_neither_sent_nor_acknowledged() -> None:
    ports = FakePorts(loaded(FakeTagger()))
    ports.lost = {2}
    before = fenced()
    await run(ports, [post(0)], [post(1), post(2), inbound(3, None), inbound(4, b"{")], [post(5)])
    assert [key for key, _, _ in ports.to("mentions")] == [b"r0", b"r5"]
    assert ports.to("posts.dead") == []
    assert ports.acked == [0, 5]
    assert [p.report.id for p in ports.observed] == ["r0", "r5"]
    assert fenced() == before + 1


def fenced() -> float:
    return metrics.REGISTRY.get_sample_value("pv_fenced_batches_total", {"stage": "ner"}) or 0.0


OWN_HEADERS = (("trace", b"7"), ("pv-reason", b"old"), ("pv-attempts", b"2"))


@pytest.mark.parametrize("value", [b'{"id": "r", "text": "fine"}', b"{", None])
async def test_a_trace_context_goes_to_the_output_and_a_malformed_one_nowhere(value: bytes | None) -> None:
    trace = (("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"), ("tracestate", b"vendor=1"))
    bad = (("traceparent", b"00-mine"), ("tracestate", b"vendor=1"))
    ports = FakePorts(loaded(FakeTagger()))
    given = enumerate((trace, bad))
    records = [replace(inbound(i, value), headers=(*own, ("name", b"x"))) for i, own in given]
    await run(ports, records)
    topic = "posts.dead" if value == b"{" else "mentions"
    first, second = (headers for _, _, headers in ports.to(topic))
    assert {name: first[name] for name, _ in trace} == dict(trace)
    assert not second.keys() & dict(trace).keys()
    assert ("name" in first) == (topic == "posts.dead"), "outputs have no other header of the source record"


async def test_a_record_without_a_time_stamp_has_no_latency() -> None:
    labels = {"stage": "ner"}
    before = metrics.REGISTRY.get_sample_value("pv_latency_seconds_count", labels) or 0.0
    ports = FakePorts(loaded(FakeTagger()))
    # Kafka's -1 ms, and a producer's mistake: each would count as a latency since 1970.
    await run(ports, [replace(post(0), timestamp=-0.001), replace(post(1), timestamp=0.0), post(2)])
    assert ports.acked == [0, 1, 2]
    assert metrics.REGISTRY.get_sample_value("pv_latency_seconds_count", labels) == before + 1
