"""What a worker starts with, and how it takes another release while it runs."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from models.releases.loading import Loaded
from models.releases.manifest import Canary, Release, ReleaseError
from models.releases.remote import deliver
from models.releases.store import bundled, open_release, publish
from streams import metrics
from streams.pipeline import stage_named
from streams.records import Announcement
from streams.releases import reload
from streams.releases.handle import Handle
from streams.releases.opening import load_release
from streams.releases.reload import Reloader, load_at_start
from streams.settings import Settings
from tests.variants import variant

WHEN = datetime(2026, 3, 4, 9, 15, tzinfo=UTC)
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Store:
    """A directory with three sound releases for summaries, and one that does not answer as it says."""

    root: Path
    sound: tuple[str, str, str]
    wrong: str

    @property
    def settings(self) -> Settings:
        return Settings(store=str(self.root), dtype="float32")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("store")
    one, two, three = (variant("summarization", root, note).version for note in ("one", "two", "three"))
    original = open_release(bundled("summarization"))
    canary = Canary(inputs=["Is tea fine?"], outputs=[{"text": "No."}])
    wrong = publish(original.path, original.manifest.model_copy(update={"canary": canary}), root)
    return Store(root, (one, two, three), wrong.version)


@pytest.fixture(autouse=True)
def fresh_gauge() -> Iterator[None]:
    """Other tests leave models in the gauge that no worker has."""
    metrics.MODEL.clear()
    yield
    metrics.MODEL.clear()


def announcement(version: str, previous: str | None = None, task: Any = "summarization") -> Announcement:
    return Announcement(task=task, version=version, reason="publish", announced_at=WHEN, previous=previous)


def reloads(outcome: str, task: str = "summarization") -> float:
    return metrics.REGISTRY.get_sample_value("pv_reload_total", {"task": task, "outcome": outcome}) or 0.0


def shown(task: str = "summarization") -> list[tuple[str, float]]:
    """Release and value of every series that the gauge has for a task."""
    (gauge,) = metrics.MODEL.collect()
    return [(s.labels["release"], s.value) for s in gauge.samples if s.labels["task"] == task]


# What a worker starts with.


def test_without_an_announcement_the_bundled_release_is_loaded(store: Store) -> None:
    handle = load_at_start("summarization", None, store.settings)
    assert handle.current.version == bundled("summarization").name
    assert (handle.pinned, handle.refused, handle.reloads) == (False, None, 0)
    assert shown() == [(bundled("summarization").name, 1.0)]


def test_what_is_announced_is_loaded(store: Store) -> None:
    handle = load_at_start("summarization", announcement(store.sound[0]), store.settings)
    assert handle.current.version == store.sound[0]
    assert (handle.pinned, handle.refused) == (False, None)


def test_the_bundled_release_can_be_announced_without_being_in_the_store(store: Store) -> None:
    handle = load_at_start("summarization", announcement(bundled("summarization").name), store.settings)
    assert handle.current.version == bundled("summarization").name


@pytest.mark.parametrize("missing", [False, True])
def test_in_place_of_a_refused_release_the_one_before_it_is_loaded(missing: bool, store: Store) -> None:
    refused = "0" * 12 if missing else store.wrong
    before = reloads("refused")
    handle = load_at_start("summarization", announcement(refused, store.sound[1]), store.settings)
    assert handle.current.version == store.sound[1]
    assert handle.refused is not None
    assert handle.refused.version == refused
    assert ("is not in the store" if missing else "canary") in handle.refused.reason
    assert reloads("refused") == before + 1
    assert shown() == [(store.sound[1], 1.0)]


@pytest.mark.parametrize("previous", [None, "1" * 12])
def test_where_both_are_refused_the_worker_does_not_start(previous: str | None, store: Store) -> None:
    with pytest.raises(ReleaseError):
        load_at_start("summarization", announcement(store.wrong, previous), store.settings)
    assert shown() == []


def test_a_release_for_another_task_is_refused(store: Store, tmp_path: Path) -> None:
    other = open_release(store.root / "summarization" / store.sound[0])
    (tmp_path / "acronym").mkdir()
    (tmp_path / "acronym" / other.version).symlink_to(other.path)
    settings = Settings(store=str(tmp_path))
    with pytest.raises(ReleaseError, match="a release for summarization, not for acronym"):
        load_at_start("acronym", announcement(other.version, task="acronym"), settings)


def test_what_the_settings_name_wins_over_what_is_announced(store: Store) -> None:
    pinned = store.settings.model_copy(
        update={"releases": {"summarization": store.root / "summarization" / store.sound[2]}}
    )
    handle = load_at_start("summarization", announcement(store.sound[0]), pinned)
    assert handle.current.version == store.sound[2]
    assert handle.pinned


# While a worker runs.


@asynccontextmanager
async def following(
    handle: Handle, settings: Settings
) -> AsyncIterator[tuple[Reloader, Callable[[str], None]]]:
    """A reloader that keeps one task live without a broker, and what announces a version to it."""
    task = handle.task
    reloader = Reloader([stage_named(task)], {task: handle}, settings)

    def announce(version: str) -> None:
        reloader._announcements[task] = announcement(version, task=task)
        reloader._changed[task].set()

    keeping = asyncio.create_task(reloader._update_live(task))
    try:
        yield reloader, announce
        assert not keeping.done(), "it must run for ever"
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        reloader._pool.shutdown(wait=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110  what is waited for does not tell
            await asyncio.sleep(0.01)


@cache
def _loaded(store: Store, version: str | None) -> Loaded:
    return load_release("summarization", version, store.settings)


def loaded_as(store: Store, version: str | None = None, *, pinned: bool = False) -> Handle:
    """A new handle; what it holds is loaded once for all tests."""
    return Handle(_loaded(store, version), pinned=pinned)


async def test_an_announced_release_becomes_the_live_one(store: Store) -> None:
    handle = loaded_as(store)
    since = handle.since
    before = reloads("loaded"), reloads("refused")
    async with following(handle, store.settings) as (_, announce):
        for n, version in enumerate(store.sound[:2], 1):
            announce(version)
            await until(lambda n=n: handle.reloads == n)  # type: ignore[misc]
            assert handle.current.version == version
            assert shown() == [(version, 1.0)]
    assert handle.since > since
    assert handle.refused is None
    assert (reloads("loaded"), reloads("refused")) == (before[0] + 2, before[1])
    assert handle.current.passes_canary()


async def test_a_refused_release_leaves_everything_as_it_was(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    handle = loaded_as(store, store.sound[0])
    current, since = handle.current, handle.since
    before = reloads("loaded"), reloads("refused")
    async with following(handle, store.settings) as (_, announce):
        announce(store.wrong)
        await until(lambda: handle.refused is not None)
        assert handle.current is current
        assert handle.refused is not None
        assert (handle.refused.version, handle.refused.retryable) == (store.wrong, False)
        assert (handle.since, handle.reloads) == (since, 0)
        assert shown() == [(store.sound[0], 1.0)]
        assert (reloads("loaded"), reloads("refused")) == (before[0], before[1] + 1)
        assert f"summarization {store.wrong} is refused" in caplog.text
        # A sound one is taken afterwards, and what is said of the refused one goes.
        announce(store.sound[1])
        await until(lambda: handle.reloads == 1)
        assert handle.refused is None


async def test_going_back_to_what_is_live_takes_back_the_refusal(store: Store) -> None:
    handle = loaded_as(store, store.sound[0])
    current = handle.current
    async with following(handle, store.settings) as (_, announce):
        announce(store.wrong)
        await until(lambda: handle.refused is not None)
        announce(store.sound[0])
        await until(lambda: handle.refused is None)
    assert handle.current is current
    assert handle.reloads == 0


class Gated:
    """Loads as always, but the first time only when the test lets it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = threading.Event()

    def __call__(self, task: str, name: str | Path | None, settings: Settings) -> Loaded:
        self.asked.append(str(name))
        assert self.open.wait(SECONDS)
        return load_release(task, name, settings)


async def test_of_announcements_that_come_while_one_loads_only_the_last_is_loaded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated = Gated()
    monkeypatch.setattr(reload, "load_release", gated)
    handle = loaded_as(store)
    async with following(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: bool(gated.asked))
        for version in (store.wrong, store.sound[1], store.sound[2]):
            announce(version)
            await asyncio.sleep(0)
        gated.open.set()
        await until(lambda: handle.current.version == store.sound[2])
        await asyncio.sleep(0.1)
    assert gated.asked == [store.sound[0], store.sound[2]]
    assert handle.reloads == 2
    assert handle.refused is None


async def test_while_a_release_loads_the_event_loop_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated = Gated()
    monkeypatch.setattr(reload, "load_release", gated)
    handle = loaded_as(store)
    current = handle.current
    async with following(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: bool(gated.asked))
        for _ in range(100):
            await asyncio.sleep(0)
        assert handle.current is current
        gated.open.set()
        await until(lambda: handle.reloads == 1)
    assert handle.current.version == store.sound[0]


async def test_an_error_of_any_kind_is_a_refusal_that_quotes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(task: str, name: str | Path | None, settings: Settings) -> Loaded:
        raise MemoryError("a patient's words")

    handle = loaded_as(store)
    current = handle.current
    monkeypatch.setattr(reload, "load_release", out_of_memory)
    async with following(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: handle.refused is not None)
    assert handle.current is current
    assert handle.refused is not None
    assert (handle.refused.reason, handle.refused.retryable) == ("MemoryError", False)


async def test_a_store_that_fails_is_asked_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.05)
    handle = loaded_as(store)
    current = handle.current
    before = reloads("refused")
    settings = Settings(store=str(tmp_path / "mounted later"))
    async with following(handle, settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: reloads("refused") >= before + 2)
        assert handle.current is current
        assert handle.refused is not None
        assert (handle.refused.version, handle.refused.retryable) == (store.sound[0], True)
        deliver(open_release(store.root / "summarization" / store.sound[0]), settings.store)
        await until(lambda: handle.reloads == 1)
    assert handle.current.version == store.sound[0]
    assert handle.refused is None


async def test_an_unsound_release_is_not_asked_for_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "STORE_RETRY_SECONDS", 0.01)
    handle = loaded_as(store)
    before = reloads("refused")
    async with following(handle, store.settings) as (_, announce):
        announce(store.wrong)
        await until(lambda: handle.refused is not None)
        await asyncio.sleep(0.2)
    assert reloads("refused") == before + 1


async def test_a_pinned_task_ignores_announcements(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    handle = loaded_as(store, pinned=True)
    current = handle.current
    async with following(handle, store.settings) as (_, announce):
        announce(store.sound[0])
        await until(lambda: "but PV_RELEASES sets" in caplog.text)
        await asyncio.sleep(0.05)
    assert handle.current is current
    assert (handle.refused, handle.reloads) == (None, 0)


async def test_an_announcement_without_news_loads_nothing(store: Store) -> None:
    handle = loaded_as(store, store.sound[0])
    current = handle.current
    async with following(handle, store.settings) as (reloader, announce):
        announce(store.sound[0])
        await until(lambda: not reloader._changed["summarization"].is_set())
        reloader._announcements.clear()
        reloader._changed["summarization"].set()
        await until(lambda: not reloader._changed["summarization"].is_set())
    assert handle.current is current
    assert handle.reloads == 0


async def test_after_a_swap_the_old_model_is_garbage_once_no_batch_holds_it(tmp_path: Path) -> None:
    release: Release = variant("ner", tmp_path, "another")
    settings = Settings(store=str(tmp_path), dtype="float32")
    handle = Handle(load_release("ner", None, settings))
    old = weakref.ref(handle.current.model)
    # The weights themselves, which the model's modules hold in circles.
    weights = weakref.ref(next(handle.current.model.encoder.model.parameters()))  # type: ignore[attr-defined]
    batch: list[Loaded] = [handle.current]
    async with following(handle, settings) as (_, announce):
        announce(release.version)
        await until(lambda: handle.reloads == 1)
        assert old() is batch[0].model
        batch.clear()
        gc.collect()
        assert old() is None
        assert weights() is None
        assert handle.current.version == release.version


async def test_the_reloader_collects_an_old_model_that_refers_to_itself(store: Store) -> None:
    handle = Handle(load_release("summarization", None, store.settings))
    setattr(handle.current.model, "itself", handle.current.model)  # noqa: B010  no model has it
    old = weakref.ref(handle.current.model)
    gc.disable()
    try:
        async with following(handle, store.settings) as (_, announce):
            announce(store.sound[0])
            await until(lambda: handle.reloads == 1)
            await until(lambda: old() is None)
    finally:
        gc.enable()
    assert handle.current.version == store.sound[0]


# How announcements reach it.


@dataclass(frozen=True, slots=True)
class Message:
    key: bytes
    value: bytes | None
    offset: int


class FakeTopic:
    """The topic of announcements, and a consumer of it that fails when it is told to."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.came = asyncio.Event()
        self.fail = False
        self.started = 0
        self.stopped = 0

    def put(self, value: Announcement | None, key: str | None = None) -> None:
        from streams.codec import encode  # noqa: PLC0415

        name = key or (value.key if value is not None else "")
        stored = encode(value) if value is not None else None
        self.messages.append(Message(name.encode(), stored, len(self.messages)))
        self.came.set()

    def consumer(self, *topics: str, **options: Any) -> FakeConsumer:
        assert (topics, options["group_id"], options["auto_offset_reset"]) == (
            ("releases",),
            None,
            "earliest",
        )
        return FakeConsumer(self)


class FakeConsumer:
    def __init__(self, topic: FakeTopic) -> None:
        self.topic = topic
        self.at = 0

    async def start(self) -> None:
        self.topic.started += 1
        if self.topic.fail:
            raise ConnectionError("no broker")

    async def stop(self) -> None:
        self.topic.stopped += 1

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0}

    async def end_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, len(self.topic.messages))

    async def position(self, partition: Any) -> int:
        return self.at

    async def getmany(self, partition: Any, timeout_ms: int) -> Mapping[Any, list[Message]]:
        # One at a time, so that the reader has to come back.
        found = self.topic.messages[self.at : self.at + 1]
        self.at += len(found)
        return {partition: found}

    def __aiter__(self) -> FakeConsumer:
        return self

    async def __anext__(self) -> Message:
        while self.at >= len(self.topic.messages):
            self.topic.came.clear()
            await self.topic.came.wait()
            if self.topic.fail:
                raise ConnectionError("the broker went away")
        self.at += 1
        return self.topic.messages[self.at - 1]


async def test_announcements_are_followed_from_the_first_on_and_past_failures(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = FakeTopic()
    monkeypatch.setattr("streams.releases.announcements.kafka_consumer", topic.consumer)
    monkeypatch.setattr(reload, "RETRY_SECONDS", 0.05)
    gated = Gated()
    gated.open.set()
    monkeypatch.setattr(reload, "load_release", gated)
    one, two, three = store.sound
    topic.put(announcement(one))
    topic.put(announcement(two))
    handle = loaded_as(store)
    with caplog.at_level(logging.WARNING):
        running = asyncio.create_task(
            Reloader([stage_named("summarization")], {"summarization": handle}, store.settings).run()
        )
        try:
            # Of what was there before only the last is loaded.
            await until(lambda: handle.current.version == two)
            topic.put(announcement(three))
            await until(lambda: handle.current.version == three)
            topic.fail = True
            topic.came.set()
            await until(lambda: topic.started >= 3)
            assert "reading announcements failed, trying again: ConnectionError" in caplog.text
            topic.put(announcement(one))
            topic.fail = False
            await until(lambda: handle.current.version == one)
            assert gated.asked == [two, three, one]
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert topic.stopped == topic.started
    assert running.cancelled()


async def test_garbage_and_other_tasks_do_not_wake_a_stage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = FakeTopic()
    monkeypatch.setattr("streams.releases.announcements.kafka_consumer", topic.consumer)
    handle = loaded_as(store)
    current = handle.current
    reloader = Reloader([stage_named("summarization")], {"summarization": handle}, store.settings)
    running = asyncio.create_task(reloader.run())
    try:
        topic.put(announcement("0" * 12, task="ner"))
        topic.put(announcement("0" * 12, task="ner"), key="summarization")
        topic.messages.append(Message(b"summarization", b"garbage", len(topic.messages)))
        topic.messages.append(Message(b"\xff", None, len(topic.messages)))
        topic.put(announcement(store.sound[0], task="summarization"))
        await until(lambda: handle.reloads == 1)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert handle.current.version == store.sound[0]
    assert handle.current is not current
    assert handle.refused is None
    assert sorted(reloader._announcements) == ["ner", "summarization"]
