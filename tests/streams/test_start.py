"""What a worker does until it processes its first record."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import InvalidSessionTimeoutError

from models.releases.manifest import ReleaseError
from streams import metrics, topics, worker
from streams.agents import ner
from streams.broker.embedded import EmbeddedBroker
from streams.cli.demo.run import Outcome, process_started
from streams.cli.feed import arrivals
from streams.cli.ingest import Sender
from streams.records import Report
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS, TopicsError, by_name, group_id
from streams.worker import Worker, WorkerFailed, describe
from tests.fakes import FakeTagger, loaded
from tests.streams.polling import until

ROOT = Path(__file__).parents[2]
STAGE = Stage("ner", POSTS, MENTIONS, ner.predict)


class HeldLoading:
    """In place of `load_at_start`: waits until it may go on, then gives a fake model or raises `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started, self.may_end = threading.Event(), threading.Event()
        self.error: Exception | None = None
        monkeypatch.setattr(worker, "load_at_start", self._load)

    def _load(self, *_: Any) -> Handle:
        self.started.set()
        assert self.may_end.wait(60)
        if self.error is not None:
            raise self.error
        return Handle(loaded(FakeTagger()))


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> HeldLoading:
    return HeldLoading(monkeypatch)


@pytest.fixture
async def broker() -> AsyncIterator[Settings]:
    with EmbeddedBroker() as embedded:
        yield Settings(broker=f"kafka://{embedded.bootstrap}", http_port=0, commit_interval=0.2)


def assigned() -> float | None:
    return metrics.REGISTRY.get_sample_value("pv_assigned_partitions", {"stage": "ner"})


async def run(process: Worker, inside: Callable[[], Any]) -> None:
    async with asyncio.timeout(120), process.running():
        await inside()


@pytest.mark.slow
async def test_the_group_is_joined_while_the_model_is_loaded(broker: Settings, loading: HeldLoading) -> None:
    process = Worker((STAGE,), broker, alone=True)
    found: list[str] = []

    async def read() -> None:
        async with Sender(broker) as sender:
            await sender.send("posts", Report(id="a", text="fine"))
        async for arrival in arrivals(broker):
            found.append(arrival.topic)
            return

    running = asyncio.create_task(run(process, read))
    await until(lambda: assigned() == POSTS_PARTITIONS)
    await until(loading.started.is_set)
    assert process.readiness() == {"ner": False}, "it cannot process yet"
    assert process.releases() == {}
    assert found == []
    loading.may_end.set()
    await running
    assert found == ["mentions"]


POSTS_PARTITIONS = 4


@pytest.mark.slow
async def test_a_worker_joins_its_group_although_the_broker_names_no_node_at_first(
    broker: Settings, loading: HeldLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading.may_end.set()
    known: Callable[[AIOKafkaClient], int | None] = AIOKafkaClient.get_random_node
    asked: list[AIOKafkaClient] = []

    def unknown_at_first(self: AIOKafkaClient) -> int | None:
        if "coordinator_lookup" not in vars(self):
            return known(self)  # No consumer of a group.
        asked.append(self)
        return None if asked.count(self) <= 2 else known(self)

    monkeypatch.setattr(AIOKafkaClient, "get_random_node", unknown_at_first)
    process = Worker((STAGE,), broker, alone=True)
    await run(process, lambda: until(lambda: process.readiness() == {"ner": True}))
    assert max(asked.count(client) for client in asked) > 2


@pytest.mark.slow
async def test_a_worker_ends_where_nothing_keeps_its_membership_any_more(
    broker: Settings, loading: HeldLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading.may_end.set()

    async def broken(*_: Any) -> int:
        raise AssertionError("no coordinator")

    monkeypatch.setattr(AIOKafkaClient, "coordinator_lookup", broken)
    with pytest.raises(WorkerFailed, match="no coordinator"):
        await run(Worker((STAGE,), broker, alone=True), lambda: asyncio.sleep(60))


@pytest.mark.slow
async def test_an_app_is_stopped_after_it_has_started_although_the_model_cannot_be_loaded(
    broker: Settings, loading: HeldLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading.error = ReleaseError("damaged")
    process = Worker((STAGE,), broker, alone=True)
    made = process._stage_app(STAGE)
    start, stop, happened = made.app.start, made.app.stop, []

    async def start_slowly() -> None:
        happened.append("starting")
        loading.may_end.set()
        await asyncio.sleep(1)
        await start()
        happened.append("started")

    async def note_stop() -> None:
        happened.append("stopping")
        await stop()

    monkeypatch.setattr(made.app, "start", start_slowly)
    monkeypatch.setattr(made.app, "stop", note_stop)
    monkeypatch.setattr(process, "_stage_app", lambda stage: made)
    with pytest.raises(ReleaseError, match="damaged"):
        await run(process, lambda: asyncio.sleep(60))
    assert happened == ["starting", "started", "stopping"]
    assert process.readiness() == {}


async def test_where_topics_are_missing_no_group_is_joined(
    broker: Settings, loading: HeldLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(*_: Any) -> None:
        await asyncio.sleep(0.2)
        raise TopicsError("no topic posts")

    monkeypatch.setattr(topics, "require", missing)
    process = Worker((STAGE,), broker, alone=True)
    apps = [process._stage_app(STAGE)]
    monkeypatch.setattr(process, "_stage_app", lambda stage: apps[0])
    with pytest.raises(TopicsError, match="no topic posts"):
        await run(process, lambda: asyncio.sleep(60))
    assert [made.app.started for made in apps] == [False]
    assert not loading.started.is_set()


@pytest.mark.slow
async def test_where_another_process_works_the_group_is_joined_after_loading(
    broker: Settings, loading: HeldLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def others(_: Settings, groups: list[str]) -> bool:
        asked.extend(groups)
        return True

    monkeypatch.setattr(worker, "have_members", others)
    process = Worker((STAGE,), broker)
    running = asyncio.create_task(run(process, lambda: until(lambda: process.readiness()["ner"])))
    assert await asyncio.to_thread(loading.started.wait, 60)
    await asyncio.sleep(0.2)
    assert asked == [group_id(broker, "ner")]
    assert not any(app.app.started for app in process._apps)
    loading.may_end.set()
    await running


async def test_a_silent_broker_delays_nothing(broker: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: Any) -> bool:
        await asyncio.sleep(60)
        return False

    monkeypatch.setattr(worker, "have_members", silent)
    monkeypatch.setattr(worker, "GROUP_SECONDS", 0.05)
    assert await Worker((STAGE,), broker)._others_work()


async def test_models_are_loaded_side_by_side_and_what_they_import_before_that(
    broker: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier = threading.Barrier(2)
    imported: list[str] = []

    def load(task: str, *_: Any) -> Handle:
        assert imported == ["ner", "normalization"]
        barrier.wait(30)
        return Handle(loaded(FakeTagger()))

    monkeypatch.setattr(worker, "load_at_start", load)
    monkeypatch.setattr(worker, "import_models", imported.extend)
    second = Stage("normalization", MENTIONS, by_name("events"), ner.predict)
    process = Worker((STAGE, second), broker.model_copy(update={"workers": 2}))
    done: list[str] = []
    await asyncio.wait_for(process.load(done.append), 60)
    assert sorted(done) == ["ner", "normalization"]


@pytest.mark.slow
def test_a_worker_imports_nothing_that_it_does_not_use() -> None:
    """Each takes a second or more, or tens of megabytes."""
    heavy = (
        "torch", "transformers", "faiss", "scipy", "sklearn", "pandas", "matplotlib", "duckdb", "psycopg",
        "jinja2", "feedparser", "py3langid", "confluent_kafka", "hypothesis", "training",
    )  # fmt: skip
    code = "import sys, streams.__main__, streams.worker, streams.agents.pipeline; "
    loaded = f"print([m for m in {heavy!r} if m in sys.modules]); "
    model = "from models.loading import model_class; model_class('ner'); "
    before, after = output_of(code + loaded + model + loaded).splitlines()
    assert before == "[]"
    assert after == "['torch']", "a worker of one stage imports the code of one model"


def output_of(code: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return answer.stdout.strip()


def test_the_time_of_a_start_counts_from_the_start_of_the_process() -> None:
    code = "import time; time.sleep(0.7); from streams.cli.demo.run import process_started; "
    before = time.monotonic()
    started = float(output_of(code + "print(process_started())"))
    # The system counts in hundredths of a second.
    assert before - 0.02 <= started <= time.monotonic() - 0.7


def test_the_first_result_is_on_a_final_topic_and_a_refused_session_is_told() -> None:
    outcome = Outcome()
    for seconds, topic in enumerate(("mentions", "posts.dead", "summaries", "events")):
        outcome.note(topic, seconds + 0.123)
    assert outcome.as_dict()["first_result_seconds"] == 2.12
    assert process_started() <= time.monotonic()
    assert describe(InvalidSessionTimeoutError()).startswith("the broker refuses PV_SESSION_TIMEOUT: ")
    assert describe(RuntimeError("no such shape")) == "RuntimeError: no such shape"
