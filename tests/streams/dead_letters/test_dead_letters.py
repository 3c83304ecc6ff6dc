"""Dead letters: how they are described, which are sent back, and what may be skipped."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from streams.broker.embedded import EmbeddedBroker
from streams.cli.operations.dead import letter_content
from streams.dead_letters import skip as module
from streams.dead_letters.browse import describe, printable
from streams.dead_letters.headers import Fault, dead_letter
from streams.dead_letters.redrive import reason_of, source_topic
from streams.dead_letters.redriven import MAX_METADATA, SentOffsets, hold, read, written
from streams.dead_letters.skip import skip
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import CONSUMED, QUESTIONS, TopicsError, group_id
from tests.fakes import inbound


def test_a_dead_letter_topic_belongs_to_the_topic_it_is_named_after_and_no_other_topic_has_letters() -> None:
    assert [source_topic(f"{topic.name}.dead") for topic in CONSUMED] == list(CONSUMED)
    for name in ("posts", "events.dead", "posts.dead.dead", "", ".dead"):
        with pytest.raises(TopicsError, match=r"posts\.dead"):
            source_topic(name)


TP = TopicPartition("posts.dead", 0)


def sent_offsets(offset: int = 0, *left: tuple[int, int]) -> SentOffsets:
    one = SentOffsets(None)
    one.offsets, one.left = {TP: offset}, {TP: list(left)}
    return one


@given(st.lists(st.sampled_from(("leave", "take", "other")), max_size=60))
def test_exactly_what_was_left_waits_for_a_run_with_other_options(outcomes: list[str]) -> None:
    one = sent_offsets()
    for offset, outcome in enumerate(outcomes):
        if outcome == "leave":
            one.leave(TP, offset)
        elif outcome == "take":
            one.take(TP, offset)
    again = sent_offsets(len(outcomes), *read(written(one.left[TP])))
    waiting = {n for n in range(len(outcomes)) if again.waits(TP, n, with_left=True)}
    assert {n for n, outcome in enumerate(outcomes) if outcome == "leave"} <= waiting
    assert not waiting & {n for n, outcome in enumerate(outcomes) if outcome == "take"}
    assert not any(again.waits(TP, n, with_left=False) for n in range(len(outcomes)))
    for n in sorted(waiting):
        again.take(TP, n)
    assert again.left[TP] == []


def test_no_range_of_an_earlier_run_is_extended_and_expired_letters_are_forgotten() -> None:
    one = sent_offsets(10, (3, 5))
    one.leave(TP, 12)
    one.leave(TP, 14)
    assert one.left[TP] == [(3, 5), (12, 15)]
    assert (one.first(TP, with_left=False), one.first(TP, with_left=True)) == (10, 3)
    one = sent_offsets(10, (1, 3), (4, 7), (8, 9))
    one.drop_expired({TP: 5})
    assert one.left[TP] == [(5, 7), (8, 9)]
    one.drop_expired({TP: 20})
    assert one.left[TP] == []


def test_what_does_not_fit_is_left_out_from_the_end(caplog: pytest.LogCaptureFixture) -> None:
    ranges = [(3 * n, 3 * n + 1) for n in range(5000)]
    text = written(ranges)
    kept = read(text)
    assert len(text) <= MAX_METADATA
    assert kept == ranges[: len(kept)]
    assert f"{5000 - len(kept)} ranges" in caplog.text


@pytest.mark.parametrize(
    "metadata", ["", "of another", "1", "1+", "-1+2", "1+2,3+4", "1+2  3+4", "9" * 30 + "+1"]
)
def test_metadata_of_others_names_nothing(metadata: str) -> None:
    assert read(metadata) == []
    assert not hold(read(metadata), 1)


OWN = (("patient-name", b"Ann"), ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"))


def letter(**changes: object) -> Inbound:
    source = replace(inbound(17, b'{"text": "my words"}'), headers=OWN)
    made = dead_letter(source, "ner", Fault("poison", "ValueError in predict, line 3"), "0123456789ab")
    written = Inbound("posts.dead", 0, 5, made.key, made.value, 1_760_000_000.0, tuple(made.headers))
    return replace(written, **changes)  # type: ignore[arg-type]


def test_any_letter_is_described_without_words_of_its_sender_or_terminal_commands() -> None:
    one = describe(letter())
    assert (one.topic, one.partition, one.offset) == ("posts.dead", 0, 5)
    assert (one.stage, one.reason, one.source, one.attempts) == ("ner", "poison", "posts/0@17", 0)
    assert one.written_at == datetime.fromtimestamp(1_760_000_000, UTC)
    assert one.bytes == len(b'{"text": "my words"}')
    content = letter_content(letter(), text=False)
    assert (content["key"], content["headers"]["pv-release"]) == ("key-17", "0123456789ab")
    assert "Ann" not in str(one) + str(content)
    assert "words" not in str(one) + str(content)
    assert letter_content(letter(), text=True)["own_headers"]["patient-name"] == "Ann"
    assert letter_content(letter(), text=True)["value"] == '{"text": "my words"}'
    assert [reason_of(h) for h in ([("pv-reason", b"of a later version")], [])] == ["other"] * 2
    strange = letter(
        headers=(("pv-reason", b"\xff"), ("pv-stage", None)), timestamp=-7e13, value=None, key=None
    )
    one = describe(strange)
    assert (one.reason, one.stage, one.written_at, one.bytes) == ("other", "", None, 0)
    content = letter_content(strange, text=True)
    assert (content["key"], content["value"], content["written"]) == (None, None, None)
    assert printable("\x1b[2Jfine\u202e\nline") == "\\x1b[2Jfine\\u202e\nline"
    content = letter_content(letter(value=b"\x1b]0;title\x07\xff"), text=True)
    assert content["value"] == "\\x1b]0;title\\x07\\xff"


def test_a_letter_waits_until_those_of_its_reason_were_sent_back() -> None:
    assert describe(letter()).waiting
    assert describe(letter(), {("poison", 0): (5, [])}).waiting
    assert not describe(letter(), {("poison", 0): (6, [(3, 5)])}).waiting
    assert describe(letter(), {("poison", 0): (9, [(2, 6)])}).waiting, "a redrive has left it"
    assert describe(letter(), {("bad_record", 0): (6, []), ("poison", 1): (6, [])}).waiting


@pytest.mark.slow
async def test_a_skip_that_running_workers_refuse_writes_no_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SESSION_MARGIN", -6.0)
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}", session_timeout=6)
        letters = TopicPartition("questions.dead", 0)
        async with AIOKafkaProducer(**settings.client()) as producer:
            sent = await producer.send_and_wait("questions", b"1", key=b"k")
            await producer.partitions_for(letters.topic)
        worker = AIOKafkaConsumer(
            "questions",
            **settings.client(),
            group_id=group_id(settings, "summarization"),
            enable_auto_commit=False,
        )
        async with worker:
            for _ in range(2):
                with pytest.raises(TopicsError, match="workers of the stage summarization are running"):
                    await skip(settings, QUESTIONS, sent.partition, 0, "summarization")
            assert await worker.end_offsets([letters]) == {letters: 0}


@pytest.mark.slow
async def test_a_partition_that_the_topic_lacks_is_refused_before_anything_waits_for_it() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(broker=f"kafka://{broker.bootstrap}")
        async with AIOKafkaProducer(**settings.client()) as producer:
            for name in (QUESTIONS.name, QUESTIONS.dead_letters.name):
                await producer.partitions_for(name)
        with pytest.raises(TopicsError, match="questions has no partition 4: it has 0 to 3"):
            await skip(settings, QUESTIONS, 4, 0, "summarization")
