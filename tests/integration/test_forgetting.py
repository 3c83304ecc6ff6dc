"""Deletions on a real broker: by id and by author, through all stages, and out of the logs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer

from streams import topics
from streams.inputs import as_input
from streams.intake.authors import AuthorKeys
from streams.intake.duplicates import Window
from streams.intake.forget import forget_authors
from streams.intake.rebuild import rebuild
from streams.records import Report
from streams.settings import Settings
from streams.topics import POSTS
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site, stop

pytestmark = pytest.mark.kafka
KEYS = AuthorKeys(b"present key, long", b"former key, longer")
FORMER = AuthorKeys(KEYS.former)


def reports() -> list[Report]:
    """Two of alice, one of them hashed by the former key, two of bob, and one whose text has alice's hash."""
    alice, bob = KEYS.hash("alice"), KEYS.hash("bob")
    by = [alice, FORMER.hash("alice"), bob, bob, None]
    texts = [f"zoloft gave me insomnia {i}" for i in range(4)] + [f"my zoloft {alice}"]
    return [
        Report(id=f"r{i}", text=text, author=hash_)
        for i, (text, hash_) in enumerate(zip(texts, by, strict=True))
    ]


def live_keys(messages: list[Any]) -> set[bytes]:
    """The keys whose last record is no tombstone."""
    last = {m.key: m.value for m in sorted(messages, key=lambda m: (m.partition, m.offset))}
    return {key for key, value in last.items() if value is not None}


def test_what_is_forgotten_is_gone_from_every_topic_and_the_others_stay(
    tiny_site: Site, tmp_path: Path
) -> None:
    site = tiny_site
    site.produce("posts", [(r.id.encode(), as_input(r)) for r in reports()])
    handles = tmp_path / "handles"
    handles.write_text("@Alice\n")
    site.env |= {"PV_AUTHOR_KEY": KEYS.present.decode(), "PV_AUTHOR_KEY_OLD": KEYS.former.decode()}
    with site.running("up") as worker:
        processes.wait_until(lambda: len(live_keys(site.read_all("events"))) == 5, "all events")
        said = site.must("forget", "--handles", str(handles))
        assert "0 ids and 2 reports of 2 hashes" in said
        processes.wait_until(lambda: len(live_keys(site.read_all("events"))) == 3, "the author is forgotten")
        said += site.must("forget", "r2", "unknown")
        processes.wait_until(lambda: len(live_keys(site.read_all("events"))) == 2, "the report is forgotten")
        stop(worker)
    for topic in ("posts", "mentions", "events"):
        assert live_keys(site.read_all(topic)) == {b"r3", b"r4"}, topic
    assert live_keys(site.read_all("mentions.shadow", "events.shadow")) == set()
    assert not any(word in said for word in ("r2", "unknown", "alice", KEYS.hash("alice") or "-"))
    out = tmp_path / "replayed.jsonl"
    site.must("replay", "posts", "--output", str(out))
    assert {orjson.loads(line)["id"] for line in out.read_bytes().splitlines()} == {"r3", "r4"}


def test_reports_of_an_author_are_found_in_final_records_after_their_inputs_are_gone(
    kafka: LocalKafka,
) -> None:
    settings = Settings(broker=f"kafka://{kafka.bootstrap}")
    processes.create_topics(settings)
    events = [
        (r.id.encode(), orjson.dumps({"id": r.id, "text": r.text, "author": r.author})) for r in reports()
    ]
    processes.produce(kafka.bootstrap, "events", events)
    assert asyncio.run(forget_authors(settings, KEYS.hashes("alice"))) == 2
    assert asyncio.run(forget_authors(settings, KEYS.hashes("carol"))) == 0
    assert asyncio.run(forget_authors(settings, [])) == 0
    tombstones = {m.key for m in processes.read_all(kafka.bootstrap, "posts") if m.value is None}
    assert tombstones == {b"r0", b"r1"}


def test_the_window_of_duplicates_survives_a_restart(kafka: LocalKafka) -> None:
    settings = Settings(broker=f"kafka://{kafka.bootstrap}", duplicate_reports=1000)
    processes.create_topics(settings)
    post = "my zoloft makes me yawn in every single meeting and my boss thinks that I hate him"
    sent = [Report(id="a", text=post), Report(id="b", text="RT " + post, duplicate_of="a")]
    sent += [Report(id="gone", text="what I wrote about lexapro here was too private to stay, so it went")]
    records = [(r.id.encode(), as_input(r)) for r in sent]
    processes.produce(kafka.bootstrap, "posts", [*records, (b"bad", b"{")])
    processes.forked_command("forget", "gone", env=processes.environment(kafka.bootstrap, 0))
    window = Window(1000, 7)
    asyncio.run(rebuild(window, settings, POSTS))
    assert len(window) == 1
    now = time.time()
    assert window.first("c", post + " 😂", now)[0] == "a"
    assert window.first("d", "nothing like it, and long enough to count", now, repost_of="b")[0] == "a"
    assert window.first("e", sent[2].text, now)[0] is None


@pytest.mark.slow
def test_the_text_of_a_deleted_report_is_removed_from_the_log(
    kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
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
