"""What the intake reads from the topics: reports of an author, and its window after a restart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import orjson
import pytest
from confluent_kafka import Producer

from streams.broker.embedded import EmbeddedBroker
from streams.input_reports import as_input
from streams.intake.authors import AuthorKeys
from streams.intake.duplicates import Window
from streams.intake.forget import forget_authors
from streams.intake.rebuild import rebuild
from streams.records import Report
from streams.settings import Settings
from streams.topics import POSTS
from tests.integration import processes

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


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """The address of an embedded broker of the test's own."""
    with EmbeddedBroker() as broker:
        yield broker.bootstrap


def test_reports_of_an_author_are_found_in_final_records_after_their_inputs_are_gone(bootstrap: str) -> None:
    settings = Settings(broker=f"kafka://{bootstrap}")
    events = [
        (r.id.encode(), orjson.dumps({"id": r.id, "text": r.text, "author": r.author})) for r in reports()
    ]
    processes.produce(bootstrap, "events", events)
    assert len(asyncio.run(forget_authors(settings, KEYS.hashes("alice")))) == 2
    assert asyncio.run(forget_authors(settings, KEYS.hashes("carol"))) == []
    assert asyncio.run(forget_authors(settings, [])) == []
    tombstones = {m.key for m in processes.read_all(bootstrap, "posts") if m.value is None}
    assert tombstones == {b"r0", b"r1"}


def test_the_window_of_duplicates_survives_a_restart(bootstrap: str) -> None:
    settings = Settings(broker=f"kafka://{bootstrap}", duplicate_reports=1000)
    post = "my zoloft makes me yawn in every single meeting and my boss thinks that I hate him"
    sent = [Report(id="a", text=post), Report(id="b", text="RT " + post, duplicate_of="a")]
    humira = post.replace("zoloft", "humira")
    sent += [Report(id="like a", text=humira, similar_to="a")]
    sent += [Report(id="gone", text="what I wrote about lexapro here was too private to stay, so it went")]
    records = [(r.id.encode(), as_input(r)) for r in sent]
    processes.produce(bootstrap, "posts", [*records, (b"bad", b"{")])
    processes.forked_command("forget", "gone", env=processes.environment(bootstrap, 0))
    window = Window(1000, 7)
    asyncio.run(rebuild(window, settings, POSTS))
    assert len(window) == 2
    now = time.time()
    assert window.sight("c", post + " 😂", now)[0] == "a"
    assert window.sight("like it", humira + " #humira", now).similar == "a"
    assert window.sight("d", "nothing like it, and long enough to count", now, repost_of="b")[0] == "a"
    assert window.sight("e", sent[3].text, now)[0] is None


def test_what_was_deleted_after_its_key_moved_to_another_partition_is_not_kept(bootstrap: str) -> None:
    texts = {
        "up": "lexapro made my hands shake so badly that I could not hold my cup of tea",
        "down": "since I take prozac I dream of trains and wake up more tired than before",
    }
    client = Producer({"bootstrap.servers": bootstrap})
    for (id_, text), (before, after) in zip(texts.items(), [(0, 3), (3, 0)], strict=True):
        client.produce("posts", key=id_, value=as_input(Report(id=id_, text=text)), partition=before)
        client.produce("posts", key=id_, value=None, partition=after)
    assert client.flush(30) == 0
    window = Window(1000, 7)
    asyncio.run(rebuild(window, Settings(broker=f"kafka://{bootstrap}"), POSTS))
    assert len(window) == 0
    assert [window.sight(f"{id_} 2", text, time.time())[0] for id_, text in texts.items()] == [None, None]
