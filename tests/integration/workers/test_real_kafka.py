"""What must hold on a real broker: nothing lost, repeats that are the same, a clean stop, clear errors.

The stages run tiny releases: none of this depends on what a model answers.
"""

from __future__ import annotations

import asyncio
import signal
from collections import defaultdict
from typing import Any

import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from models.releases.private import PREFIX
from streams import topics
from streams.settings import Settings
from streams.topics import EVENTS, TOPICS
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import SAMPLES, Site, stop
from tests.same import same_records

pytestmark = pytest.mark.kafka


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


def test_a_killed_process_loses_no_record_and_repeats_records_only_unchanged(tiny_site: Site) -> None:
    site = tiny_site
    wanted = {"posts": 360, "sentences": 180, "questions": 60}
    total = sum(wanted.values())
    # Small batches, so that a kill comes between any two steps.
    temporary = site.folder / "temporary"
    temporary.mkdir()
    site.env |= {"PV_BATCH": "4", "TMPDIR": str(temporary)}
    for topic, n in wanted.items():
        site.produce(topic, sample(topic, n))
    ends = ("events", "summaries")
    killed_at = []
    for share, forked in ((0.25, False), (0.6, True)):
        with site.running("up", forked=forked) as process:
            site.wait_count(round(share * total), *ends)
            process.kill()
            process.wait(10)
            processes.leave_for_all(site.kafka.bootstrap)  # otherwise until the end of the session
            killed_at.append(site.count(*ends))
    # A copy of a release that was just being loaded is removed by the next process.
    assert [p.name for p in temporary.glob("pv-*") if not p.name.startswith(PREFIX)] == []
    assert all(n < total for n in killed_at), f"killed too late to prove anything: {killed_at}"

    everything = {f"{topic}-{i}" for topic, n in wanted.items() for i in range(n)}
    with site.running("up") as process:
        site.wait_count(total, *ends)
        processes.wait_until(lambda: {r["id"] for r in site.records(*ends)} == everything, "every record")
        stop(process)

    assert list(temporary.glob("pv-*")) == []
    records = by_record_id(site.read_all("mentions", "sentences.expanded", "sentences.tagged", *ends))
    repeats = 0
    for first, *again in records.values():
        repeats += len(again)
        assert all(same_records(first, one) for one in again), "a repeat has another answer"
    assert len({r["id"] for group in records.values() for r in group}) == total
    assert site.count(*(f"{topic}.dead" for topic in wanted)) == 0
    print(f"killed at {killed_at} of {total} results, {repeats} repeats over all topics")


def test_a_stopping_worker_finishes_and_acknowledges_what_it_has_taken(tiny_site: Site) -> None:
    site = tiny_site
    site.env |= {"PV_BATCH": "4"}
    site.produce("posts", sample("posts", 400))
    with site.running("worker", "--stage", "ner") as worker:
        site.wait_count(1, "mentions")
        stop(worker)
    stopped_at = site.count("mentions")
    assert 0 < stopped_at < 400, "not stopped in the middle"
    with site.running("worker", "--stage", "ner") as worker:
        site.wait_count(400, "mentions")
        assert processes.is_ready(site.port)
        stop(worker)
    records = by_record_id(site.read_all("mentions"))
    assert len(records) == 400
    assert all(len(same) == 1 for same in records.values()), "a clean stop repeats nothing"


def test_a_topic_that_is_created_again_is_read_from_its_beginning(tiny_site: Site) -> None:
    """Also by a worker that has not seen it missing, as one that was suspended."""
    site, client = tiny_site, processes.admin(tiny_site.kafka.bootstrap)
    with site.running("worker", "--stage", "ner") as worker:
        site.produce("posts", sample("posts", 200))
        site.wait_count(200, "mentions")
        worker.send_signal(signal.SIGSTOP)
        client.delete_topics(["posts"])["posts"].result()
        processes.create_topics(site.settings)
        site.produce("posts", sample("posts", 40))
        worker.send_signal(signal.SIGCONT)
        site.wait_count(240, "mentions")
        stop(worker)
    with site.running("worker", "--stage", "ner") as worker:
        site.wait_ready()
        site.produce("posts", sample("posts", 41)[40:])
        site.wait_count(241, "mentions")
        stop(worker)
    assert site.count("mentions") == 241, "what was processed is acknowledged"
    assert "begins again at offset 0" in site.log.read_text()


def test_a_worker_names_the_missing_topics_in_one_line(kafka: LocalKafka) -> None:
    env = processes.environment(kafka.bootstrap, processes.free_port())
    answer = processes.forked_command("worker", "--stage", "summarization", env=env)
    assert answer.returncode == 1
    last = answer.stderr.strip().splitlines()[-1]
    assert "questions" in answer.stderr and "summaries" in answer.stderr
    assert "pvstream topics --create" in answer.stderr.replace("\n", " ")
    assert "Traceback" not in answer.stderr
    assert last


def test_topics_are_created_once_with_the_partitions_and_settings_of_the_table(kafka: LocalKafka) -> None:
    env = processes.environment(kafka.bootstrap, processes.free_port())
    assert processes.command("topics", "--create", env=env).returncode == 0
    again = processes.forked_command("topics", "--create", env=env)
    assert again.returncode == 0
    assert not any(word in again.stdout for word in ("created", "missing", " expected "))
    # What differs and is harmless is named.
    answer = processes.forked_command("topics", env=env | {"PV_REPLICATION": "3", "COLUMNS": "200"})
    assert answer.returncode == 0, answer.stdout
    lines = [line for line in answer.stdout.splitlines() if " expected " in line]
    assert {"posts: replication is 1, expected 3", "posts: min.insync.replicas is 1, expected 2"} <= set(
        lines
    )
    assert len(lines) == 2 * len(TOPICS)

    async def described() -> tuple[dict[str, int], dict[str, dict[str, str]]]:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
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
        assert partitions[topic.name] == (topic.partitions or 4)
        assert configs[topic.name].items() >= topic.configuration().items(), topic.name


def test_topics_names_differences_and_fails_where_no_stage_works(misconfigured_kafka: LocalKafka) -> None:
    kafka = misconfigured_kafka
    settings = Settings(broker=f"kafka://{kafka.bootstrap}")
    env = processes.environment(kafka.bootstrap, processes.free_port())
    changed = {
        "posts": NewTopic("posts", 6, 1, config={"cleanup.policy": "delete"}),
        "events": NewTopic("events", 4, 1, config=EVENTS.configuration() | {"retention.ms": "1000000"}),
    }
    broken = {
        "releases": NewTopic("releases", 2, 1, config={"cleanup.policy": "delete"}),
        "summaries": NewTopic("summaries", 4, 1, config={"max.message.bytes": "9000"}),
        "posts.dead": NewTopic("posts.dead", 1, 1, config={"cleanup.policy": "compact"}),
        "mentions": NewTopic("mentions", 4, 1, config={"min.insync.replicas": "2"}),
    }
    for name, future in processes.admin(kafka.bootstrap).create_topics([*changed.values()]).items():
        assert future.result() is None, name
    asyncio.run(topics.create(settings, tuple(t for t in TOPICS if t.name not in broken)))
    missing = processes.forked_command("topics", env=env | {"COLUMNS": "200"})
    assert missing.returncode == 1
    assert "summaries: topic is missing, expected there" in missing.stdout
    for name, future in processes.admin(kafka.bootstrap).create_topics([*broken.values()]).items():
        assert future.result() is None, name
    client = processes.admin(kafka.bootstrap)
    processes.wait_until(lambda: broken.keys() <= client.list_topics(timeout=10).topics.keys(), "the topics")
    answer = processes.forked_command("topics", env=env | {"COLUMNS": "200"})
    assert answer.returncode == 1
    lines = [line for line in answer.stdout.splitlines() if " expected " in line]
    assert {line.split(":")[0] for line in lines} == changed.keys() | broken.keys()
    assert "posts: partitions is 6, expected 4" in lines
    assert "events: retention.ms is 1000000, expected 2592000000" in lines
    for start, problem in (
        ("releases: partitions is 2", "announcements in several partitions have no order"),
        ("releases: cleanup.policy is delete", "announcements would expire"),
        ("summaries: max.message.bytes is 9000", "would be refused"),
        ("posts.dead: cleanup.policy is compact", "a dead letter without a key would be refused"),
        ("mentions: min.insync.replicas is 2, expected 1", "there are only 1 replicas"),
    ):
        assert any(line.startswith(start) and line.endswith(problem) for line in lines), (start, lines)
