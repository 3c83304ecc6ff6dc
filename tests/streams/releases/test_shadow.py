"""The candidate beside the live model: it never waits for it, and never lies about it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiokafka import AIOKafkaProducer

from models.releases.store import bundled
from streams import metrics
from streams.codec import decode, encode
from streams.pipeline import stage_named
from streams.records import Report, Summary
from streams.releases import shadow
from streams.releases.announcements import Refusal
from streams.releases.shadow import MAX_WAITING_BATCHES, Shadow, is_chosen
from streams.settings import Settings
from streams.stage import Processed, with_provenance
from tests.fakes import inbound

STAGE = stage_named("summarization")
TEXTS = [
    "SUBJECT: metformin\nMESSAGE: On it for two years. Can metformin cause hair loss? Thanks a lot.",
    "My father takes warfarin. What foods should he avoid with warfarin?",
    "No question here.",
]
SECONDS = 60.0


def reports(n: int = 3, first: int = 0) -> list[Report]:
    return [Report(id=f"q-{first + i}", text=TEXTS[i % len(TEXTS)]) for i in range(n)]


def done(report: Report, output: Any = None) -> Processed:
    return Processed(inbound(0, encode(report), "questions"), report, output)


def counted(outcome: str) -> float:
    labels = {"stage": STAGE.name, "outcome": outcome}
    return metrics.REGISTRY.get_sample_value("pv_shadow_records_total", labels) or 0.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110  what is waited for does not tell
            await asyncio.sleep(0.02)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A broker that is not there, and an empty store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"kafka://127.0.0.1:{free.getsockname()[1]}"
    return Settings(broker=address, store=str(tmp_path / "store"), dtype="float32")


# Which records.


def test_the_choice_is_always_the_same() -> None:
    ids = [f"post-{i}" for i in range(1000)]
    assert [is_chosen(i, 0.3) for i in ids] == [is_chosen(i, 0.3) for i in ids]
    # It is the same on every machine, in every process and in every version.
    assert [is_chosen(f"post-{i}", 0.3) for i in range(8)] == CHOSEN


CHOSEN = [False, False, False, True, False, False, False, True]


def test_what_a_smaller_share_takes_a_larger_one_takes_too() -> None:
    ids = [f"post-{i}" for i in range(2000)]
    small, large = ({i for i in ids if is_chosen(i, share)} for share in (0.1, 0.5))
    assert small
    assert small < large


@pytest.mark.parametrize("template", ["{}", "post-{}", "https://example.org/{}/x", "ü{}"])
def test_a_share_takes_so_many(template: str) -> None:
    ids = [template.format(i) for i in range(10_000)]
    assert all(is_chosen(i, 1.0) for i in ids)
    assert 2700 <= sum(is_chosen(i, 0.3) for i in ids) <= 3300
    assert sum(is_chosen(i, 0.0001) for i in ids) <= 10


# What the live path does.


def test_what_does_not_fit_is_counted_and_left_out(settings: Settings) -> None:
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    before = counted("skipped")
    for batch in range(MAX_WAITING_BATCHES + 3):
        beside.offer([done(r) for r in reports(4, first=4 * batch)])
    assert beside.counts == {"agreed": 0, "differed": 0, "failed": 0, "skipped": 12}
    assert counted("skipped") == before + 12
    assert beside._queue.qsize() == MAX_WAITING_BATCHES


def test_only_what_is_chosen_is_offered_or_counted(settings: Settings) -> None:
    beside = Shadow(STAGE, "0" * 12, 0.3, settings)
    batch = [done(r) for r in reports(100)]
    chosen = [d for d in batch if is_chosen(d.report.id, 0.3)]
    for _ in range(MAX_WAITING_BATCHES + 1):
        beside.offer(batch)
    assert beside._queue.get_nowait() == chosen
    assert beside.counts["skipped"] == len(chosen)


def test_a_batch_without_chosen_records_takes_no_place(settings: Settings) -> None:
    beside = Shadow(STAGE, "0" * 12, 0.0001, settings)
    for _ in range(MAX_WAITING_BATCHES + 1):
        beside.offer([done(r) for r in reports(5)])
    beside.offer([])
    assert beside._queue.empty()
    assert set(beside.counts.values()) == {0}


def test_without_compared_records_there_is_no_agreement(settings: Settings) -> None:
    beside = Shadow(STAGE, "0" * 12, 0.5, settings)
    assert beside.status() == {
        "version": "0" * 12,
        "share": 0.5,
        "loaded": False,
        "agreement": None,
        "refused": None,
        "agreed": 0,
        "differed": 0,
        "failed": 0,
        "skipped": 0,
    }


# All of it, with a stand-in for the process and the broker.


class FakeCandidate:
    """Answers as it is told."""

    refusal: Refusal | None = None
    answer: Callable[[Sequence[Any]], Sequence[Any] | None] = staticmethod(lambda batch: None)
    made = 0
    ended = 0

    def __init__(self, task: str, version: str, settings: Settings) -> None:
        type(self).made += 1

    async def wait_loaded(self) -> Refusal | None:
        return self.refusal

    async def predict(self, batch: Sequence[Any]) -> Sequence[Any] | None:
        return type(self).answer(batch)

    def kill(self) -> None:
        type(self).ended += 1


class FakeProducer:
    """Confirms everything, or fails."""

    sent: list[tuple[str, bytes, bytes]]
    fail = False

    def __init__(self, **options: Any) -> None:
        assert options["acks"] == "all"

    async def start(self) -> None:
        """Nothing is connected."""

    async def stop(self) -> None:
        """Nothing was connected."""

    async def send(self, topic: str, key: bytes, value: bytes) -> asyncio.Future[None]:
        if self.fail:
            raise ConnectionError("gone")
        self.sent.append((topic, key, value))
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> tuple[type[FakeCandidate], type[FakeProducer]]:
    process = type("Process", (FakeCandidate,), {})
    producer = type("Producer", (FakeProducer,), {"sent": []})
    monkeypatch.setattr(shadow, "CandidateProcess", process)
    monkeypatch.setattr(shadow, "AIOKafkaProducer", producer)
    monkeypatch.setattr(shadow, "RETRY_SECONDS", 0.02)
    return process, producer


Fakes = tuple[type[FakeCandidate], type[FakeProducer]]


def summarized(batch: Sequence[Report], *, other: frozenset[str] = frozenset()) -> list[Summary]:
    """The first words of each text; other ones for some ids."""
    from models.types import ShortQuestion  # noqa: PLC0415
    from streams.records import extend  # noqa: PLC0415

    lengths = [5 if r.id in other else 8 for r in batch]
    short = [ShortQuestion(r.text[:n], "extractive", 0.5, 0, n) for r, n in zip(batch, lengths, strict=True)]
    return [extend(Summary, r, summary=s) for r, s in zip(batch, short, strict=True)]


def live(batch: Sequence[Report]) -> list[Processed]:
    """What the live release made of it; its scores differ, which decides nothing."""
    found = []
    for report, answer in zip(batch, summarized(batch), strict=True):
        record = inbound(0, encode(report), "questions")
        scored = replace(answer, summary=replace(answer.summary, score=0.7))
        found.append(Processed(record, report, with_provenance(scored, report, STAGE.name, "f" * 12, record)))
    return found


async def test_what_agrees_and_what_differs_is_counted_and_sent_beside_the_sink(
    fake: Fakes, settings: Settings
) -> None:
    process, producer = fake
    process.answer = staticmethod(lambda batch: summarized(batch, other=frozenset({"q-1"})))
    before = counted("agreed"), counted("differed")
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    beside.start()
    beside.offer(live(reports(4)))
    await until(lambda: beside.counts["differed"] == 1)
    await beside.stop()
    assert beside.counts == {"agreed": 3, "differed": 1, "failed": 0, "skipped": 0}
    assert beside.status()["agreement"] == 0.75
    assert (counted("agreed"), counted("differed")) == (before[0] + 3, before[1] + 1)
    assert [(topic, key) for topic, key, _ in producer.sent] == [
        ("summaries.shadow", f"q-{i}".encode()) for i in range(4)
    ]
    assert {decode(Summary, value).releases["summarization"] for *_, value in producer.sent} == {"0" * 12}
    assert (process.made, process.ended) == (1, 1)


async def test_a_model_that_raises_agrees_with_nothing(fake: Fakes, settings: Settings) -> None:
    process, producer = fake
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    beside.start()
    beside.offer(live(reports(3)))
    await until(lambda: beside.counts["failed"] == 3)
    process.answer = staticmethod(summarized)
    beside.offer(live(reports(2)))
    await until(lambda: beside.counts["agreed"] == 2)
    await beside.stop()
    assert beside.counts == {"agreed": 2, "differed": 0, "failed": 3, "skipped": 0}
    assert len(producer.sent) == 2
    assert (process.made, process.ended) == (1, 1)


async def test_a_process_that_is_gone_is_replaced(fake: Fakes, settings: Settings) -> None:
    process, _ = fake

    def gone(batch: Sequence[Any]) -> None:
        raise EOFError

    process.answer = staticmethod(gone)
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    beside.start()
    beside.offer(live(reports(3)))
    await until(lambda: process.made == 2)
    process.answer = staticmethod(summarized)
    beside.offer(live(reports(2)))
    await until(lambda: beside.counts["agreed"] == 2)
    await beside.stop()
    assert beside.counts == {"agreed": 2, "differed": 0, "failed": 3, "skipped": 0}
    assert process.ended == process.made == 2


async def test_what_could_not_be_sent_is_no_agreement(fake: Fakes, settings: Settings) -> None:
    process, producer = fake
    process.answer = staticmethod(summarized)
    producer.fail = True
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    beside.start()
    beside.offer(live(reports(3)))
    await until(lambda: beside.counts["failed"] == 3)
    await beside.stop()
    assert beside.counts == {"agreed": 0, "differed": 0, "failed": 3, "skipped": 0}
    assert process.ended == process.made


async def test_an_answer_too_few_is_no_agreement(fake: Fakes, settings: Settings) -> None:
    process, _ = fake
    process.answer = staticmethod(lambda batch: summarized(batch)[1:])
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    beside.start()
    beside.offer(live(reports(3)))
    await until(lambda: beside.counts["failed"] == 3)
    await beside.stop()
    assert beside.counts["agreed"] == 0


async def test_a_refused_release_ends_the_shadow_for_good(fake: Fakes, settings: Settings) -> None:
    process, producer = fake
    process.refusal = Refusal("0" * 12, "the canary answers are not those in the manifest")
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    beside.start()
    await until(lambda: beside.refused is not None)
    await asyncio.sleep(0.1)
    for _ in range(MAX_WAITING_BATCHES + 1):
        beside.offer(live(reports(2)))
    assert beside.status()["refused"] == process.refusal.status()
    assert beside.counts["agreed"] == 0
    assert (process.made, process.ended) == (1, 1)
    await beside.stop()
    assert producer.sent == []


async def test_stopping_before_it_began_is_no_error(settings: Settings) -> None:
    beside = Shadow(STAGE, "0" * 12, 1.0, settings)
    await beside.stop()
    assert set(beside.counts.values()) == {0}


class Watched(AIOKafkaProducer):  # type: ignore[misc]
    """A real producer; all that are made, and those that are stopped."""

    made: ClassVar[list[Watched]] = []
    stopped: ClassVar[list[Watched]] = []

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.made.append(self)

    async def stop(self) -> None:
        self.stopped.append(self)
        await super().stop()


@pytest.fixture
async def away(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[type[Watched]]:
    """The producers that find no broker; all are stopped when the test ends."""
    monkeypatch.setattr(shadow, "AIOKafkaProducer", Watched)
    monkeypatch.setattr(shadow, "RETRY_SECONDS", 0.05)
    yield Watched
    for producer in Watched.made:
        await producer.stop()
    Watched.made.clear()
    Watched.stopped.clear()


async def test_without_a_broker_nothing_is_counted_as_agreed_and_nothing_is_raised(
    settings: Settings, away: type[Watched], caplog: pytest.LogCaptureFixture
) -> None:
    beside = Shadow(STAGE, bundled(STAGE.name).name, 1.0, settings)
    beside.start()
    for _ in range(MAX_WAITING_BATCHES + 2):
        beside.offer(live(reports(3)))
    await until(lambda: caplog.text.count("shadow of summarization: KafkaConnectionError") >= 2)
    assert len(away.made) >= 2
    assert beside.counts == {"agreed": 0, "differed": 0, "failed": 0, "skipped": 6}
    assert beside.status()["agreement"] is None
    assert beside._task is not None
    assert not beside._task.done()
    started = time.monotonic()
    await beside.stop()
    assert time.monotonic() - started < 5
    assert beside._task.cancelled()


async def test_a_producer_that_found_no_broker_is_stopped(settings: Settings, away: type[Watched]) -> None:
    beside = Shadow(STAGE, bundled(STAGE.name).name, 1.0, settings)
    beside.start()
    await until(lambda: len(away.made) >= 3)
    await beside.stop()
    assert away.stopped == away.made
