"""A worker on the embedded broker: it ends with an error when its model fails, and ingest from another
process sends no more than the broker can hold.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from streams import metrics
from streams.agents import ner
from streams.broker.embedded import EmbeddedBroker
from streams.cli.feed import arrivals
from streams.cli.ingest import Sender
from streams.records import Report
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS
from streams.worker import Worker, WorkerFailed
from tests.fakes import FakeTagger, loaded
from tests.integration import processes
from tests.integration.site import stop


def sample(name: str, **labels: str) -> float | None:
    return metrics.REGISTRY.get_sample_value(name, labels)


def lags() -> list[float | None]:
    """Lag of each partition of posts, as the worker last reported it."""
    return [sample("pv_lag_records", stage="ner", topic="posts", partition=str(p)) for p in range(4)]


STAGE = Stage("ner", POSTS, MENTIONS, ner.predict)


async def test_a_failing_model_ends_the_worker_and_makes_no_dead_letters() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0)
        worker = Worker((STAGE,), settings)
        worker.handles["ner"] = Handle(loaded(FakeTagger(failing=True)))
        started = time.monotonic()
        with pytest.raises(WorkerFailed, match="fails its canary check"):
            async with worker.running():
                async with Sender(settings) as sender:
                    await sender.send("posts", Report(id="a", text="fine"))
                await asyncio.sleep(60)
        assert time.monotonic() - started < 30
        assert processes.count(broker.bootstrap, "posts") == 1
        assert processes.count(broker.bootstrap, "mentions", "posts.dead") == 0


async def test_loading_a_worker_prepares_its_stages(pinned: str) -> None:
    """Otherwise the first inference would, and on a busy machine that took longer than its deadline."""
    prepared: list[str] = []
    stage: Stage[Report, Report] = Stage(
        "ner", POSTS, MENTIONS, ner.predict, prepare=lambda: prepared.append(threading.current_thread().name)
    )
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0, releases=orjson.loads(pinned))
        worker = Worker((stage,), settings)
        await worker.load()
    assert len(prepared) == 1
    assert prepared[0].startswith("inference")


async def test_a_worker_is_ready_once_it_has_its_partitions_and_reports_its_lag() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0, commit_interval=0.2)
        worker = Worker((STAGE,), settings)
        worker.handles["ner"] = Handle(loaded(FakeTagger()))
        assert worker.readiness() == {}
        async with worker.running():
            async with Sender(settings) as sender:
                for i in range(20):
                    await sender.send("posts", Report(id=str(i), text="poison" if i == 7 else "fine"))
            found = {}
            async with asyncio.timeout(120):
                async for arrival in arrivals(settings):
                    found[arrival.key] = arrival
                    if len(found) == 20:
                        break
            assert worker.readiness() == {"ner": True}
            assert sample("pv_assigned_partitions", stage="ner") == 4
            assert sample("pv_ready", stage="ner") == 1
            async with asyncio.timeout(120):
                while lags() != [0, 0, 0, 0]:  # noqa: ASYNC110  gauges send no event
                    await asyncio.sleep(0.1)
        assert sample("pv_ready", stage="ner") == 0, "a stopping worker is not ready"
        assert found["7"].topic == "posts.dead"
        assert found["7"].headers["pv-reason"] == "poison"
        assert all(found[str(i)].topic == "mentions" for i in range(20) if i != 7)


async def test_a_worker_runs_with_a_session_of_minutes_as_its_restart_may_take() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0, session_timeout=300)
        worker = Worker((STAGE,), settings)
        worker.handles["ner"] = Handle(loaded(FakeTagger()))
        async with worker.running(), asyncio.timeout(60):
            while worker.readiness() != {"ner": True}:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def test_an_output_may_be_as_large_as_is_set() -> None:
    def large(model: object, reports: Sequence[Report]) -> list[Report]:
        return [replace(report, meta={"x": "y" * 4_500_000}) for report in reports]

    stage: Stage[Report, Report] = Stage("ner", POSTS, MENTIONS, large)
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", http_port=0, max_output_bytes=5_000_000)
        worker = Worker((stage,), settings)
        worker.handles["ner"] = Handle(loaded(FakeTagger()))
        async with worker.running(), asyncio.timeout(60):
            async with Sender(settings) as sender:
                await sender.send("posts", Report(id="a", text="fine"))
            while processes.count(broker.bootstrap, "mentions") == 0:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


def test_another_process_feeds_an_embedded_broker_and_loses_no_record(tmp_path: Path, pinned: str) -> None:
    file = tmp_path / "questions.jsonl"
    text = "My doctor gave me metformin last year and I feel fine. " * 40 + "Is metformin safe with alcohol?"
    with file.open("wb") as out:
        for i in range(300):
            out.write(orjson.dumps({"id": f"q{i}", "text": text}) + b"\n")
    log = tmp_path / "up.log"
    env = processes.environment("unused:1", 0, PV_BROKER="embedded", PV_RELEASES=pinned)
    with processes.running("up", env=env, log=log, forked=True) as up:
        processes.wait_until(lambda: "PV_BROKER=" in log.read_text(), "the broker's address")
        found = re.search(r"PV_BROKER=kafka://(\S+)", log.read_text())
        assert found is not None
        bootstrap = found.group(1)
        ingest = processes.command("ingest", "questions", str(file), env=processes.environment(bootstrap, 0))
        assert ingest.returncode == 0, ingest.stderr
        processes.wait_until(lambda: processes.count(bootstrap, "summaries") == 300, "all summaries")
        stop(up)
