"""What the commands tail and topics print."""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import aclosing, suppress
from itertools import islice
from typing import Any

import orjson
from rich.console import Console

from streams import topics
from streams.broker.consumer import kafka_consumer, running_client
from streams.broker.ranges import read_chunks
from streams.broker.topic_check import differences
from streams.cli.display import plain_text, render
from streams.cli.terminal import Table, progress_bar, say
from streams.codec import BadRecord, decode_any
from streams.order import Latest, read_revision
from streams.records import Inbound
from streams.settings import Settings
from streams.topics import Topic


async def run_tail(
    console: Console, topic: Topic[Any], settings: Settings, *, beginning: bool, count: int, json: bool
) -> None:
    """Prints records until there were `count` of them (0: no limit), or until Ctrl-C."""
    await topics.require(settings, (topic,))
    reset = "earliest" if beginning else "latest"
    consumer = kafka_consumer(settings, topic.name, group_id=None, auto_offset_reset=reset)
    printed = 0
    with suppress(CancelledError):
        async with running_client(consumer):
            async for message in consumer:
                _print(console, topic, message, json=json)
                printed += 1
                if count and printed >= count:
                    break


async def run_until_end(
    console: Console, topic: Topic[Any], settings: Settings, *, count: int, json: bool
) -> None:
    """Prints the records that are in the topic at the start, at most `count` of them (0: no limit)."""
    printed = 0
    chunks = read_chunks(settings, topic, "beginning", "end", lambda done, total: None)
    async with aclosing(chunks):
        async for records in chunks:
            for record in records:
                _print(console, topic, record, json=json)
                printed += 1
                if printed == count:
                    return


async def run_latest(
    console: Console, topic: Topic[Any], settings: Settings, *, count: int, json: bool
) -> None:
    """Prints the latest record of each key in the topic up to its present end, at most `count` of them (0: no
    limit), in the order of their last change. Deleted keys are left out.
    """
    latest: Latest[Inbound] = Latest()
    with progress_bar(f"reading {topic.name}") as progress:
        async for records in read_chunks(settings, topic, "beginning", "end", progress):
            for record in records:
                _offer(console, topic, record, latest)
    for _, record in islice(latest.items(), count or None):
        _print(console, topic, record, json=json)


def _offer(console: Console, topic: Topic[Any], record: Inbound, latest: Latest[Inbound]) -> None:
    """Offers a record to the upsert; one without a key replaces no other."""
    key = record.key if record.key is not None else (record.partition, record.offset)
    try:
        revision = read_revision(topic, record)
    except BadRecord:
        _print_message(console, topic, record)
        return
    latest.offer(key, revision, record if record.value is not None else None)


def _print(console: Console, topic: Topic[Any], message: Any, *, json: bool) -> None:
    if json:
        console.out(_json_line(message), highlight=False)
    else:
        _print_message(console, topic, message)


def _json_line(message: Any) -> str:
    """The value unchanged; where there is none, as of a deletion, an object that says so."""
    if message.value is not None:
        return str(message.value.decode(errors="replace"))
    key = None if message.key is None else message.key.decode(errors="replace")
    return orjson.dumps({"key": key, "value": None}).decode()


def _print_message(console: Console, topic: Topic[Any], message: Any) -> None:
    place = f"{topic.name}/{message.partition}@{message.offset}"
    if topic.record is None:
        headers = ", ".join(f"{k}={(v or b'').decode(errors='replace')}" for k, v in message.headers)
        key = (message.key or b"").decode(errors="replace")
        console.print(plain_text(f"{place} {key} {headers}"))
        return
    if message.value is None:
        key = (message.key or b"").decode(errors="replace")
        console.print(plain_text(f"{place} {key} deleted"))
        return
    try:
        console.print(render(topic.name, decode_any(topic.kinds, message.value)))
    except BadRecord as error:
        say(f"{place}: not a valid record: {error}", console)


async def run_topics(console: Console, settings: Settings, *, create: bool) -> bool:
    """Prints each topic with its settings and its state on the broker, and the differences; `create` first
    creates the missing ones. Returns whether the pipeline can work with all of them.
    """
    created = await topics.create(settings) if create else []
    partitions = await topics.partition_counts(settings)
    table = Table("topic", "partitions", "cleanup", "retention", "on the broker")
    for topic in topics.TOPICS:
        name, wanted = topic.name, topic.partitions or settings.partitions
        state = f"{partitions[name]} partitions" if name in partitions else "missing"
        retention = (
            "unlimited"
            if topic.compacted or topic.retention_ms < 0
            else f"{topic.retention_ms // topics.DAY} days"
        )
        state += " (created)" if name in created else ""
        cells = (str(wanted), topic.cleanup, retention, state)
        table.add_row(topics.broker_name(settings, name), *cells)
    console.print(table)
    if await topics.is_embedded(settings):
        say("an embedded broker: its topics cannot be configured", console)
        return True
    different = await differences(settings)
    for difference in different:
        say(str(difference), console)
    return not any(d.problem for d in different)
