"""pvstream as its users run it: processes with an environment, and a client that looks at the topics."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.group import LeaveGroupRequest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from streams import topics
from streams.settings import Settings
from tests.integration.fork_server import ForkedProcess

ROOT = Path(__file__).parent.parent.parent
#: Seconds for one request to a broker, for a command, and for a stop.
REQUEST_S, COMMAND_S, STOP_S = 10.0, 400.0, 30.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports(n: int) -> int:
    """The first of `n` free ports, one behind the other."""
    for _ in range(50):
        first = free_port()
        with suppress(OSError, OverflowError), ExitStack() as probes:
            for port in range(first, first + n):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError(f"no {n} free ports")


def environment(bootstrap: str, port: int, **more: str) -> dict[str, str]:
    """What a process needs to know, without the PV_* of whoever runs the tests. Its state is next to its
    store.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("PV_")}
    if "PV_STORE" in more:
        own["PV_STATE"] = str(Path(more["PV_STORE"]).with_name("state"))
        own["PV_DATABASE"] = str(Path(more["PV_STORE"]).with_name("events.duckdb"))
    own["PV_JUDGE"] = os.environ.get("PV_JUDGE", "off")
    return own | {"PV_BROKER": f"kafka://{bootstrap}", "PV_HTTP_PORT": str(port), **more}


class Running(Protocol):
    """What the tests need of a process: a subprocess.Popen has it."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...
    def send_signal(self, which: signal.Signals, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def command(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a pvstream command to its end, bounded, in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "streams", *arguments],
        env=env, cwd=ROOT, capture_output=True, text=True, timeout=COMMAND_S, check=False,
    )  # fmt: skip


def forked_command(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The same in a process that is forked (see fork_server.py)."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = ForkedProcess(arguments, env, out, err)
        try:
            code = process.wait(COMMAND_S)
        finally:
            process.kill()
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


def started(*arguments: str, env: dict[str, str], log: Path, forked: bool = False) -> Running:
    """A pvstream command in the background, forked or in a new process; `log` gets its output."""
    log.touch()
    if forked:
        return ForkedProcess(arguments, env, log, log)
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "streams", *arguments], env=env, cwd=ROOT, stdout=file, stderr=file
        )


@contextmanager
def running(*arguments: str, env: dict[str, str], log: Path, forked: bool = False) -> Iterator[Running]:
    """The same for the time of the block. At its end the process is asked to stop, so that it leaves its
    consumer groups, and killed where the test has failed or it does not stop in time.
    """
    process = started(*arguments, env=env, log=log, forked=forked)
    try:
        yield process
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
    finally:
        process.kill()
        process.wait(STOP_S)


def runs(pid: int) -> bool:
    """Whether a process runs; where nobody waits for it, it stays as a zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until(true: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Polls, bounded; fails the test saying what did not happen."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)


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


def read_all(bootstrap: str, *names: str) -> list[Any]:
    """Every message that is in the topics now."""

    async def read() -> list[Any]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
        await consumer.start()
        try:
            found = []
            for topic in names:
                partitions = [
                    aiokafka.TopicPartition(topic, p)
                    for p in admin(bootstrap).list_topics(timeout=REQUEST_S).topics[topic].partitions
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


def create_topics(settings: Settings) -> None:
    """Creates all topics and waits until the broker lists them and every partition has a leader."""
    asyncio.run(topics.create(settings))
    bootstrap, names = settings.bootstrap[0], {t.name for t in topics.TOPICS}
    client = admin(bootstrap)

    def are_listed() -> bool:
        try:
            return names <= set(client.list_topics(timeout=REQUEST_S).topics)
        except KafkaException:
            # A busy broker may answer late.
            return False

    wait_until(are_listed, "all topics are listed")
    count(bootstrap, *names)


def count(bootstrap: str, *names: str) -> int:
    """Messages in the topics, by their end offsets (nothing is deleted in a test). A broker that has just
    started, or created a topic, may refuse: then it is asked again for a minute or so, by a client that does
    not remember the leaders of topics of the same names that were deleted.
    """
    end = time.monotonic() + 4 * REQUEST_S
    while True:
        try:
            return _count(admin(bootstrap), names)
        except KafkaException:
            if time.monotonic() > end:
                raise
            admin.cache_clear()
        time.sleep(0.05)


def _count(client: AdminClient, names: Sequence[str]) -> int:
    present = client.list_topics(timeout=REQUEST_S).topics
    partitions = [TopicPartition(t, p) for t in names if t in present for p in present[t].partitions]
    if not partitions:
        return 0
    latest: Any = dict.fromkeys(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    answers = client.list_offsets(latest, request_timeout=REQUEST_S)
    return sum(answer.result().offset for answer in answers.values())


@cache
def admin(bootstrap: str) -> AdminClient:
    """One client for each broker: a new one for each question costs ten times as much as the question."""
    return AdminClient(
        {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 500, "log_level": 2}  # 2: critical only
    )


@contextmanager
def granted(bootstrap: str, rights: Sequence[AclBinding]) -> Iterator[None]:
    """Rights for the time of the block, which begins when the broker has them: the answer to a request is
    sent when its controller has.
    """
    client, wanted = admin(bootstrap), set(rights)
    # A None that means any is missing in the types.
    made: Any = AclBindingFilter
    any_resource = (ResourceType.ANY, None, ResourcePatternType.ANY)
    any_operation = (None, AclOperation.ANY, AclPermissionType.ANY)
    of_all = made(*any_resource, None, *any_operation)
    own = [made(*any_resource, who, *any_operation) for who in {right.principal for right in rights}]

    def present() -> set[AclBinding]:
        return wanted & set(client.describe_acls(of_all, request_timeout=REQUEST_S).result())

    for created in client.create_acls(list(rights)).values():
        created.result()
    wait_until(lambda: present() == wanted, "the rights are there", 180)
    try:
        yield
    finally:
        for deleted in client.delete_acls(own).values():
            deleted.result()
        wait_until(lambda: not present(), "the rights are gone", 180)


def remove_everything(bootstrap: str, seconds: float = 3.0) -> None:
    """Deletes all consumer groups and topics; raises AssertionError where that takes longer, as it does
    while a process uses them.
    """
    client = admin(bootstrap)

    def no_groups() -> bool:
        if groups := leave_for_all(bootstrap):
            _deleted(client.delete_consumer_groups(groups, request_timeout=REQUEST_S))
        return not groups

    def no_topics() -> bool:
        names = [t for t in client.list_topics(timeout=REQUEST_S).topics if not t.startswith("__")]
        _deleted(client.delete_topics(names, request_timeout=REQUEST_S) if names else {})
        return not names

    wait_until(no_groups, "no consumer group is left", seconds)
    wait_until(no_topics, "no topic is left", seconds)


def leave_for_all(bootstrap: str) -> list[str]:
    """Leaves all groups on behalf of their members, and returns the groups: a member that was killed or has a
    name of its own would stay until its session has ended.
    """
    client, requests = admin(bootstrap), []
    groups = [g.group_id for g in client.list_consumer_groups(request_timeout=REQUEST_S).result().valid]
    for group, answer in client.describe_consumer_groups(groups).items() if groups else ():
        with suppress(KafkaException):
            requests += [LeaveGroupRequest(group, member.member_id) for member in answer.result().members]

    async def leave() -> None:
        client = AIOKafkaClient(bootstrap_servers=bootstrap)
        await client.bootstrap()
        try:
            (broker,) = client.cluster.brokers()
            for request in requests:
                await client.send(broker.nodeId, request)
        finally:
            await client.close()

    if requests:
        asyncio.run(leave())
    return groups


def _deleted(answers: Mapping[str, Future[None]]) -> None:
    """Waits for the answers; what could not be deleted is still listed the next time."""
    for answer in answers.values():
        with suppress(KafkaException):
            answer.result()
