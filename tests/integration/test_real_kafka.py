"""What must hold on a real broker: nothing lost, repeats that are repeats, a clean stop, clear errors."""

from __future__ import annotations

import asyncio
import signal
from collections import defaultdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streams.topics import TOPICS
from tests.integration import processes
from tests.integration.kafka_server import PASSWORD, USER, LocalKafka
from tests.same import same_records

pytestmark = pytest.mark.kafka

SAMPLES = processes.ROOT / "streams/samples"


def sample(topic: str, n: int) -> list[tuple[bytes, bytes]]:
    """n reports with ids of their own, made of the samples' texts in turn."""
    texts = [orjson.loads(line)["text"] for line in (SAMPLES / f"{topic}.jsonl").read_bytes().splitlines()]
    return [
        (f"{topic}-{i}".encode(), orjson.dumps({"id": f"{topic}-{i}", "text": texts[i % len(texts)]}))
        for i in range(n)
    ]


def by_record_id(messages: list[Any]) -> dict[str, list[dict[str, Any]]]:
    grouped = defaultdict(list)
    for message in messages:
        record = orjson.loads(message.value)
        assert message.key == record["id"].encode()
        grouped[record["record_id"]].append(record)
    return grouped


@pytest.mark.slow
def test_a_kill_in_the_middle_loses_nothing_and_repeats_only_the_same(
    own_kafka: LocalKafka, tmp_path: Path
) -> None:
    wanted = {"posts": 360, "sentences": 180, "questions": 60}
    total = sum(wanted.values())
    port = processes.free_port()
    env = processes.environment(own_kafka.bootstrap, port)
    assert processes.command("topics", "--create", env=env).returncode == 0
    for topic, n in wanted.items():
        processes.produce(own_kafka.bootstrap, topic, sample(topic, n))

    def out() -> int:
        return processes.count(own_kafka.bootstrap, "events", "summaries")

    def reached(n: float) -> bool:
        return out() >= n

    killed_at = []
    for share in (0.25, 0.6):
        with processes.running("up", env=env, log=tmp_path / "up.log") as process:
            enough = partial(reached, share * total)
            processes.wait_until(enough, f"{share:.0%} of the records", 240)
            process.send_signal(signal.SIGKILL)
            process.wait(10)
            killed_at.append(out())
    assert all(n < total for n in killed_at), f"killed too late to prove anything: {killed_at}"

    def ids() -> set[str]:
        found = processes.read_all(own_kafka.bootstrap, "events", "summaries")
        return {orjson.loads(m.value)["id"] for m in found}

    everything = {f"{topic}-{i}" for topic, n in wanted.items() for i in range(n)}
    with processes.running("up", env=env, log=tmp_path / "up.log") as process:
        processes.wait_until(lambda: out() >= total and ids() == everything, "every record", 240)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0

    sinks = ("mentions", "sentences.expanded", "events", "summaries")
    records = by_record_id(processes.read_all(own_kafka.bootstrap, *sinks))
    repeats = 0
    for same in records.values():
        repeats += len(same) - 1
        for again in same[1:]:
            assert same_records(same[0], again), "a repeat decides otherwise"
    assert len({r["id"] for group in records.values() for r in group}) == total
    assert processes.count(own_kafka.bootstrap, *(f"{t}.dead" for t in wanted)) == 0
    print(f"killed at {killed_at} of {total} results, {repeats} repeats over all topics")


def test_a_stop_finishes_and_acks_what_was_taken(own_kafka: LocalKafka, tmp_path: Path) -> None:
    port = processes.free_port()
    env = processes.environment(own_kafka.bootstrap, port, PV_BATCH="16")
    assert processes.command("topics", "--create", env=env).returncode == 0
    processes.produce(own_kafka.bootstrap, "posts", sample("posts", 400))

    def out() -> int:
        return processes.count(own_kafka.bootstrap, "mentions")

    with processes.running("worker", "--stage", "ner", env=env, log=tmp_path / "1.log") as worker:
        processes.wait_until(lambda: out() > 0, "a first result")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    stopped_at = out()
    assert 0 < stopped_at < 400, "stopped in the middle"
    with processes.running("worker", "--stage", "ner", env=env, log=tmp_path / "2.log") as worker:
        processes.wait_until(lambda: out() >= 400, "the rest")
        assert processes.is_ready(port)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    records = by_record_id(processes.read_all(own_kafka.bootstrap, "mentions"))
    assert len(records) == 400
    assert all(len(same) == 1 for same in records.values()), "a clean stop repeats nothing"


def test_bad_bytes_in_a_topic_become_dead_letters_and_the_rest_comes_out(
    own_kafka: LocalKafka, tmp_path: Path
) -> None:
    env = processes.environment(own_kafka.bootstrap, processes.free_port())
    assert processes.command("topics", "--create", env=env).returncode == 0
    bad = [
        b"",
        b"no json",
        b"\xff\xfe\xfd",
        b'{"id": 1, "text": "x"}',
        b'{"id": "a", "text": "\\ud83d"}',
        b"[" * 5000,
    ]
    good = sample("questions", 20)
    mixed = [*good[:10], *((f"bad-{i}".encode(), value) for i, value in enumerate(bad)), *good[10:]]
    processes.produce(own_kafka.bootstrap, "questions", mixed)
    with processes.running("worker", "--stage", "summarization", env=env, log=tmp_path / "log"):
        processes.wait_until(
            lambda: processes.count(own_kafka.bootstrap, "summaries", "questions.dead") == len(mixed),
            "all of them",
        )
    for message in processes.read_all(own_kafka.bootstrap, "summaries"):
        received = datetime.fromisoformat(orjson.loads(message.value)["received_at"])
        assert abs(received.timestamp() - message.timestamp / 1000) < 300, "the source record's own time"
    dead = processes.read_all(own_kafka.bootstrap, "questions.dead")
    assert sorted(m.value for m in dead) == sorted(bad)
    for message in dead:
        headers = {name: value.decode() for name, value in message.headers}
        assert headers["pv-reason"] == "bad_record"
        assert headers["pv-stage"] == "summarization"
        assert headers["pv-topic"] == "questions"


def test_every_client_speaks_tls_and_gives_its_password(secure_kafka: LocalKafka, tmp_path: Path) -> None:
    env = processes.environment(
        secure_kafka.secure_bootstrap,
        processes.free_port(),
        PV_SECURITY="SASL_SSL",
        PV_SASL_MECHANISM="PLAIN",
        PV_SASL_USERNAME=USER,
        PV_SASL_PASSWORD=PASSWORD,
        PV_SSL_CAFILE=str(secure_kafka.certificate),
    )
    refused = processes.command("topics", env=env | {"PV_SASL_PASSWORD": "another"})
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    created = processes.command("topics", "--create", env=env)
    assert created.returncode == 0, created.stderr
    ingested = processes.command("ingest", "questions", str(SAMPLES / "questions.jsonl"), env=env)
    assert ingested.returncode == 0, ingested.stderr
    n = len((SAMPLES / "questions.jsonl").read_bytes().splitlines())
    with processes.running("worker", "--stage", "summarization", env=env, log=tmp_path / "log") as worker:
        # Looked at through the open listener, so that the test's own client proves nothing.
        processes.wait_until(
            lambda: processes.count(secure_kafka.bootstrap, "summaries") == n, "all summaries"
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    assert PASSWORD not in (tmp_path / "log").read_text()


def test_a_worker_says_in_one_line_which_topics_are_missing(own_kafka: LocalKafka) -> None:
    env = processes.environment(own_kafka.bootstrap, processes.free_port())
    answer = processes.command("worker", "--stage", "summarization", env=env)
    assert answer.returncode == 1
    last = answer.stderr.strip().splitlines()[-1]
    assert "questions" in answer.stderr and "summaries" in answer.stderr
    assert "pvstream topics --create" in answer.stderr.replace("\n", " ")
    assert "Traceback" not in answer.stderr
    assert last


def test_topics_are_created_as_the_table_says_and_only_once(own_kafka: LocalKafka) -> None:
    env = processes.environment(own_kafka.bootstrap, processes.free_port())
    assert processes.command("topics", "--create", env=env).returncode == 0
    again = processes.command("topics", "--create", env=env)
    assert again.returncode == 0
    assert "created" not in again.stdout and "missing" not in again.stdout

    async def described() -> tuple[dict[str, int], dict[str, dict[str, str]]]:
        admin = AIOKafkaAdminClient(bootstrap_servers=own_kafka.bootstrap)
        await admin.start()
        try:
            found = await admin.describe_topics([t.name for t in TOPICS])
            resources = [ConfigResource(ConfigResourceType.TOPIC, t.name) for t in TOPICS]
            answers = await admin.describe_configs(resources)
        finally:
            await admin.close()
        configs = {r[3]: {c[0]: c[1] for c in r[4]} for a in answers for r in a.resources}
        return {t["topic"]: len(t["partitions"]) for t in found}, configs

    partitions, configs = asyncio.run(described())
    for topic in TOPICS:
        assert partitions[topic.name] == topic.partitions
        assert configs[topic.name].items() >= topic.configuration().items(), topic.name


def test_ingest_sends_good_lines_refuses_others_by_number_and_tail_shows_them(
    own_kafka: LocalKafka, tmp_path: Path
) -> None:
    env = processes.environment(own_kafka.bootstrap, processes.free_port())
    assert processes.command("topics", "--create", env=env).returncode == 0
    file = tmp_path / "posts.jsonl"
    file.write_bytes(b'{"id": "a", "text": "one"}\nno json\n{"id": "b", "text": "two"}\n')
    answer = processes.command("ingest", "posts", str(file), env=env)
    assert answer.returncode == 1
    assert "line 2 refused" in answer.stderr
    assert "2 sent and confirmed, 1 lines refused" in answer.stderr
    shown = processes.command("tail", "posts", "--from-beginning", "--count", "2", "--json", env=env)
    assert {orjson.loads(line)["id"] for line in shown.stdout.splitlines()} == {"a", "b"}
