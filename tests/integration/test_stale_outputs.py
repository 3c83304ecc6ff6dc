"""A worker that is suspended beyond its session while it predicts: what it has lost is not sent, and where it
is, the upsert drops it. Nothing is lost, and the worker goes on.
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import orjson
import pytest

from models.releases.manifest import Release
from streams.order import Latest, read_revision
from streams.releases.publishing import publish
from streams.topics import MENTIONS
from tests.integration import processes
from tests.integration.fork_server import ForkedProcess
from tests.integration.held_worker import HOLD, held_worker
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site, stop
from tests.variants import marked

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: The shortest session that a broker accepts by default.
SESSION = 6
#: Reports of a round. While the worker is suspended, those 0 modulo 3 are revised, and those 2 modulo 3 are
#: deleted.
KEYS = 90


@dataclass(frozen=True, slots=True)
class Counts:
    """Keys whose last state is not the newest one, by the order in the topic and by the upsert."""

    outputs: int
    missing: int
    by_topic_order: int
    by_upsert: int


def posts(name: str, revision: int, kinds: Sequence[int]) -> list[tuple[bytes, bytes]]:
    """A revision of the reports of a round whose number is one of `kinds` modulo 3."""
    text = f"{HOLD} zoloft" if revision == 1 else "zoloft"
    ids = [f"{name}-{i}" for i in range(KEYS) if i % 3 in kinds]
    return [(id_.encode(), orjson.dumps({"id": id_, "text": text, "revision": revision})) for id_ in ids]


def counted(messages: Sequence[Any], name: str) -> Counts:
    """The newest state of a key is its last revision by the last release that processed it, or none."""
    outputs: defaultdict[str, list[Any]] = defaultdict(list)
    latest: Latest[Any] = Latest()
    for message in messages:
        key = message.key.decode()
        if key.startswith(f"{name}-"):
            record = None if message.value is None else orjson.loads(message.value)
            state = None if record is None else (record["meta"]["revision"], record["generations"]["ner"])
            outputs[key].append(state)
            latest.offer(key, read_revision(MENTIONS, message), state)
    kept = dict(latest.items())
    newest = {key: None if int(key.rsplit("-", 1)[1]) % 3 == 2 else max(s) for key, s in outputs.items()}
    return Counts(
        outputs=sum(len(states) for states in outputs.values()),
        missing=KEYS - len(outputs),
        by_topic_order=sum(states[-1] != newest[key] for key, states in outputs.items()),
        by_upsert=sum(kept.get(key) != state for key, state in newest.items()),
    )


def metric(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two workers: one that is suspended while it predicts, and one that takes its partitions."""

    site: Site
    suspended: ForkedProcess
    port: int
    folder: Path

    def share(self) -> bool:
        """Whether each has half of the partitions."""
        return [metric(port, "pv_assigned_partitions{") for port in (self.port, self.site.port)] == [2, 2]

    def round(self, name: str, new: Release | None, *, fenced: bool) -> Counts:
        """Suspends the worker beyond its session, changes the reports meanwhile, and lets it go on."""
        site, before = self.site, self.site.count("mentions")
        for file in ("held", "go", "unfenced"):
            (self.folder / file).unlink(missing_ok=True)
        if not fenced:
            (self.folder / "unfenced").touch()
        site.produce("posts", posts(name, 1, (0, 1, 2)))
        processes.wait_until((self.folder / "held").exists, "a batch in inference", 30)
        self.suspended.send_signal(SIGSTOP)
        stopped = time.monotonic()
        if new is not None:
            asyncio.run(publish(new.path, site.settings, None, force=True))
            site.wait_live("ner", new.version)
        site.produce("posts", posts(name, 2, (0,)))
        site.produce("posts", [(key, None) for key, _ in posts(name, 2, (2,))])  # type: ignore[misc]
        made = before + KEYS + 2 * KEYS // 3
        processes.wait_until(lambda: site.count("mentions") >= made, "the outputs of the other worker", 40)
        assert time.monotonic() - stopped > SESSION, "not suspended beyond its session"
        (self.folder / "go").touch()
        self.suspended.send_signal(SIGCONT)
        processes.wait_until(self.share, "both workers have partitions again", 30)
        return counted(site.read_all("mentions"), name)


def test_after_a_suspension_the_newest_record_of_every_key_is_kept(
    kafka: LocalKafka, tmp_path: Path, tiny: dict[str, Release]
) -> None:
    site = Site(kafka, tmp_path, PV_SESSION_TIMEOUT=str(SESSION))
    one, two, three = [tiny["ner"], *(marked(tmp_path / "made", mark, tiny["ner"]) for mark in "bc")]
    asyncio.run(publish(one.path, site.settings, None, force=True))
    port, folder = processes.free_port(), tmp_path / "held"
    held = held_worker("ner", site.env | {"PV_HTTP_PORT": str(port)}, tmp_path / "held.log", folder)
    with held as suspended, site.running("worker", "--stage", "ner") as other:
        pair = Pair(site, suspended, port, folder)
        processes.wait_until(lambda: processes.is_ready(port), "ready")
        site.wait_ready()
        processes.wait_until(pair.share, "two partitions each")
        started = time.monotonic()
        unfenced = pair.round("unfenced", two, fenced=False)
        assert metric(port, "pv_fenced_batches_total{") == 0
        kept = pair.round("kept", None, fenced=True)
        assert metric(port, "pv_fenced_batches_total{") > 0
        published = pair.round("published", three, fenced=True)
        for counts in (unfenced, kept, published):
            print(counts)
            assert (counts.missing, counts.by_upsert) == (0, 0)
        assert unfenced.by_topic_order > 0, "the worker was not in the middle of anything"
        assert (kept.by_topic_order, published.by_topic_order) == (0, 0)
        print(f"three rounds in {time.monotonic() - started:.1f} s")

        before = site.count("mentions")
        site.produce("posts", posts("after", 2, (0, 1, 2)))
        site.wait_count(before + KEYS, "mentions")
        stop(suspended)
        stop(other)
