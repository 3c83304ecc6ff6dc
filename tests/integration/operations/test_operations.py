"""What operators ask, on a real Kafka: status, dead, tail --until-end."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from models.releases.manifest import Release
from streams.agents.pipeline import STAGES
from streams.cli.arguments import MOST
from streams.topics import CONSUMED
from tests.integration import processes
from tests.integration.site import Site
from tests.streams.cli.command_line import closed_port

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
WORDS = "my own words"


class Asked:
    """Runs commands that print JSON."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return processes.forked_command(*arguments, env=self._site.env | {"COLUMNS": "200"})

    def json(self, *arguments: str) -> tuple[int, Any]:
        answer = self.command(*arguments, "--json")
        assert answer.stdout, answer.stderr
        return answer.returncode, orjson.loads(answer.stdout)

    def status(self, *arguments: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """The exit code, the whole answer and its stages by their names."""
        code, answer = self.json("status", *arguments)
        return code, answer, {one["stage"]: one for one in answer["stages"]}


def test_status_tells_what_works_and_what_does_not(tiny_site: Site, tiny: dict[str, Release]) -> None:
    site, asked = tiny_site, Asked(tiny_site)
    site.env["PV_SESSION_TIMEOUT"] = "60"
    site.produce("questions", [(b"a", b'{"id": "a", "text": "Is it safe?"}')])
    code, answer, stages = asked.status()
    assert code == 1
    assert set(answer["problems"]) == {f"{stage.name}: no worker" for stage in STAGES}
    lags = {name: one["lag_records"] for name, one in stages.items()}
    assert lags == {"ner": 1, "acronym": 0, "relation": 0, "normalization": 0, "summarization": 1}
    assert 0 < stages["summarization"]["lag_seconds"] < 600
    assert stages["acronym"]["lag_seconds"] == 0
    assert stages["ner"]["source"] == "posts, questions, sentences.expanded"

    with site.running("up") as up:
        site.wait_ready()
        site.produce("questions", [(b"bad", b"{")])
        site.wait_count(1, "summaries")
        site.wait_count(2, "questions.dead")
        _abort_a_transaction(site.kafka.bootstrap, "questions")

        def has_no_lag() -> bool:
            return all(one["lag_records"] == 0 for one in asked.status("--patience", "0")[2].values())

        processes.wait_until(has_no_lag, "no lag, though markers of a transaction follow the last record")
        _expect_that_all_works(asked, f"127.0.0.1:{site.port}", tiny)
        up.send_signal(signal.SIGSTOP)
        try:
            site.produce("posts", [(b"p", b'{"id": "p", "text": "fine"}')])
            _expect_a_stalled_stage(asked)
        finally:
            up.send_signal(signal.SIGCONT)


def _expect_that_all_works(asked: Asked, worker: str, releases: dict[str, Release]) -> None:
    """With a dead letter of each stage that reads questions; `worker` is the host and port of one that runs
    all stages.
    """
    code, answer, stages = asked.status("--worker", worker, "--worker", f"http://{worker}")
    assert (code, answer["problems"]) == (0, [])
    for stage in STAGES:
        (member,) = stages[stage.name]["members"]
        assert member["partitions"] == [0, 1, 2, 3]
    assert answer["dead_letters"] == {
        topic.dead_letters.name: 2 * (topic.name == "questions") for topic in CONSUMED
    }
    for row in answer["workers"]:
        assert row["ready"] == {stage.name: True for stage in STAGES}
        assert row["releases"] == {task: releases[task].version for task in row["ready"]}
    table = asked.command("status", "--worker", worker)
    assert (table.returncode, "questions.dead 2" in table.stdout) == (0, True), table.stdout


def _expect_a_stalled_stage(asked: Asked) -> None:
    """The tagger has one record to read and does not, and a worker that is named does not answer."""
    code, answer, stages = asked.status("--patience", "2", "--worker", f"127.0.0.1:{closed_port()}")
    assert code == 1
    assert {name: one["state"] for name, one in stages.items() if one["state"] != "ok"} == {"ner": "stalled"}
    stalled, unreachable = answer["problems"]
    assert stalled == "ner: stalled, 1 records wait and none is acknowledged"
    assert "no answer" in unreachable


def _abort_a_transaction(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "one"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in range(4):
        producer.produce(topic, key=b"never", value=b"{}", partition=partition)
    producer.flush(30)
    producer.abort_transaction(30)


def test_dead_letters_are_counted_listed_and_printed_without_words_of_their_sender(tiny_site: Site) -> None:
    site, asked = tiny_site, Asked(tiny_site)
    large = orjson.dumps({"id": "large", "text": f"Is {WORDS} safe? " + "x" * 3000})
    bad = f'{{"text": "{WORDS}"}}'.encode()
    site.produce("questions", [(b"large", large), *[(b"%d" % i, bad) for i in range(3)]])
    site.env["PV_MAX_OUTPUT_BYTES"] = "1024"
    with site.running("worker", "--stage", "summarization"):
        site.wait_count(4, "questions.dead")
    code, counts = asked.json("dead")
    assert code == 0
    kinds = {(row["topic"], row["stage"], row["reason"]): (row["letters"], row["waiting"]) for row in counts}
    name = "questions.dead"
    assert kinds == {
        (name, "summarization", "bad_record"): (3, 3),
        (name, "summarization", "output_too_large"): (1, 1),
    }
    site.must("redrive", name, "--reason", "bad_record")
    _, found = asked.json("dead", name, "--reason", "bad_record", "--limit", "2")
    assert [row["waiting"] for row in found["counts"]] == [0, 1]
    assert [one["reason"] for one in found["letters"]] == ["bad_record"] * 2
    offsets = [one["offset"] for one in found["letters"]]
    assert offsets == sorted(offsets)

    _expect_letters_without_their_words(asked, offsets[-1], bad, str(found) + str(counts))
    _expect_refusals_of_what_is_not_there(asked)
    lines = site.must("tail", "questions", "--until-end", "--json").splitlines()
    assert sorted(lines) == sorted([large.decode(), *[bad.decode()] * 6]), "with those that were sent back"
    assert len(site.must("tail", "questions", "--until-end", "--count", "2", "--json").splitlines()) == 2
    assert site.must("tail", "events", "--until-end") == ""
    most = str(MOST)
    assert len(asked.json("dead", name, "--limit", most)[1]["letters"]) >= 4
    latest = site.must("tail", "questions", "--latest", "--count", most, "--json")
    assert len(latest.splitlines()) == 4
    refused = asked.command("dead", name, "--limit", str(2**64))
    assert (refused.returncode, most in refused.stderr) == (2, True)


def _expect_letters_without_their_words(asked: Asked, offset: int, value: bytes, answered: str) -> None:
    """The words are in no list and no letter that is printed, and `answered` has none, without --text."""
    name = "questions.dead"
    listed = asked.command("dead", name)
    assert listed.stdout.count("summarization bad_record, questions/") == 3, listed.stdout
    place = (name, "0", str(offset))
    printed = asked.command("dead", *place)
    assert (printed.returncode, "pv-reason: bad_record" in printed.stdout) == (0, True), printed.stderr
    assert WORDS not in listed.stdout + printed.stdout + answered
    assert WORDS in asked.command("dead", *place, "--text").stdout
    assert asked.json("dead", *place, "--text")[1]["value"] == value.decode()


def _expect_refusals_of_what_is_not_there(asked: Asked) -> None:
    name = "questions.dead"
    missing = asked.command("dead", name, "0", "99")
    assert (missing.returncode, "has no letter at offset 99" in missing.stderr) == (1, True)
    assert asked.command("dead", "posts").returncode == 2
    assert asked.command("dead", name, "--reason", "bored").returncode == 2
