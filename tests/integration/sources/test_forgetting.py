"""Deletions on a real broker: by id and by author, through all stages, and out of the logs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer

from streams import topics
from streams.input_reports import as_input
from streams.settings import Settings
from streams.topics import POSTS
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site, stop
from tests.integration.sources.test_intake_topics import KEYS, reports

pytestmark = pytest.mark.kafka


def live_keys(messages: list[Any]) -> set[bytes]:
    """The keys whose last record is no tombstone."""
    last = {m.key: m.value for m in sorted(messages, key=lambda m: (m.partition, m.offset))}
    return {key for key, value in last.items() if value is not None}


def test_what_is_forgotten_is_gone_from_every_topic_others_stay(tiny_site: Site, tmp_path: Path) -> None:
    site = tiny_site
    site.produce("posts", [(r.id.encode(), as_input(r)) for r in reports()])
    site.produce("questions", [(b"q", b'{"id": "q", "text": "I took aspirin and got a rash. Is it safe?"}')])
    handles = tmp_path / "handles"
    handles.write_text("@Alice\n")
    site.env |= {"PV_AUTHOR_KEY": KEYS.present.decode(), "PV_AUTHOR_KEY_OLD": KEYS.former.decode()}
    with site.running("up") as worker:
        processes.wait_until(lambda: len(live_keys(site.read_all("events"))) == 6, "all events")
        processes.wait_until(lambda: live_keys(site.read_all("summaries")) == {b"q"}, "the short question")
        said = site.must("forget", "--handles", str(handles))
        assert "0 ids and 2 reports of 2 hashes" in said
        processes.wait_until(lambda: len(live_keys(site.read_all("events"))) == 4, "the author is forgotten")
        said += site.must("forget", "r2", "unknown", "q")
        processes.wait_until(
            lambda: len(live_keys(site.read_all("events"))) == 2, "the reports are forgotten"
        )
        processes.wait_until(lambda: not live_keys(site.read_all("summaries")), "the question is forgotten")
        stop(worker)
    for topic in ("posts", "mentions", "events"):
        assert live_keys(site.read_all(topic)) == {b"r3", b"r4"}, topic
    assert live_keys(site.read_all("questions")) == set()
    assert not any(word in said for word in ("r2", "unknown", "alice", KEYS.hash("alice") or "-"))
    out = tmp_path / "replayed.jsonl"
    site.must("replay", "posts", "--output", str(out))
    assert {orjson.loads(line)["id"] for line in out.read_bytes().splitlines()} == {"r3", "r4"}


@pytest.mark.slow
def test_a_deleted_text_is_removed_from_the_log(kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a compaction after a second instead of hours."""
    monkeypatch.setattr(topics, "DELETED_MS", 1000)
    settings = Settings(broker=f"kafka://{kafka.bootstrap}", partitions=1)
    asyncio.run(topics.create(settings, (replace(POSTS, partitions=1),)))
    secret = b'{"id": "a", "text": "secret"}'
    asyncio.run(_send(settings, b"a", secret))
    asyncio.run(_send(settings, b"a", None))

    def is_gone() -> bool:
        # A segment ends with the first record after its time.
        asyncio.run(_send(settings, b"later", b"{}"))
        kept = processes.read_all(kafka.bootstrap, "posts")
        assert b"a" in {m.key for m in kept}, "the tombstone stays"
        return secret not in [m.value for m in kept]

    processes.wait_until(is_gone, "the text is gone", 180)


async def _send(settings: Settings, key: bytes, value: bytes | None) -> None:
    async with AIOKafkaProducer(**settings.client()) as producer:
        await producer.send_and_wait("posts", key=key, value=value)
