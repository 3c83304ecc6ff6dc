"""What a shadow does with the outputs of its candidate; the process and the producer are faked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from streams import metrics
from streams.codec import decode, encode
from streams.items import Item
from streams.records import Headers, Summary
from streams.rollout import shadow as module
from streams.rollout.announcements import Refusal
from streams.rollout.shadow import MAX_WAITING_BATCHES, Shadow
from streams.settings import Settings
from streams.stage import run_stage
from streams.topics import MAX_MESSAGE
from tests.fakes import FakePorts, batches_of, inbound, loaded
from tests.streams.polling import until
from tests.streams.rollout.shadow.shadowing import NO_VERSION, STAGE, processed_live, reports, summaries


class FakeCandidate:
    """A candidate process that gives the refusal and the outputs that the test sets."""

    refusal: Refusal | None = None
    outputs: Callable[[Sequence[Any]], Sequence[Any] | None] = staticmethod(lambda batch: None)
    started = 0
    killed = 0

    def __init__(self, task: str, version: str, settings: Settings, judge: str | None) -> None:
        type(self).started += 1

    async def wait_loaded(self) -> Refusal | None:
        return self.refusal

    async def predict(self, batch: Sequence[Any]) -> Sequence[Any] | None:
        return type(self).outputs(batch)

    def kill(self) -> None:
        type(self).killed += 1


class FakeProducer:
    """Confirms every record, or fails."""

    sent: list[tuple[str, bytes, Any]]
    headers: list[Headers]
    fail = False

    def __init__(self, **options: Any) -> None:
        assert options["acks"] == "all"
        assert options["max_request_size"] >= Settings().max_output_bytes + MAX_MESSAGE

    async def start(self) -> None:
        """There is no connection."""

    async def stop(self) -> None:
        """There is no connection."""

    async def send(self, topic: str, key: bytes, value: Any, headers: Headers) -> asyncio.Future[None]:
        if self.fail:
            raise ConnectionError("closed")
        self.sent.append((topic, key, value))
        self.headers.append(headers)
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed


Process = type[FakeCandidate]
Producer = type[FakeProducer]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    fake = type("Process", (FakeCandidate,), {})
    monkeypatch.setattr(module, "CandidateProcess", fake)
    return fake


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Producer:
    fake = type("Producer", (FakeProducer,), {"sent": [], "headers": []})
    monkeypatch.setattr(module, "AIOKafkaProducer", fake)
    return fake


@pytest.fixture
def shadow(process: Process, producer: Producer) -> Shadow:
    return Shadow(STAGE, NO_VERSION, 1.0, Settings(), generation=9)


def counted(outcome: str) -> float:
    labels = {"stage": STAGE.name, "outcome": outcome}
    return metrics.REGISTRY.get_sample_value("pv_shadow_records_total", labels) or 0.0


async def test_agreeing_and_differing_outputs_are_counted_and_sent_to_the_shadow_topic(
    shadow: Shadow, process: Process, producer: Producer
) -> None:
    process.outputs = staticmethod(lambda batch: summaries(batch, different=frozenset({"q-1"})))
    before = counted("agreed"), counted("differed")
    first, *others = processed_live(reports(4))
    trace = ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")
    shadow.start()
    shadow.offer([replace(first, record=replace(first.record, headers=(trace, ("own", b"1")))), *others])
    await until(lambda: shadow.counts["differed"] == 1)
    await shadow.stop()
    assert shadow.counts == {"agreed": 3, "differed": 1, "failed": 0, "skipped": 0}
    assert shadow.status()["agreement"] == 0.75
    assert (counted("agreed"), counted("differed")) == (before[0] + 3, before[1] + 1)
    assert [(topic, key) for topic, key, _ in producer.sent] == [
        ("summaries.shadow", f"q-{i}".encode()) for i in range(4)
    ]
    assert producer.headers == [[trace], [], [], []]
    records = [decode(Summary, value) for *_, value in producer.sent]
    assert {r.releases["summarization"] for r in records} == {NO_VERSION}
    assert {r.generations["summarization"] for r in records} == {9}, "of the shadow's own announcement"
    assert (process.started, process.killed) == (1, 1)


async def test_summaries_whose_text_must_not_be_kept_are_compared_whole_and_sent_without_it(
    shadow: Shadow, process: Process, producer: Producer
) -> None:
    process.outputs = staticmethod(lambda batch: summaries(batch, different=frozenset({"q-1"})))
    ports = FakePorts(loaded(None))
    stage = replace(STAGE, predict=lambda model, batch: summaries(batch))
    sources = [replace(r, aggregate_only=True) for r in reports(4)]
    await run_stage(stage, batches_of([inbound(i, encode(r)) for i, r in enumerate(sources)]), ports)
    shadow.start()
    shadow.offer(ports.observed)
    await until(lambda: len(producer.sent) == 4 and sum(shadow.counts.values()) == 4)
    await shadow.stop()
    assert shadow.counts == {"agreed": 3, "differed": 1, "failed": 0, "skipped": 0}
    live, compared = [value for _, value, _ in ports.to("summaries")], [value for *_, value in producer.sent]
    written = [decode(Summary, value) for value in live + compared]
    assert [(r.text, r.summary.text) for r in written] == [("", "")] * 8


async def test_a_batch_on_which_the_model_raises_or_misses_an_output_is_counted_as_failed(
    shadow: Shadow, process: Process, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    shadow.start()
    shadow.offer(processed_live(reports(3)))
    await until(lambda: shadow.counts["failed"] == 3)
    process.outputs = staticmethod(lambda batch: summaries(batch)[1:])
    shadow.offer(processed_live(reports(3)))
    await until(lambda: shadow.counts["failed"] == 6)
    process.outputs = staticmethod(summaries)
    shadow.offer(processed_live(reports(2)))
    await until(lambda: shadow.counts["agreed"] == 2)
    await shadow.stop()
    assert shadow.counts == {"agreed": 2, "differed": 0, "failed": 6, "skipped": 0}
    assert len(producer.sent) == 2


def deleted(id_: str) -> Item:
    return Item(replace(inbound(7, None, "questions"), key=id_.encode()))


async def test_tombstones_keep_their_place_among_the_outputs_and_are_never_left_out(
    shadow: Shadow, process: Process, producer: Producer
) -> None:
    first, second = processed_live(reports(2))
    shadow.offer([first, deleted("q-0"), first, second, deleted("q-1")])
    for _ in range(MAX_WAITING_BATCHES + 3):
        shadow.offer([second, deleted("q-1")])
    process.outputs = staticmethod(summaries)
    shadow.start()
    await until(lambda: shadow.counts["agreed"] == 3 + MAX_WAITING_BATCHES - 1 and shadow._queue.empty())
    await until(lambda: sum(value is None for *_, value in producer.sent) == 2 + MAX_WAITING_BATCHES + 3)
    await shadow.stop()
    written = [(key, value is None) for _, key, value in producer.sent[:5]]
    assert written == [(b"q-0", False), (b"q-0", True), (b"q-0", False), (b"q-1", False), (b"q-1", True)]
    assert shadow.counts["skipped"] == 4


async def test_a_tombstone_of_a_batch_that_fails_is_sent_later(
    shadow: Shadow, process: Process, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    producer.fail = True
    shadow.start()
    shadow.offer([deleted("q-0"), *processed_live(reports(1))])
    await until(lambda: process.started == 2)
    producer.fail = False
    await until(lambda: bool(producer.sent))
    await shadow.stop()
    assert [(key, value) for _, key, value in producer.sent] == [(b"q-0", None)]


async def test_a_process_that_has_ended_is_replaced(
    shadow: Shadow, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(batch: Sequence[Any]) -> None:
        raise EOFError

    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    process.outputs = staticmethod(ended)
    shadow.start()
    shadow.offer(processed_live(reports(3)))
    await until(lambda: process.started == 2)
    process.outputs = staticmethod(summaries)
    shadow.offer(processed_live(reports(2)))
    await until(lambda: shadow.counts["agreed"] == 2)
    await shadow.stop()
    assert shadow.counts == {"agreed": 2, "differed": 0, "failed": 3, "skipped": 0}
    assert process.killed == process.started == 2


async def test_a_batch_whose_outputs_cannot_be_sent_is_counted_as_failed(
    shadow: Shadow, process: Process, producer: Producer
) -> None:
    process.outputs = staticmethod(summaries)
    producer.fail = True
    shadow.start()
    shadow.offer(processed_live(reports(3)))
    await until(lambda: shadow.counts["failed"] == 3)
    await until(lambda: process.killed == process.started == 1)
    await shadow.stop()
    assert shadow.counts == {"agreed": 0, "differed": 0, "failed": 3, "skipped": 0}


async def test_an_output_that_is_too_large_fails_alone(process: Process, producer: Producer) -> None:
    def outputs(batch: Sequence[Any]) -> list[Summary]:
        return [replace(s, meta={"x": "y" * 9000}) if s.id == "q-1" else s for s in summaries(batch)]

    shadow = Shadow(STAGE, NO_VERSION, 1.0, Settings(max_output_bytes=8000))
    process.outputs = staticmethod(outputs)
    shadow.start()
    shadow.offer(processed_live(reports(3)))
    await until(lambda: shadow.counts["agreed"] == 2)
    await shadow.stop()
    assert shadow.counts == {"agreed": 2, "differed": 0, "failed": 1, "skipped": 0}
    assert [key for _, key, _ in producer.sent] == [b"q-0", b"q-2"]
    assert process.started == 1


async def test_a_release_that_may_load_later_is_tried_again(
    shadow: Shadow, process: Process, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    process.refusal = Refusal(NO_VERSION, "can't allocate memory", retryable=True)
    shadow.start()
    await until(lambda: process.started >= 2)
    assert shadow.refused is None
    process.refusal = None
    await until(lambda: shadow.loaded)
    await shadow.stop()


async def test_a_refused_release_ends_the_shadow(
    shadow: Shadow, process: Process, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    refusal = Refusal(NO_VERSION, "the canary answers are not those in the manifest")
    process.refusal = refusal
    shadow.start()
    await until(lambda: shadow.refused is not None)
    await asyncio.sleep(0.1)
    for _ in range(MAX_WAITING_BATCHES + 1):
        shadow.offer(processed_live(reports(2)))
    assert shadow.status()["refused"] == refusal.status()
    assert shadow.counts["agreed"] == 0
    assert (process.started, process.killed) == (1, 1)
    await shadow.stop()
    assert producer.sent == []
