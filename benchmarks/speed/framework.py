"""The time of a stage without its model: an empty model, against bare loops over aiokafka, on a real Kafka.

All read the same posts in batches of 64 and write them with their provenance, confirmed by all replicas, in
one process, in turn. Bare loops are what one would write without Faust: `same_records` decodes, stamps and
encodes with the functions of the stage, `orjson` reads a dictionary, adds to it and writes it, and checks
nothing. Both await the confirmations of a batch while they read the next one, and commit every second; they
know no dead letters, halving, fencing, metrics or watchdog.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson
from aiokafka import AIOKafkaProducer, TopicPartition

from models.loading import Loaded
from streams.app.ports import FIRST_BATCH
from streams.broker.consumer import kafka_consumer, running_client
from streams.cli.demo.run import samples
from streams.codec import encode
from streams.items import decoded
from streams.provenance import Maker, with_provenance
from streams.records import Inbound, Report, TaggedReport, extend
from streams.rollout.handle import Handle
from streams.settings import Settings
from streams.stage import Stage
from streams.topics import MENTIONS, POSTS, broker_name, create
from streams.worker import Worker

VERSION = "0" * 12
#: Records before the measured ones, and after them, so that no loop waits for the last ones.
WARM_UP, SPARE = 2000, 2000
RUN_SECONDS = 120.0
Record = tuple[bytes, bytes]
"""Key and value of the message that is made from a post."""


class Meter:
    """Sees each batch where a model would, and takes the seconds of a record, over `size` of them after the
    first `warm_up`.
    """

    def __init__(self, size: int, warm_up: int = WARM_UP) -> None:
        self.wall = self.cpu = 0.0
        self.is_done = False
        self._size, self._seen, self._warm_up = size, 0, warm_up
        self._from = 0

    def see(self, records: int) -> None:
        self._seen += records
        if not self._from and self._seen >= self._warm_up:
            self._from = self._seen
            self.wall, self.cpu = time.perf_counter(), time.process_time()
        elif self._from and not self.is_done and self._seen >= self._from + self._size:
            n = self._seen - self._from
            self.wall, self.cpu = (time.perf_counter() - self.wall) / n, (time.process_time() - self.cpu) / n
            self.is_done = True

    def predict(self, _: Any, reports: Sequence[Report]) -> list[TaggedReport]:
        """A model that finds nothing."""
        self.see(len(reports))
        return [extend(TaggedReport, report) for report in reports]


async def produce(settings: Settings, lines: Sequence[bytes], n: int) -> None:
    """Writes `n` posts with the texts of the lines."""
    posts, topic = [orjson.loads(line) for line in lines], broker_name(settings, POSTS.name)
    async with running_client(AIOKafkaProducer(**settings.client(), linger_ms=5)) as producer:
        for i in range(n):
            post = posts[i % len(posts)] | {"id": f"r{i}"}
            await producer.send(topic, key=b"r%d" % i, value=orjson.dumps(post))
        await producer.flush()


async def stage(settings: Settings, meter: Meter) -> None:
    """The stage with an empty model, as a worker runs it."""
    worker = Worker((Stage("ner", POSTS, MENTIONS, meter.predict),), settings)
    unused: Any = None
    worker.handles["ner"] = Handle(Loaded("ner", VERSION, "empty", unused, ([], [], 0.0)))
    async with worker.running():
        while not meter.is_done:  # noqa: ASYNC110  it is in another thread
            await asyncio.sleep(0.01)


async def bare(settings: Settings, meter: Meter, make: Callable[[Meter, list[Any]], list[Record]]) -> None:
    """A loop of a consumer and a producer; `make` gives an output for each message of a batch."""
    consumer = kafka_consumer(
        settings,
        POSTS.name,
        group_id=f"bare-{make.__name__}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = AIOKafkaProducer(**settings.client(), linger_ms=5, acks="all")
    async with running_client(consumer), running_client(producer):
        before: list[Awaitable[Any]] = []
        ready: dict[TopicPartition, int] = {}
        done: dict[TopicPartition, int] = {}
        committed = time.monotonic()
        while not meter.is_done:
            found = await consumer.getmany(timeout_ms=1000, max_records=settings.batch)
            messages = [m for own in found.values() for m in own]
            outputs = make(meter, messages)
            sent = [await producer.send(MENTIONS.name, key=key, value=value) for key, value in outputs]
            await asyncio.gather(*before)
            done |= ready
            before, ready = sent, {tp: own[-1].offset + 1 for tp, own in found.items()}
            if done and time.monotonic() - committed > settings.commit_interval:
                await consumer.commit(done)
                committed = time.monotonic()
        await asyncio.gather(*before)


def same_records(meter: Meter, messages: list[Any]) -> list[Record]:
    """The outputs of a batch, made with the functions of the stage."""
    maker = Maker("ner", VERSION, 0)
    inbound = [Inbound(m.topic, m.partition, m.offset, m.key, m.value, m.timestamp / 1000) for m in messages]
    reports = [decoded(POSTS, one).report for one in inbound]
    outputs = meter.predict(None, reports)
    made = [with_provenance(o, r, maker, i) for o, r, i in zip(outputs, reports, inbound, strict=True)]
    return [(one.id.encode(), encode(one)) for one in made]


def dictionaries(meter: Meter, messages: list[Any]) -> list[Record]:
    """The outputs of a batch as unchecked dictionaries with the fields of the record."""
    meter.see(len(messages))
    made = []
    for m in messages:
        post = orjson.loads(m.value)
        post |= {
            "source": m.topic,
            "received_at": datetime.fromtimestamp(m.timestamp / 1000, UTC),
            "releases": {"ner": VERSION},
            "record_id": f"{m.topic}/{post['id']}/ner@{VERSION}",
            "origin": {"topic": m.topic, "partition": m.partition, "offset": m.offset},
            "generations": {"ner": 0},
            "mentions": [],
        }
        made.append((post["id"].encode(), orjson.dumps(post)))
    return made


LOOPS: dict[str, Callable[[Settings, Meter], Awaitable[None]]] = {
    "stage": stage,
    "bare, same functions": partial(bare, make=same_records),
    "bare, dictionaries": partial(bare, make=dictionaries),
}


async def backlog(bootstrap: str, sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    """Medians of some rounds over the records that wait when the empty stage begins, from its first batch to
    its last one. Its topics have names of their own, in which there is nothing else.
    """
    settings = Settings(broker=f"kafka://{bootstrap}", http_port=0, prefix="backlog.")
    await create(settings)
    lines = samples()[POSTS.name].read_bytes().splitlines()
    taken: dict[int, list[Meter]] = {size: [] for size in sizes}
    for i in range(rounds):
        for size in sizes[:: 1 if i % 2 else -1]:
            await produce(settings, lines, size)
            meter = Meter(size - FIRST_BATCH, FIRST_BATCH)
            async with asyncio.timeout(RUN_SECONDS):
                await stage(settings, meter)
            taken[size].append(meter)
    rows = {
        f"{size:,} records": {
            "records_per_second": round(1 / statistics.median(m.wall for m in own)),
            "cpu_microseconds_a_record": round(1e6 * statistics.median(m.cpu for m in own), 1),
        }
        for size, own in taken.items()
    }
    return {"what": "the empty stage, all records waiting", "rounds": rounds, "rows": rows}


async def compared(bootstrap: str, size: int, rounds: int) -> dict[str, Any]:
    """Medians of some rounds over `size` posts each."""
    settings = Settings(broker=f"kafka://{bootstrap}", http_port=0)
    lines = samples()[POSTS.name].read_bytes().splitlines()
    taken: dict[str, list[Meter]] = {name: [] for name in LOOPS}
    for i in range(rounds):
        await produce(settings, lines, WARM_UP + size + SPARE)
        for name in list(LOOPS)[:: 1 if i % 2 else -1]:
            taken[name].append(Meter(size))
            async with asyncio.timeout(RUN_SECONDS):
                await LOOPS[name](settings, taken[name][-1])
    medians = {
        name: (statistics.median(m.wall for m in own), statistics.median(m.cpu for m in own))
        for name, own in taken.items()
    }
    wall, cpu = medians["stage"]
    rows = {
        name: {
            "records_per_second": round(1 / own_wall),
            "cpu_microseconds_a_record": round(1e6 * own_cpu, 1),
            "speed_of_the_stage_to_it": round(own_wall / wall, 2),
            "by_cpu": round(own_cpu / cpu, 2),
        }
        for name, (own_wall, own_cpu) in medians.items()
    }
    return {"records": size, "rounds": rounds, "batch": settings.batch, "rows": rows}
