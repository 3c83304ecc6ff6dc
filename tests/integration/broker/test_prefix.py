"""Several pipelines on one broker, each with its own PV_PREFIX, do not see each other's records."""

from __future__ import annotations

import re
import urllib.request
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from models.releases.manifest import Release
from streams.topics import TOPICS
from tests.docs.documents import commands
from tests.integration import processes
from tests.integration.kafka_server import LIMITED, PASSWORD, LocalKafka
from tests.integration.site import stop

pytestmark = pytest.mark.kafka
TABLE = {topic.name for topic in TOPICS}


class Pipeline:
    """The environment of one pipeline on the broker."""

    def __init__(self, kafka: LocalKafka, folder: Path, prefix: str, **env: str) -> None:
        own = {"PV_PREFIX": prefix, "PV_STORE": str(folder / f"store-{prefix}"), "PV_THREADS": "1"} | env
        self.prefix = prefix
        self.kafka = kafka
        self.env = processes.environment(kafka.bootstrap, processes.free_port(), **own)
        self.log = folder / f"log-{prefix}"

    def must(self, *arguments: str) -> str:
        answer = processes.forked_command(*arguments, env=self.env)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def count(self, *names: str) -> int:
        return processes.count(self.kafka.bootstrap, *(self.prefix + name for name in names))

    def wait_count(self, n: int, name: str) -> None:
        processes.wait_until(
            lambda: self.count(name) >= n, f"{n} in {self.prefix}{name}: {self.log.read_text()}"
        )

    def ingest(self, folder: Path, ids: list[str]) -> None:
        file = folder / "questions.jsonl"
        file.write_bytes(b"".join(orjson.dumps({"id": i, "text": f"Is {i} safe?"}) + b"\n" for i in ids))
        self.must("ingest", "questions", str(file))


def test_pipelines_with_prefixes_share_a_broker_and_no_record(
    kafka: LocalKafka, tmp_path: Path, pinned: str, tiny: dict[str, Release]
) -> None:
    staging = Pipeline(kafka, tmp_path, "staging.", PV_RELEASES=pinned, PV_PARTITIONS="2")
    other = Pipeline(kafka, tmp_path, "team-b_", PV_RELEASES=pinned)
    plain = Pipeline(kafka, tmp_path, "")
    for pipeline in (staging, other, plain):
        pipeline.must("topics", "--create")
    copies = NewTopic("staging.copies", 1, 1)
    processes.admin(kafka.bootstrap).create_topics([copies])["staging.copies"].result()
    staging.ingest(tmp_path, ["one", "two", "three"])
    other.ingest(tmp_path, ["four", "five"])
    processes.produce(kafka.bootstrap, "staging.questions", [(b"bad", b"no json")])

    worker = ("worker", "--stage", "summarization")
    with (
        processes.running(*worker, env=staging.env, log=staging.log, forked=True) as first,
        processes.running(*worker, env=other.env, log=other.log, forked=True) as second,
    ):
        _expect_summaries(staging, {"one", "two", "three"})
        _expect_summaries(other, {"four", "five"})
        _redrive(staging, tmp_path)
        stop(first)
        stop(second)
    (letter, _) = processes.read_all(kafka.bootstrap, "staging.questions.dead")
    assert dict(letter.headers)["pv-topic"] == b"questions"

    _skip_one(staging)
    staging.must("replay", "questions", "--into", "copies")
    assert staging.count("copies") == 5
    _expect_only_their_own_records(other, plain)
    _expect_topics_and_groups(staging, other, plain)


def _expect_summaries(pipeline: Pipeline, ids: set[str]) -> None:
    pipeline.wait_count(len(ids), "summaries")
    lines = pipeline.must("tail", "summaries", "--from-beginning", "--count", str(len(ids)), "--json")
    records = [orjson.loads(line) for line in lines.splitlines()]
    assert {r["id"] for r in records} == ids
    assert {r["source"] for r in records} == {"questions"}, "records do not depend on the prefix"


def _redrive(pipeline: Pipeline, folder: Path) -> None:
    """Sends the dead letter back, which becomes another one."""
    pipeline.wait_count(1, "questions.dead")
    pipeline.must("redrive", "questions.dead")
    pipeline.wait_count(2, "questions.dead")
    lag = 'pv_lag_records{partition="0",stage="summarization",topic="questions"}'
    processes.wait_until(lambda: lag in _metrics(pipeline), "the lag is known")
    pipeline.ingest(folder, ["six"])


def _expect_only_their_own_records(other: Pipeline, plain: Pipeline) -> None:
    """Two questions were sent to `other`, and none to `plain`."""
    # A worker that lost its partitions for a moment repeats a record.
    found = processes.read_all(other.kafka.bootstrap, other.prefix + "summaries")
    assert {message.key for message in found} == {b"four", b"five"}
    assert other.count("questions.dead", "releases") == 0
    assert plain.count(*TABLE) == 0, "nothing went to topics without a prefix"


def _expect_topics_and_groups(staging: Pipeline, other: Pipeline, plain: Pipeline) -> None:
    """The broker has those of the three pipelines, and no other ones."""
    admin = processes.admin(staging.kafka.bootstrap)
    found = {name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")}
    assert found == {p.prefix + name for p in (staging, other, plain) for name in TABLE} | {"staging.copies"}
    groups = {g.group_id for g in admin.list_consumer_groups(request_timeout=10).result().valid}
    assert {"staging.pv-summarization", "team-b_pv-summarization", "staging.pv-redrive.bad_record"} <= groups
    assert all(name.startswith(("staging.pv-", "team-b_pv-")) for name in groups)
    topics = admin.list_topics(timeout=10).topics
    counts = [len(topics[p.prefix + "events"].partitions) for p in (staging, other, plain)]
    assert counts == [2, 4, 4]
    assert len(topics["staging.releases"].partitions) == len(topics["staging.posts.dead"].partitions) == 1


def _skip_one(pipeline: Pipeline) -> None:
    """Skips a record of a partition that the stage has processed up to its end."""
    before = pipeline.count("questions.dead")
    name = pipeline.prefix + "questions"
    (partition, offset) = max(
        (m.partition, m.offset) for m in processes.read_all(pipeline.kafka.bootstrap, name)
    )
    key = next(
        m.key
        for m in processes.read_all(pipeline.kafka.bootstrap, name)
        if (m.partition, m.offset) == (partition, offset)
    )
    processes.produce(pipeline.kafka.bootstrap, name, [(key, b'{"id": "stuck", "text": "x"}')])
    pipeline.must("skip", "questions", str(partition), str(offset + 1), "--group", "summarization")
    assert pipeline.count("questions.dead") == before + 1


def _get(pipeline: Pipeline, path: str) -> str:
    address = f"http://127.0.0.1:{pipeline.env['PV_HTTP_PORT']}/{path}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def _metrics(pipeline: Pipeline) -> str:
    return _get(pipeline, "metrics")


def documented_rights() -> list[AclBinding]:
    """The rights that docs/operate.md gives to a pipeline with the prefix `staging.`."""
    rights = []
    for words in (c.words for c in commands() if c.words[0] == "kafka-acls.sh"):
        values = defaultdict(list)
        for option, value in pairwise(words):
            values[option].append(value)
        kind = "topic" if "--topic" in words else "group"
        for operation in values["--operation"]:
            rights.append(
                AclBinding(
                    ResourceType[kind.upper()], values[f"--{kind}"][0],
                    ResourcePatternType[values["--resource-pattern-type"][0].upper()],
                    values["--allow-principal"][0], "*",
                    AclOperation[re.sub("(?<=[a-z])(?=[A-Z])", "_", operation).upper()],
                    AclPermissionType.ALLOW,
                )
            )  # fmt: skip
    return rights


def test_a_pipeline_needs_only_the_documented_rights(kafka: LocalKafka, tmp_path: Path, pinned: str) -> None:
    rights = documented_rights()
    assert {right.principal for right in rights} == {f"User:{LIMITED}"}
    login = {
        "PV_BROKER": f"kafka://{kafka.secure_bootstrap}",
        "PV_SECURITY": "SASL_SSL",
        "PV_SASL_MECHANISM": "PLAIN",
        "PV_SASL_USERNAME": LIMITED,
        "PV_SASL_PASSWORD": PASSWORD,
        "PV_SSL_CAFILE": str(kafka.certificate),
        "PV_RELEASES": pinned,
    }
    pipeline = Pipeline(kafka, tmp_path, "staging.", **login)
    with processes.granted(kafka.bootstrap, rights):
        _use_the_rights(pipeline, tmp_path)


def _use_the_rights(pipeline: Pipeline, tmp_path: Path) -> None:
    """What a pipeline does, with its own prefix, and one thing that it may not do."""
    pipeline.must("topics", "--create")
    pipeline.ingest(tmp_path, ["one", "two"])
    processes.produce(pipeline.kafka.bootstrap, "staging.questions", [(b"bad", b"no json")])
    worker = ("worker", "--stage", "summarization")
    with processes.running(*worker, env=pipeline.env, log=pipeline.log, forked=True) as process:
        pipeline.wait_count(2, "summaries")
        pipeline.wait_count(1, "questions.dead")
        pipeline.must("redrive", "questions.dead")
        pipeline.must("tail", "summaries", "--from-beginning", "--count", "2")
        pipeline.wait_count(2, "questions.dead")
        stop(process)
    _skip_one(pipeline)
    pipeline.must("replay", "questions")
    other = processes.forked_command("topics", "--create", env=pipeline.env | {"PV_PREFIX": "production."})
    assert other.returncode == 1
    assert "error: the broker refuses to create production." in other.stderr
