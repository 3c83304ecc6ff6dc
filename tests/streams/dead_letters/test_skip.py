"""`pvstream skip` while workers of the stage run."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.broker.embedded import EmbeddedBroker
from streams.dead_letters import skip as module
from streams.dead_letters.skip import skip
from streams.settings import Settings
from streams.topics import QUESTIONS, TopicsError, group_id


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
