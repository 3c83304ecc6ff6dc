"""The records of the chaos benchmark: making and sending them, reading the outputs and counting errors."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from models.types import DRUG
from streams.cli.demo.run import samples
from streams.codec import decode
from streams.order import Latest, revision_of
from streams.records import Report
from tests.variants import MARKER

SOURCE, SINK = "posts", "mentions"
PARTITIONS = 4
#: Versions of one report, sent in order under one key.
EDITIONS = 5
#: Records sent at once, so that a worker has several batches to read when it is disturbed.
BURST = 150
#: Id and text of a record.
Record = tuple[str, str]


@dataclass(slots=True)
class Result:
    """The counts of one round; `missing`, `mixed`, `stale` and `repeated_otherwise` must be 0, and
    without a suspension `out_of_order` too.
    """

    number: int
    records: int
    actions: list[str] = field(default_factory=list)
    kills: int = 0
    suspended: int = 0
    published: int = 0
    restarted: int = 0
    """Workers that ended by themselves and were replaced by the supervisor."""
    missing: int = 0
    mixed: int = 0
    """Outputs that another release made than the one they name."""
    stale: int = 0
    """Ids for which the upsert keeps another edition than the last one."""
    out_of_order: int = 0
    """Ids whose editions came out in another order, or whose last output is not the last edition."""
    repeated: int = 0
    """Outputs with the record id of an earlier output and the same bytes."""
    repeated_otherwise: int = 0
    """Outputs with the record id of an earlier output and other bytes."""
    again_after_reload: int = 0
    """Outputs of the same record by another release, with another record id."""
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        # A worker may be suspended between checking that it owns its partitions and sending.
        out_of_order = self.out_of_order and not self.suspended
        return not (self.missing or self.mixed or self.stale or self.repeated_otherwise or out_of_order)


def make_records(rng: random.Random, number: int, n: int) -> list[Record]:
    """Records of round `number`; each id occurs up to EDITIONS times, in order, among the others."""
    ids = [f"{number}-{i}" for i in range(-(-n // EDITIONS))] * EDITIONS
    rng.shuffle(ids)
    texts = [orjson.loads(line)["text"] for line in samples()["posts"].read_bytes().splitlines()]
    edition: Counter[str] = Counter()
    records = []
    for id_ in ids[:n]:
        edition[id_] += 1
        records.append((id_, f"{rng.choice(texts)}\n\n{MARKER}\n\nedition {edition[id_]}"))
    return records


def send(bootstrap: str, records: Sequence[Record], seconds: float) -> None:
    """Sends the records in order and in bursts over `seconds`; waits for every confirmation, also while the
    broker is down.
    """

    async def send_all() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
        await producer.start()
        try:
            pending = []
            for i, (id_, text) in enumerate(records):
                value = orjson.dumps({"id": id_, "text": text})
                pending.append(await producer.send(SOURCE, key=id_.encode(), value=value))
                if i % BURST == BURST - 1:
                    await asyncio.sleep(BURST * seconds / len(records))
            await asyncio.gather(*pending)
        finally:
            await producer.stop()

    asyncio.run(send_all())


class SinkReader:
    """Reads the outputs that were added to the sink since the last call."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._positions: dict[TopicPartition, int] = {}

    async def read_new(self) -> list[dict[str, Any]]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
        await consumer.start()
        try:
            partitions = [TopicPartition(SINK, p) for p in range(PARTITIONS)]
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            outputs = []
            for tp in partitions:
                consumer.seek(tp, self._positions.get(tp, 0))
                while await consumer.position(tp) < ends[tp]:
                    for messages in (await consumer.getmany(tp, timeout_ms=1000)).values():
                        outputs += [orjson.loads(m.value) for m in messages]
                self._positions[tp] = await consumer.position(tp)
            return outputs
        finally:
            await consumer.stop()


def count_errors(
    result: Result, sent: Sequence[Record], outputs: Sequence[Mapping[str, Any]], marks: Mapping[str, str]
) -> None:
    """Compares the outputs of a round with the records sent; `marks`: version to the release's drug name."""
    first: dict[str, Mapping[str, Any]] = {}
    seen: set[Record] = set()
    editions: defaultdict[str, list[int]] = defaultdict(list)
    last: dict[str, int] = {}
    latest: Latest[int] = Latest()
    for output in outputs:
        record = (output["id"], output["text"])
        edition = int(output["text"].rsplit(" ", 1)[1])
        mentions = [m for m in output["mentions"] if m["label"] == DRUG]
        names = {m["generic"] for m in mentions if m["text"].lower() == MARKER}
        result.mixed += names != {marks[output["releases"]["ner"]]}
        if output["record_id"] in first:
            same = output == first[output["record_id"]]
            result.repeated += same
            result.repeated_otherwise += not same
        elif record in seen:
            result.again_after_reload += 1
        else:
            editions[output["id"]].append(edition)
        first.setdefault(output["record_id"], output)
        seen.add(record)
        last[output["id"]] = edition
        latest.offer(output["id"], revision_of(decode(Report, orjson.dumps(output))), edition)
    result.missing = len(set(sent) - seen)
    newest = Counter(id_ for id_, _ in sent)
    result.stale = sum(edition != newest[str(id_)] for id_, edition in latest.items())
    result.out_of_order = sum(
        any(a > b for a, b in itertools.pairwise(order)) or last[id_] != newest[id_]
        for id_, order in editions.items()
    )
