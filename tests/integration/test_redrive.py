"""Dead letters go back on a real broker: each once, whole, and not for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from streams import topics
from streams.dead_letters import redrive as module
from streams.dead_letters.headers import Fault, Reason, dead_letter_headers
from streams.dead_letters.redrive import CHUNK, Redriven, redrive
from streams.records import Inbound
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka

pytestmark = pytest.mark.kafka

Message = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def letter(i: int, reason: Reason, *own: tuple[str, bytes], value: bytes | None = b"{") -> Message:
    record = Inbound("posts", i % 4, i, f"key-{i}".encode(), value, 1_760_000_000.0, own)
    return record.key, value, dead_letter_headers(record, "ner", Fault(reason, "detail"), "0123456789ab")


class Dead:
    """A broker with the topics, and dead letters of posts."""

    def __init__(self, kafka: LocalKafka) -> None:
        self.bootstrap = kafka.bootstrap
        self.settings = Settings(broker=f"kafka://{kafka.bootstrap}")
        asyncio.run(topics.create(self.settings))

    def bury(self, *letters: Message) -> None:
        async def send() -> None:
            async with AIOKafkaProducer(
                bootstrap_servers=self.bootstrap, max_request_size=2 << 20
            ) as producer:
                for key, value, own in letters:
                    await producer.send_and_wait("posts.dead", key=key, value=value, headers=own)

        asyncio.run(send())

    def redrive(self, reason: str | None = None, limit: int = 0) -> Redriven:
        seen: list[tuple[int, int]] = []
        done = asyncio.run(
            redrive(
                self.settings,
                "posts.dead",
                reason=reason,
                limit=limit,
                progress=lambda n, total: seen.append((n, total)),
            )
        )
        assert seen == sorted(seen)
        assert all(n <= total for n, total in seen)
        return done

    def back(self) -> list[Any]:
        return processes.read_all(self.bootstrap, "posts")

    def keys_back(self) -> Counter[bytes]:
        return Counter(m.key for m in self.back())


@pytest.fixture
def dead(own_kafka: LocalKafka) -> Dead:
    return Dead(own_kafka)


def keys(numbers: Sequence[int]) -> Counter[bytes]:
    return Counter(f"key-{i}".encode() for i in numbers)


def test_letters_of_every_reason_go_back_whole_and_a_second_run_sends_nothing(dead: Dead) -> None:
    own = (("trace", b"\x00\xff"), ("trace", b"again"))
    strange: Message = (None, b"\xff\x00", [("pv-reason", b"of a later release")])
    dead.bury(letter(0, "bad_record", *own, value=b"\xff{"), letter(1, "poison"), strange)
    dead.bury(letter(2, "output_too_large", value=b"x" * 900_000), letter(3, "bad_record", value=None))
    assert dead.redrive() == Redriven(5, 0, 0)
    back = {m.key: m for m in dead.back()}
    assert back[b"key-0"].value == b"\xff{"
    assert list(back[b"key-0"].headers) == [*own, ("pv-attempts", b"1")]
    assert back[b"key-2"].value == b"x" * 900_000
    assert back[b"key-3"].value is None
    assert (back[None].value, list(back[None].headers)) == (b"\xff\x00", [("pv-attempts", b"1")])
    assert dead.redrive() == Redriven(0, 0, 0)
    assert len(dead.back()) == 5
    assert processes.count(dead.bootstrap, "posts.dead") == 5, "dead letters stay"


def test_one_reason_and_then_all_sends_nothing_twice(dead: Dead) -> None:
    dead.bury(*(letter(i, "poison" if i % 2 else "bad_record") for i in range(10)))
    assert dead.redrive("poison") == Redriven(5, 0, 5)
    assert dead.keys_back() == keys([1, 3, 5, 7, 9])
    assert dead.redrive("poison") == Redriven(0, 0, 0)
    assert dead.redrive() == Redriven(5, 0, 5)
    assert dead.keys_back() == keys(range(10))
    dead.bury(letter(10, "poison"))
    assert dead.redrive("bad_record") == Redriven(0, 0, 1)
    assert dead.redrive() == Redriven(1, 0, 0)
    assert dead.keys_back() == keys(range(11))


def test_a_limited_run_ends_where_the_next_one_begins_and_sets_no_reason_back(dead: Dead) -> None:
    dead.bury(*(letter(i, "poison" if i % 2 else "bad_record") for i in range(10)))
    assert dead.redrive("poison").sent == 5
    assert dead.redrive(limit=2) == Redriven(2, 0, 1)
    assert dead.keys_back() == keys([0, 1, 2, 3, 5, 7, 9])
    assert dead.redrive(limit=100).sent == 3
    assert dead.keys_back() == keys(range(10))
    assert dead.redrive() == Redriven(0, 0, 0)


def test_a_letter_that_dies_again_and_again_is_given_up(dead: Dead) -> None:
    def die_again() -> None:
        """What the stage does with a record that came back."""
        m = dead.back()[-1]
        record = Inbound("posts", m.partition, m.offset, m.key, m.value, 0.0, tuple(m.headers))
        dead.bury(
            (m.key, m.value, dead_letter_headers(record, "ner", Fault("poison", "again"), "0123456789ab"))
        )

    dead.bury(letter(0, "poison", ("trace", b"7")))
    for attempt in range(1, 4):
        assert dead.redrive() == Redriven(1, 0, 0)
        newest = max(dead.back(), key=lambda m: m.offset)
        assert list(newest.headers) == [("trace", b"7"), ("pv-attempts", str(attempt).encode())]
        die_again()
    assert dead.redrive() == Redriven(0, 1, 0)
    assert len(dead.back()) == 3
    assert dead.redrive() == Redriven(0, 0, 0), "and is not looked at for ever"


def test_a_letter_that_the_topic_would_refuse_does_not_hold_up_the_others(dead: Dead) -> None:
    dead.bury(letter(0, "poison", value=b"x" * topics.MAX_MESSAGE), letter(1, "poison"))
    assert dead.redrive() == Redriven(1, 0, 0, too_large=1)
    assert dead.keys_back() == keys([1])


def test_more_letters_than_one_chunk_all_go_back_once(dead: Dead) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=dead.bootstrap, linger_ms=5) as producer:
            for i in range(2 * CHUNK + 7):
                key, value, own = letter(i, "poison")
                await producer.send("posts.dead", key=key, value=value, headers=own)

    asyncio.run(send())
    assert dead.redrive(limit=CHUNK + 3).sent == CHUNK + 3
    assert dead.redrive().sent == CHUNK + 4
    assert dead.keys_back() == keys(range(2 * CHUNK + 7))


def test_a_run_that_ends_between_its_sends_and_its_commit_repeats_a_chunk_and_loses_nothing(
    dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead.bury(*(letter(i, "poison") for i in range(12)))
    commits = 0

    async def fails_at_the_second(ledger: Any, passed: Any) -> None:
        nonlocal commits
        commits += 1
        if commits > 1:
            raise KeyboardInterrupt
        await commit(ledger, passed)

    commit = module._SentOffsets.commit
    with monkeypatch.context() as patch:
        patch.setattr(module, "CHUNK", 5)
        patch.setattr(module._SentOffsets, "commit", fails_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            dead.redrive("poison")
    assert dead.redrive("poison").sent == 7
    assert dead.keys_back() == keys(range(12)) + keys(range(5, 10))
