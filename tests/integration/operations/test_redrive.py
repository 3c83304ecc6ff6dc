"""Dead letters are sent back on a real broker: each once, unchanged, and not again and again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import TopicPartition

from streams import topics
from streams.dead_letters import redrive as module
from streams.dead_letters.browse import browse
from streams.dead_letters.headers import Fault, Reason, dead_letter_headers
from streams.dead_letters.redrive import Redriven, redrive
from streams.dead_letters.redriven import SentOffsets
from streams.records import Inbound
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka

pytestmark = pytest.mark.kafka

Message = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def letter(
    i: int, reason: Reason, *own: tuple[str, bytes], value: bytes | None = b"{", stage: str = "ner"
) -> Message:
    record = Inbound("posts", i % 4, i, f"key-{i}".encode(), value, 1_760_000_000.0, own)
    return record.key, value, dead_letter_headers(record, stage, Fault(reason, "detail"), "0123456789ab")


class Dead:
    """A broker with the topics, and dead letters of posts."""

    def __init__(self, kafka: LocalKafka) -> None:
        self.bootstrap = kafka.bootstrap
        self.settings = Settings(broker=f"kafka://{kafka.bootstrap}")
        processes.create_topics(self.settings)

    def add(self, *letters: Message) -> None:
        """Writes dead letters, in this order."""

        async def send() -> None:
            async with AIOKafkaProducer(
                bootstrap_servers=self.bootstrap, max_request_size=2 << 20, linger_ms=5
            ) as producer:
                sent = [
                    await producer.send("posts.dead", key=key, value=value, headers=own)
                    for key, value, own in letters
                ]
                await asyncio.gather(*sent)

        asyncio.run(send())

    def redrive(
        self, reason: str | None = None, limit: int = 0, outdated: bool = False, attempts: int = 3
    ) -> Redriven:
        seen: list[tuple[int, int]] = []
        done = asyncio.run(
            redrive(
                self.settings,
                "posts.dead",
                reason=reason,
                limit=limit,
                max_attempts=attempts,
                outdated=outdated,
                progress=lambda n, total: seen.append((n, total)),
            )
        )
        assert seen == sorted(seen)
        assert all(n <= total for n, total in seen)
        return done

    def waiting(self) -> int:
        """The letters that were not sent back, as `pvstream dead` counts them."""
        letters = asyncio.run(browse(self.settings, "posts.dead", progress=lambda n, total: None))
        return letters.waiting.total()

    def sent_back(self) -> list[Any]:
        return processes.read_all(self.bootstrap, "posts")

    def keys_sent_back(self) -> Counter[bytes]:
        return Counter(m.key for m in self.sent_back())


@pytest.fixture
def dead(kafka: LocalKafka) -> Dead:
    return Dead(kafka)


def keys(numbers: Sequence[int]) -> Counter[bytes]:
    return Counter(f"key-{i}".encode() for i in numbers)


def test_letters_of_every_reason_are_sent_back_unchanged_and_a_second_run_sends_nothing(dead: Dead) -> None:
    own = (("trace", b"\x00\xff"), ("trace", b"again"))
    strange: Message = (None, b"\xff\x00", [("pv-reason", b"of a later release")])
    dead.add(letter(0, "bad_record", *own, value=b"\xff{"), letter(1, "poison"), strange)
    dead.add(letter(2, "output_too_large", value=b"x" * 900_000), letter(3, "bad_record", value=None))
    dead.add(letter(4, "poison", value=b"x" * topics.MAX_MESSAGE))
    assert dead.redrive() == Redriven(4, 0, 0, deleted=1, too_large=1), (
        "no tombstone could delete the one without a key"
    )
    back = {m.key: m for m in dead.sent_back()}
    assert back[b"key-0"].value == b"\xff{"
    assert list(back[b"key-0"].headers) == [*own, ("pv-attempts", b"1")]
    assert back[b"key-2"].value == b"x" * 900_000
    assert back[b"key-3"].value is None
    assert dead.redrive() == Redriven(0, 0, 0)
    assert len(dead.sent_back()) == 4
    assert processes.count(dead.bootstrap, "posts.dead") == 6, "dead letters stay"


def test_a_record_that_two_stages_could_not_process_is_sent_back_once(dead: Dead) -> None:
    dead.add(letter(1, "bad_record"), letter(1, "bad_record", stage="summarization"), letter(2, "poison"))
    assert dead.redrive() == Redriven(2, 0, 1)
    assert dead.keys_sent_back() == keys([1, 2])
    assert dead.redrive().sent == 0 and dead.waiting() == 0


def test_a_run_for_one_reason_and_then_one_for_all_send_nothing_twice(dead: Dead) -> None:
    dead.add(*(letter(i, "poison" if i % 2 else "bad_record") for i in range(10)))
    assert dead.redrive("poison") == Redriven(5, 0, 5)
    assert dead.keys_sent_back() == keys([1, 3, 5, 7, 9])
    assert dead.redrive("poison") == Redriven(0, 0, 0)
    assert dead.redrive() == Redriven(5, 0, 5)
    assert dead.keys_sent_back() == keys(range(10))
    dead.add(letter(10, "poison"))
    assert dead.redrive("bad_record") == Redriven(0, 0, 1)
    assert dead.redrive() == Redriven(1, 0, 0)
    assert dead.keys_sent_back() == keys(range(11))


def test_a_limited_run_ends_where_the_next_one_begins_and_moves_no_reason_back(
    dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 3)
    dead.add(*(letter(i, "poison" if i % 2 else "bad_record") for i in range(20)))
    assert dead.redrive("poison").sent == 10
    assert dead.redrive(limit=4).sent == 4 and dead.keys_sent_back().total() == 14
    assert dead.redrive(limit=100).sent == 6
    assert dead.keys_sent_back() == keys(range(20))
    assert dead.redrive() == Redriven(0, 0, 0)


def test_a_letter_that_fails_each_time_is_not_sent_back_a_fourth_time(dead: Dead) -> None:
    def fail_again() -> None:
        """What the stage does with a record that fails again."""
        m = dead.sent_back()[-1]
        record = Inbound("posts", m.partition, m.offset, m.key, m.value, 0.0, tuple(m.headers))
        headers = dead_letter_headers(record, "ner", Fault("poison", "again"), "0123456789ab")
        dead.add((m.key, m.value, headers))

    dead.add(letter(0, "poison", ("trace", b"7")))
    for attempt in range(1, 4):
        assert dead.redrive() == Redriven(1, 0, 0)
        newest = max(dead.sent_back(), key=lambda m: m.offset)
        assert list(newest.headers) == [("trace", b"7"), ("pv-attempts", str(attempt).encode())]
        fail_again()
    assert dead.redrive() == Redriven(0, 1, 0)
    assert len(dead.sent_back()) == 3
    assert dead.redrive() == Redriven(0, 0, 0), "and is not read again"
    assert dead.redrive(attempts=4).sent == 1, "unless more attempts are asked for"
    assert dead.redrive(attempts=4) == Redriven(0, 0, 0)


def test_a_deleted_or_replaced_letter_is_not_brought_back_and_one_sent_again_later_is(dead: Dead) -> None:
    async def send(*values: tuple[bytes, bytes | None]) -> None:
        async with AIOKafkaProducer(bootstrap_servers=dead.bootstrap) as producer:
            for key, value in values:
                await producer.send_and_wait("posts", key=key, value=value, partition=0)

    bad = [(b"key-0", b"{"), (b"key-4", b"{"), (b"key-8", b"{")]
    asyncio.run(send(*bad, (b"key-4", None), (b"key-8", None), (b"key-8", b"{"), (b"key-0", b"{")))
    for i, key, offset in ((0, b"key-0", 0), (4, b"key-4", 1), (8, b"key-8", 2), (8, b"key-8", 5)):
        record = Inbound("posts", 0, offset, key, b"{", 0.0)
        headers = dead_letter_headers(record, "ner", Fault("bad_record", str(i)), "0123456789ab")
        dead.add((key, b"{", headers))
    assert dead.redrive() == Redriven(1, 0, 0, deleted=2, outdated=1)
    assert dead.keys_sent_back() == Counter({b"key-0": 2, b"key-4": 2, b"key-8": 4})


def test_a_report_deleted_in_a_run_is_not_brought_back(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    def produce(*values: Any) -> None:
        processes.produce(dead.bootstrap, "posts", values)

    produce(*((f"key-{i}".encode(), b"{") for i in range(6)))
    places = {m.key: (m.partition, m.offset) for m in dead.sent_back()}
    for i in range(6):
        key = f"key-{i}".encode()
        record = Inbound("posts", *places[key], key, b"{", 0.0)
        dead.add((key, b"{", dead_letter_headers(record, "ner", Fault("poison", ""), "0123456789ab")))
    commit, late = SentOffsets.commit, [(b"key-4", None), (b"key-5", b"{}")]

    async def then_more_comes(sent: Any, offsets: Any) -> None:
        await commit(sent, offsets)
        if late:
            await asyncio.to_thread(produce, late.pop(0), late.pop(0))

    monkeypatch.setattr(module, "CHUNK", 3)
    monkeypatch.setattr(SentOffsets, "commit", then_more_comes)
    assert dead.redrive("poison") == Redriven(4, 0, 0, deleted=1, outdated=1)


def test_what_runs_have_left_is_sent_once_by_a_later_one_and_nothing_else_again(dead: Dead) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=dead.bootstrap) as producer:
            for _ in range(16):
                await producer.send_and_wait("posts", key=b"x", value=b"{", partition=1)

    asyncio.run(send())
    client = processes.admin(dead.bootstrap)
    for future in client.delete_records([TopicPartition("posts", 1, 16)]).values():
        future.result(30)
    # Those of partition 1 are older than their topic: 1, 5, 9 and 13, and the last ones have another reason.
    dead.add(*(letter(i, "bad_record" if i > 11 else "poison") for i in (1, 5, 2, 9, 6, 12, 13)))
    assert dead.redrive("poison") == Redriven(2, 0, 2, outdated=3)
    assert dead.waiting() == 5
    assert dead.redrive() == Redriven(1, 0, 5, outdated=1)
    assert dead.redrive("poison", limit=1, outdated=True).sent == 1
    assert dead.waiting() == 3
    dead.add(letter(1, "poison"), letter(10, "poison"))
    assert dead.redrive() == Redriven(1, 0, 0, outdated=1)
    assert dead.redrive(outdated=True).sent == 4
    assert dead.redrive(outdated=True) == Redriven(0, 0, 0)
    assert dead.keys_sent_back() == keys([1, 1, 2, 5, 6, 9, 10, 12, 13])
    assert dead.waiting() == 0


def test_a_run_that_ends_between_its_sends_and_its_commit_repeats_a_chunk_and_loses_nothing(
    dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead.add(*(letter(i, "poison") for i in range(12)))
    commits = 0

    async def fails_at_the_second(ledger: Any, passed: Any) -> None:
        nonlocal commits
        commits += 1
        if commits > 1:
            raise KeyboardInterrupt
        await commit(ledger, passed)

    commit = SentOffsets.commit
    with monkeypatch.context() as patch:
        patch.setattr(module, "CHUNK", 5)
        patch.setattr(SentOffsets, "commit", fails_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            dead.redrive("poison")
    assert dead.redrive("poison").sent == 7
    assert dead.keys_sent_back() == keys(range(12)) + keys(range(5, 10))
