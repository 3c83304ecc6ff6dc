"""Fuzzed records through a real Apache Kafka: does each that the broker accepts come out exactly one way?

A worker runs all five stages with stub models. Fuzzed records are sent to the three input topics as any
client may send them; some the broker refuses. Every other must be a final record, a deletion that is passed
on, or a dead letter of some stage, found by its place on the input topic; or a drop that is counted.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from confluent_kafka import Producer

from benchmarks.fuzz.records import NOW, draw_pool, fuzzed
from benchmarks.fuzz.stubs import stub
from benchmarks.machine import print_and_write, provenance
from streams import metrics
from streams.agents.pipeline import FINAL_TOPICS, STAGES, final_of, stage_named
from streams.dead_letters.headers import place_of
from streams.records import Inbound
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.topics import CONSUMED, INPUTS
from streams.worker import Worker
from tests.integration import processes
from tests.integration.kafka_server import own_kafka
from tests.integration.workers.test_hostile_records import keep_keyless
from training.common.program_help import run_program

PARTITIONS = 4
#: Seconds until all records must have come out, and between two looks.
RUN_SECONDS, LOOK_SECONDS = 900.0, 5.0
Place = tuple[str, str, int, int]
"""Final topic; and topic, partition and offset of a record on an input topic. A question has two."""


class Sent:
    """What was sent: the places of the records that the broker accepted."""

    def __init__(self) -> None:
        self.places: set[Place] = set()
        self.dropped: set[Place] = set()
        """Those without key and value."""
        self.refused: Counter[str] = Counter()

    def send(self, bootstrap: str, records: Iterator[tuple[str, Inbound]], rng: random.Random) -> None:
        # One record in each batch: a broker refuses all of a batch for one.
        producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 1})
        for topic, record in records:
            # What is older than the topic's retention would be deleted at once.
            usual = record.timestamp == NOW or not math.isfinite(record.timestamp)
            at = 0 if usual else round(record.timestamp * 1000)
            try:
                producer.produce(
                    topic, value=record.value, key=record.key, partition=rng.randrange(PARTITIONS),
                    timestamp=at, headers=list(record.headers), on_delivery=self._delivered,
                )  # fmt: skip
            except (UnicodeError, ValueError, OverflowError) as error:
                self.refused[f"client: {type(error).__name__}"] += 1
            producer.poll(0)
        assert producer.flush(120) == 0

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused[f"broker: {error.name()}"] += 1
            return
        for final in FINAL_TOPICS[message.topic()]:
            place = (final.name, message.topic(), message.partition(), message.offset())
            self.places.add(place)
            if message.key() is None and message.value() is None:
                self.dropped.add(place)


def records(n: int, seed: int, examples: int) -> Iterator[tuple[str, Inbound]]:
    """`n` fuzzed records of the input topics in turn."""
    for i, topic in enumerate(INPUTS):
        pool = draw_pool(topic.name, seed, examples)
        rng = random.Random(f"{seed}/{topic.name}")
        for record, _ in fuzzed(topic.name, pool, rng, n // len(INPUTS) + (i < n % len(INPUTS))):
            yield topic.name, record


def outcomes(bootstrap: str) -> dict[Place, set[str]]:
    """The outcomes of every place that has one, as far as the topics have them now."""
    found: dict[Place, set[str]] = {}
    for topic in {t.name for finals in FINAL_TOPICS.values() for t in finals}:
        for message in processes.read_all(bootstrap, topic):
            outcome = "tombstone" if message.value is None else "output"
            found.setdefault((topic, *_origin(message)), set()).add(outcome)
    for source in CONSUMED:
        for message in processes.read_all(bootstrap, source.dead_letters.name):
            headers = dict(message.headers)
            reason, stage = (headers[name].decode() for name in ("pv-reason", "pv-stage"))
            place = (final_of(stage_named(stage)).name, *_place(source.name, message))
            found.setdefault(place, set()).add(f"dead: {reason}")
    return found


def _origin(message: Any) -> tuple[str, int, int]:
    if message.value is None:
        topic, partition, offset = dict(message.headers)["origin"].decode().split("/")
        return topic, int(partition), int(offset)
    origin = orjson.loads(message.value)["origin"]
    return origin["topic"], origin["partition"], origin["offset"]


def _place(source: str, letter: Any) -> tuple[str, int, int]:
    """On the input topic, of a dead letter of any stage."""
    if source not in {t.name for t in INPUTS}:
        return _origin(letter)
    place = place_of(letter.headers)
    assert place is not None
    return source, place.partition, place.offset


async def worked_off(settings: Settings, sent: Sent) -> dict[Place, set[str]]:
    """The outcomes once every record has one, or after RUN_SECONDS. Raises where the worker ends."""
    worker = Worker(STAGES, settings)
    worker.handles |= {stage.name: Handle(stub(stage.name)) for stage in STAGES}
    found: dict[Place, set[str]] = {}
    async with worker.running():
        with suppress(TimeoutError):
            async with asyncio.timeout(RUN_SECONDS):
                while not sent.places - sent.dropped <= found.keys():
                    await asyncio.sleep(LOOK_SECONDS)
                    found = await asyncio.to_thread(outcomes, settings.bootstrap[0])
    return found


def dropped() -> int:
    """Records without key and value that the stages have counted."""
    labels = ({"stage": stage.name, "outcome": "dropped"} for stage in STAGES)
    return int(sum(metrics.REGISTRY.get_sample_value("pv_records_total", one) or 0 for one in labels))


def main(
    n: Annotated[int, typer.Option("--records", help="number of records")] = 10_000,
    seed: Annotated[int, typer.Option(help="seed of the records")] = 20261123,
    examples: Annotated[int, typer.Option(help="records drawn by hypothesis for each topic")] = 500,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    started = time.monotonic()
    sent = Sent()
    with own_kafka() as kafka:
        settings = Settings(broker=f"kafka://{kafka.bootstrap}", http_port=0, session_timeout=60)
        processes.create_topics(settings)
        for topic in INPUTS:
            keep_keyless(kafka.bootstrap, topic.name)
        sent.send(kafka.bootstrap, records(n, seed, examples), random.Random(seed))
        found = asyncio.run(worked_off(settings, sent))
    counts = Counter(outcome for all_ in found.values() for outcome in all_)
    figures = {
        "records": n,
        "seed": seed,
        "accepted": len(sent.places),
        **{f"refused by the {name}": count for name, count in sorted(sent.refused.items())},
        "lost": len(sent.places - sent.dropped - found.keys()),
        "two_outcomes": sum(len(all_) > 1 for all_ in found.values()),
        "of_no_record": len(found.keys() - sent.places),
        "dropped_but_not_counted": len(sent.dropped) - dropped(),
        **{name: count for name, count in sorted(counts.items())},
        "dropped": len(sent.dropped),
        "seconds": round(time.monotonic() - started, 1),
        **provenance("fuzz.broker"),
    }
    print_and_write(figures, result)
    errors = ("lost", "two_outcomes", "of_no_record", "dropped_but_not_counted")
    raise typer.Exit(1 if any(figures[name] for name in errors) else 0)


if __name__ == "__main__":
    run_program(main)
