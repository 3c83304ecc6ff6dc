"""`pvstream skip` on a real Kafka: one record goes to the dead letters, and nothing else is passed over."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaProducer

from streams.dead_letters.skip import skip
from streams.settings import Settings
from streams.topics import QUESTIONS, TopicsError
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site

pytestmark = pytest.mark.kafka


def test_a_record_that_stops_a_stage_is_moved_to_the_dead_letters(tiny_site: Site) -> None:
    site = tiny_site
    site.env["PV_SESSION_TIMEOUT"] = "6"
    key = b"one-key"
    site.produce("questions", [(key, b"%d" % i) for i in range(3)])
    (partition,) = {m.partition for m in site.read_all("questions")}

    def skip(offset: int, stage: str = "summarization") -> tuple[int, str]:
        answer = processes.forked_command(
            "skip", "questions", str(partition), str(offset), "--group", stage, env=site.env
        )
        return answer.returncode, answer.stdout + answer.stderr

    code, text = skip(0, "relation")
    assert (code, "reads sentences.tagged, not questions" in text) == (2, True), text
    code, text = skip(1)
    assert (code, "1 records before offset 1 are not processed yet" in text) == (1, True)
    code, text = skip(0)
    assert (code, "moved to questions.dead" in text) == (0, True), text
    code, text = skip(0)
    assert (code, "has passed offset 0 already: it continues at 1" in text) == (1, True)
    code, text = skip(7)
    assert (code, "has no offset 7: it holds 0 to 2" in text) == (1, True)
    (letter,) = site.read_all("questions.dead")
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (key, b"0")
    assert (headers["pv-reason"], headers["pv-offset"]) == (b"skipped", b"0")
    with site.running("worker", "--stage", "summarization"):
        site.wait_count(3, "questions.dead")
        code, text = skip(2)
        assert code == 1
    letters = site.read_all("questions.dead")
    assert sorted(m.value for m in letters) == [b"0", b"1", b"2"]


def test_offsets_that_hold_no_record_are_passed_over(kafka: LocalKafka) -> None:
    settings = Settings(broker=f"kafka://{kafka.bootstrap}")
    processes.create_topics(settings)

    async def produce() -> list[int]:
        """A record, an aborted transaction and two records; the offsets of the three."""
        client = AIOKafkaProducer(**settings.client(), transactional_id="test")
        async with client as producer:
            offsets = []
            for values in ([b"0"], [b"aborted"], [b"1", b"2"]):
                with suppress(InterruptedError):
                    async with producer.transaction():
                        sent = [
                            await producer.send_and_wait("questions", v, key=b"k", partition=0)
                            for v in values
                        ]
                        if values == [b"aborted"]:
                            raise InterruptedError
                        offsets += [one.offset for one in sent]
        return offsets

    async def skip_all() -> None:
        first, second, third = await produce()
        assert await skip(settings, QUESTIONS, 0, first, "summarization")
        with pytest.raises(TopicsError, match="are not processed yet"):
            await skip(settings, QUESTIONS, 0, third, "summarization")
        assert await skip(settings, QUESTIONS, 0, second, "summarization")

    asyncio.run(skip_all())
    assert [m.value for m in processes.read_all(kafka.bootstrap, "questions.dead")] == [b"0", b"1"]
