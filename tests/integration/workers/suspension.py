"""A worker that is suspended beyond its session, and the keys that end on a stale record after it.

Two workers of the tagging stage run on a real Apache Kafka. One is stopped (SIGSTOP) in the middle of a
prediction. Meanwhile reports are revised and deleted, a release may be announced, and the other worker takes
over. Then the first one goes on. Counted are the keys whose last state is not the newest one: by the order in
the topic, and by the upsert of `streams.order`; with the check that keeps a worker from sending what it has
lost, and without.
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

from models.releases.manifest import Release
from streams.order import Latest, read_revision
from streams.rollout.announcing import announce
from streams.topics import MENTIONS
from tests.integration import processes
from tests.integration.fork_server import ForkedProcess
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site, stop
from tests.integration.workers.held_worker import HOLD, held_worker
from tests.variants import marked

#: Each of two workers has half of the four partitions of each of the three topics that the stage reads.
SHARE = 6
#: What happens to a report meanwhile, by its number modulo 3: a second revision, nothing, deletion.
REVISED, UNCHANGED, DELETED = range(3)
#: Seconds until the workers have done what a round waits for.
ROUND_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One suspension: whether the worker checks what it has lost, and the release announced meanwhile."""

    name: str
    fenced: bool
    new: Release | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The rounds; the reports of each, of which a third is revised and a third deleted; seconds of the
    session and of the suspension, which must be longer.
    """

    first: Release
    rounds: Sequence[Round]
    keys: int
    session: float
    suspension: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Outputs and keys of a round; keys without any output; keys whose last state is not the newest one."""

    name: str
    fenced: bool
    outputs: int
    keys: int
    missing: int
    stale_by_topic_order: int
    stale_by_upsert: int
    batches_not_sent: int


class Pair:
    """A worker that is suspended while it predicts, and one that takes its partitions."""

    def __init__(self, site: Site, plan: Plan, suspended: ForkedProcess, port: int, folder: Path) -> None:
        self.site = site
        self.plan = plan
        self.suspended = suspended
        self.port = port
        self.folder = folder

    def shares(self) -> bool:
        """Whether each worker has half of the partitions."""
        ports = (self.port, self.site.port)
        return all(processes.is_ready(p) and metric(p, "pv_assigned_partitions{") == SHARE for p in ports)

    def run(self, round_: Round) -> Counts:
        """Suspends the worker, changes the reports meanwhile, lets it go on and counts."""
        site, keys, name = self.site, self.plan.keys, round_.name
        before = site.count("mentions"), metric(self.port, "pv_fenced_batches_total{")
        for file in ("held", "go", "unfenced"):
            (self.folder / file).unlink(missing_ok=True)
        if not round_.fenced:
            (self.folder / "unfenced").touch()
        revised = posts(name, keys, 2, REVISED)
        deleted = [(key, None) for key, _ in posts(name, keys, 2, DELETED)]
        site.produce("posts", posts(name, keys, 1, REVISED, UNCHANGED, DELETED))
        processes.wait_until((self.folder / "held").exists, "a batch in inference", ROUND_SECONDS)
        self.suspended.send_signal(SIGSTOP)
        end = time.monotonic() + self.plan.suspension
        if round_.new is not None:
            asyncio.run(announce(round_.new.path, site.settings, None, force=True))
            site.wait_live("ner", round_.new.version)
        site.produce("posts", revised)
        site.produce("posts", deleted)  # type: ignore[arg-type]
        made = before[0] + keys + len(revised) + len(deleted)
        processes.wait_until(
            lambda: site.count("mentions") >= made, "the other worker's outputs", ROUND_SECONDS
        )
        time.sleep(max(0.0, end - time.monotonic()))
        (self.folder / "go").touch()
        self.suspended.send_signal(SIGCONT)
        processes.wait_until(self.shares, "both workers have partitions again", ROUND_SECONDS)
        fenced = metric(self.port, "pv_fenced_batches_total{") - before[1]
        return counted(site.read_all("mentions"), round_, keys, int(fenced))


def run(site: Site, plan: Plan) -> list[Counts]:
    """Runs the rounds; afterwards both workers must process new reports, and stop without an error."""
    asyncio.run(announce(plan.first.path, site.settings, None, force=True))
    port, folder = processes.free_port(), site.folder / "held"
    held = held_worker("ner", site.env | {"PV_HTTP_PORT": str(port)}, site.folder / "held.log", folder)
    with held as suspended, site.running("worker", "--stage", "ner") as other:
        pair = Pair(site, plan, suspended, port, folder)
        processes.wait_until(pair.shares, "half of the partitions each", ROUND_SECONDS)
        counts = [pair.run(round_) for round_ in plan.rounds]
        before = site.count("mentions")
        site.produce("posts", posts("after", plan.keys, 2, REVISED, UNCHANGED, DELETED))
        site.wait_count(before + plan.keys, "mentions")
        stop(suspended)
        stop(other)
    return counts


def posts(name: str, keys: int, revision: int, *kinds: int) -> list[tuple[bytes, bytes]]:
    """A revision of the reports of a round that are of these kinds; the first one is held."""
    text = f"{HOLD} zoloft" if revision == 1 else "zoloft"
    ids = [f"{name}-{i}" for i in range(keys) if i % 3 in kinds]
    return [(id_.encode(), orjson.dumps({"id": id_, "text": text, "revision": revision})) for id_ in ids]


def counted(messages: Sequence[Any], round_: Round, keys: int, batches_not_sent: int) -> Counts:
    """The newest state of a key is its last revision by the last release that processed it, or none."""
    outputs: defaultdict[str, list[Any]] = defaultdict(list)
    latest: Latest[Any] = Latest()
    for message in messages:
        key = message.key.decode()
        if key.startswith(f"{round_.name}-"):
            record = None if message.value is None else orjson.loads(message.value)
            state = None if record is None else (record["meta"]["revision"], record["generations"]["ner"])
            outputs[key].append(state)
            latest.offer(key, read_revision(MENTIONS, message), state)
    kept = dict(latest.items())
    newest = {key: None if _kind(key) == DELETED else max(states) for key, states in outputs.items()}
    return Counts(
        round_.name,
        round_.fenced,
        outputs=sum(len(states) for states in outputs.values()),
        keys=keys,
        missing=keys - len(outputs),
        stale_by_topic_order=sum(states[-1] != newest[key] for key, states in outputs.items()),
        stale_by_upsert=sum(kept.get(key) != state for key, state in newest.items()),
        batches_not_sent=batches_not_sent,
    )


def _kind(key: str) -> int:
    return int(key.rsplit("-", 1)[1]) % 3


def metric(port: int, name: str) -> float:
    """The sum of the samples of a worker whose line begins with `name`."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def rounds(
    names: Sequence[str], folder: Path, original: Release | None = None
) -> tuple[Release, list[Round]]:
    """The first release, and a round for each name, which states `unfenced` and `published`."""
    releases = iter([marked(folder, f"mark-{i}", original) for i in range(len(names) + 1)])
    first = next(releases)
    new = [next(releases) if "published" in name else None for name in names]
    return first, [
        Round(name=name, fenced="unfenced" not in name, new=release)
        for name, release in zip(names, new, strict=True)
    ]


def site_of(kafka: LocalKafka, folder: Path, plan: Plan) -> Site:
    """The broker with the topics, and the settings of the workers."""
    return Site(kafka, folder, PV_SESSION_TIMEOUT=f"{plan.session:g}")
