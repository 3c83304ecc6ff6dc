"""A shadow's choice of records and its queue: it never makes the live stage wait or fail."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiokafka import AIOKafkaProducer

from models.releases.store import bundled
from streams import metrics
from streams.rollout import shadow as module
from streams.rollout.announcements import Refusal
from streams.rollout.shadow import MAX_WAITING_BATCHES, Shadow, is_chosen
from streams.settings import Settings
from tests.streams.polling import until
from tests.streams.rollout.shadow.shadowing import NO_VERSION, STAGE, processed, processed_live, reports


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An address without a broker, and an empty store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"kafka://127.0.0.1:{free.getsockname()[1]}"
    return Settings(broker=address, store=str(tmp_path / "store"), dtype="float32")


# The choice of records.


def test_the_choice_is_the_same_on_every_machine_and_a_larger_share_includes_a_smaller_one() -> None:
    ids = [f"post-{i}" for i in range(2000)]
    assert [is_chosen(i, 0.3) for i in ids[:8]] == [False, False, False, True, False, False, False, True]
    small, large = ({i for i in ids if is_chosen(i, share)} for share in (0.1, 0.5))
    assert small
    assert small < large


@pytest.mark.parametrize("template", ["{}", "post-{}", "https://example.org/{}/x", "ü{}"])
def test_the_number_of_chosen_records_is_near_the_share(template: str) -> None:
    ids = [template.format(i) for i in range(10_000)]
    assert all(is_chosen(i, 1.0) for i in ids)
    assert 2700 <= sum(is_chosen(i, 0.3) for i in ids) <= 3300
    assert sum(is_chosen(i, 0.0001) for i in ids) <= 10


# The queue.


def skipped() -> float:
    labels = {"stage": STAGE.name, "outcome": "skipped"}
    return metrics.REGISTRY.get_sample_value("pv_shadow_records_total", labels) or 0.0


def test_records_beyond_the_queue_or_of_a_refused_candidate_count_as_skipped(settings: Settings) -> None:
    shadow = Shadow(STAGE, NO_VERSION, 1.0, settings)
    before = skipped()
    for batch in range(MAX_WAITING_BATCHES + 3):
        shadow.offer([processed(r) for r in reports(4, first=4 * batch)])
    assert shadow.counts == {"agreed": 0, "differed": 0, "failed": 0, "skipped": 12}
    assert skipped() == before + 12
    assert shadow._queue.qsize() == MAX_WAITING_BATCHES
    # The alert ShadowFailing depends on it; no queue need have filled while the candidate was loaded.
    shadow = Shadow(STAGE, NO_VERSION, 1.0, settings)
    shadow.refused = Refusal(NO_VERSION, "the canary answers are not those in the manifest")
    shadow.offer([processed(r) for r in reports(4)])
    assert (shadow.counts["skipped"], shadow._queue.qsize()) == (4, 0)


def test_only_chosen_records_are_queued_or_counted(settings: Settings) -> None:
    shadow = Shadow(STAGE, NO_VERSION, 0.3, settings)
    batch = [processed(r) for r in reports(100)]
    chosen = [p for p in batch if is_chosen(p.report.id, 0.3)]
    for _ in range(MAX_WAITING_BATCHES + 1):
        shadow.offer(batch)
    assert shadow._queue.get_nowait() == chosen
    assert shadow.counts["skipped"] == len(chosen)
    few = Shadow(STAGE, NO_VERSION, 0.0001, settings)
    for _ in range(MAX_WAITING_BATCHES + 1):
        few.offer(batch[:5])
    few.offer([])
    assert few._queue.empty()
    assert set(few.counts.values()) == {0}


async def test_a_shadow_that_is_stopped_before_it_is_started_has_no_agreement(settings: Settings) -> None:
    shadow = Shadow(STAGE, NO_VERSION, 0.5, settings)
    await shadow.stop()
    counts = dict.fromkeys(("agreed", "differed", "failed", "skipped"), 0)
    described = {"version": NO_VERSION, "share": 0.5, "loaded": False, "agreement": None, "refused": None}
    assert shadow.status() == described | counts


# Without a broker.


class RecordedProducer(AIOKafkaProducer):  # type: ignore[misc]
    """A real producer; the class lists all that were created and all that were stopped."""

    created: ClassVar[list[RecordedProducer]] = []
    stopped: ClassVar[list[RecordedProducer]] = []

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.created.append(self)

    async def stop(self) -> None:
        self.stopped.append(self)
        await super().stop()


@pytest.fixture
async def producers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[type[RecordedProducer]]:
    """The producers of shadows; all are stopped at the end of the test."""
    monkeypatch.setattr(module, "AIOKafkaProducer", RecordedProducer)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)
    yield RecordedProducer
    for producer in RecordedProducer.created:
        await producer.stop()
    RecordedProducer.created.clear()
    RecordedProducer.stopped.clear()


async def test_without_a_broker_no_record_is_compared_and_no_error_is_raised(
    settings: Settings, producers: type[RecordedProducer], caplog: pytest.LogCaptureFixture
) -> None:
    shadow = Shadow(STAGE, bundled(STAGE.name).name, 1.0, settings)
    shadow.start()
    for _ in range(MAX_WAITING_BATCHES + 2):
        shadow.offer(processed_live(reports(3)))
    await until(lambda: caplog.text.count("shadow of summarization: KafkaConnectionError") >= 2)
    assert len(producers.created) >= 2
    assert shadow.counts == {"agreed": 0, "differed": 0, "failed": 0, "skipped": 6}
    assert shadow.status()["agreement"] is None
    assert shadow._task is not None
    assert not shadow._task.done()
    started = time.monotonic()
    await shadow.stop()
    assert time.monotonic() - started < 5
    assert shadow._task.cancelled()
    assert producers.stopped == producers.created


async def test_a_shadow_that_is_stopped_while_its_process_starts_leaves_no_process(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[SlowProcess] = []

    class SlowProcess(module.CandidateProcess):
        def __init__(self, *arguments: Any) -> None:
            begun.append(self)
            time.sleep(0.2)
            super().__init__(*arguments)

    @asynccontextmanager
    async def no_client(client: Any) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(module, "CandidateProcess", SlowProcess)
    monkeypatch.setattr(module, "running_client", no_client)
    monkeypatch.setattr(module, "AIOKafkaProducer", lambda **options: None)
    shadow = Shadow(STAGE, bundled(STAGE.name).name, 1.0, settings)
    shadow.start()
    await until(lambda: bool(begun))
    await shadow.stop()
    await asyncio.sleep(0.5)
    (process,) = begun
    assert not process._process.is_alive()
