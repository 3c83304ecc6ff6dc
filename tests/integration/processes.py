"""pvstream as its users run it: processes with an environment, and a client that looks at the topics."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

ROOT = Path(__file__).parent.parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(bootstrap: str, port: int, **more: str) -> dict[str, str]:
    """What a worker needs; commits are quick so that a test of a stop does not wait for them."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PV_")}
    return own | {"PV_BROKER": f"kafka://{bootstrap}", "PV_HTTP_PORT": str(port), **more}


def command(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a pvstream command to its end, bounded."""
    return subprocess.run(
        [sys.executable, "-m", "streams", *arguments],
        env=env, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@contextmanager
def running(*arguments: str, env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A pvstream command in the background; killed by its pid at the end where it still runs."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "streams", *arguments], env=env, cwd=ROOT, stdout=file, stderr=file
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)


def wait_until(true: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Polls, bounded; fails the test saying what did not happen."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def produce(bootstrap: str, topic: str, records: Iterable[tuple[bytes, bytes]]) -> None:
    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
        await producer.start()
        try:
            await asyncio.gather(
                *[await producer.send(topic, key=key, value=value) for key, value in records]
            )
        finally:
            await producer.stop()

    asyncio.run(send())


def read_all(bootstrap: str, *topics: str) -> list[Any]:
    """Every message that is in the topics now."""

    async def read() -> list[Any]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
        await consumer.start()
        try:
            found = []
            for topic in topics:
                partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()]
                if not partitions:
                    await consumer._client.add_topic(topic)
                    partitions = [
                        TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic) or ()
                    ]
                consumer.assign(partitions)
                ends = await consumer.end_offsets(partitions)
                for tp in partitions:
                    await consumer.seek_to_beginning(tp)
                for tp in partitions:
                    while await consumer.position(tp) < ends[tp]:
                        batch = await consumer.getmany(tp, timeout_ms=1000)
                        found += [m for messages in batch.values() for m in messages]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(read())


def count(bootstrap: str, *topics: str) -> int:
    """Messages in the topics, by their end offsets (nothing is deleted in a test)."""

    async def ask() -> int:
        consumer = AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, group_id=None)
        await consumer.start()
        try:
            partitions = [
                TopicPartition(t, p) for t in topics for p in consumer.partitions_for_topic(t) or ()
            ]
            return sum((await consumer.end_offsets(partitions)).values())
        finally:
            await consumer.stop()

    return asyncio.run(ask())
