"""Does anything get lost, mixed or out of order while processes die and releases change?

Two workers of the tagging stage on a real Apache Kafka. In each round records flow while, at random moments,
a worker or the broker is killed, workers are stopped, added and removed, and releases are published. Every
text names a drug that each release knows by another name, so an output shows which model made it, whatever
version it claims. The seed is printed; `--only N` repeats round N of it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.machine import described
from models.releases.manifest import Release
from models.types import DRUG
from streams.cli.demo import samples
from streams.releases.publishing import publish
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka, own_kafka
from tests.variants import MARKER, marked

SOURCE, SINK = "posts", "mentions"
ACTIONS = ("kill worker", "kill broker", "stop worker", "add worker", "remove worker", "publish")
#: Versions of one report, in order, under one key.
EDITIONS = 5
#: Records that come at once, so that a worker has several batches before it when something happens.
BURST = 150
#: Until every record of a round must have come out.
ROUND_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What the rounds are made of."""

    seed: int
    records: int = 1000
    """in each round"""
    actions: int = 4
    """in each round"""
    batch: int = 32
    original: Release | None = None
    """the tagger whose variants are published; None: the bundled one"""
    forked: bool = False
    """workers are forked, which starts them sooner"""


@dataclass(slots=True)
class Result:
    """What happened in a round; all but `repeated` and `again_after_reload` must be 0."""

    number: int
    records: int
    actions: list[str] = field(default_factory=list)
    kills: int = 0
    published: int = 0
    missing: int = 0
    mixed: int = 0
    out_of_order: int = 0
    repeated: int = 0
    """Outputs under an id that was there before, with the same bytes."""
    repeated_otherwise: int = 0
    """The same, with other bytes."""
    again_after_reload: int = 0
    """Outputs of the same report by another release, under another id."""
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        return not (self.missing or self.mixed or self.out_of_order or self.repeated_otherwise)


class Fleet:
    """Worker processes of one stage, started and ended by their pids."""

    def __init__(self, env: dict[str, str], logs: Path, *, forked: bool) -> None:
        self._env = env
        self._logs = logs
        self._forked = forked
        self._started = 0
        self.workers: list[processes.Running] = []
        self._ports: dict[int, int] = {}

    def add(self) -> None:
        port = processes.free_port()
        self._started += 1
        log = self._logs / f"worker-{self._started}.log"
        env = self._env | {"PV_HTTP_PORT": str(port)}
        worker = processes.started("worker", "--stage", "ner", env=env, log=log, forked=self._forked)
        self.workers.append(worker)
        self._ports[worker.pid] = port

    def end(self, how: signal.Signals, which: int) -> None:
        worker = self.workers.pop(which)
        worker.send_signal(how)
        try:
            worker.wait(90)
        finally:
            if worker.poll() is None:
                worker.kill()
        if how is signal.SIGTERM and worker.returncode not in (0, 1, -signal.SIGTERM):
            raise AssertionError(f"a worker that was asked to stop ended with {worker.returncode}")

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait(30)

    def two(self) -> None:
        """Replaces what has ended by itself and comes back to two workers."""
        self.workers = [w for w in self.workers if w.poll() is None]
        while len(self.workers) < 2:  # noqa: PLR2004
            self.add()
        while len(self.workers) > 2:  # noqa: PLR2004
            self.end(signal.SIGTERM, 0)

    def busy(self, rng: random.Random) -> int:
        """Which worker to end: one that works, where there is one, for one that still loads proves little."""
        ready = [i for i, w in enumerate(self.workers) if processes.is_ready(self._ports[w.pid])]
        return rng.choice(ready or range(len(self.workers)))

    def is_ready(self) -> bool:
        return all(processes.is_ready(self._ports[w.pid]) for w in self.workers)


class Chaos:
    """A broker, a fleet, a few releases, and what was ever sent and seen."""

    def __init__(self, kafka: LocalKafka, plan: Plan, folder: Path, logs: Path) -> None:
        self.kafka = kafka
        self.plan = plan
        store = str(folder / "store")
        settings = {"PV_STORE": store, "PV_SESSION_TIMEOUT": "6", "PV_BATCH": str(plan.batch)} | {
            # Two workers on a few processors: threads of both would wait for each other.
            "PV_THREADS": "1"
        }
        self.env = processes.environment(kafka.bootstrap, 0, **settings)
        self.settings = Settings(broker=f"kafka://{kafka.bootstrap}", store=store)
        self.releases = [marked(folder / "made", f"mark-{name}", plan.original) for name in "abc"]
        self.marks = {r.version: f"mark-{name}" for r, name in zip(self.releases, "abc", strict=True)}
        self.live: Release | None = None
        self.fleet = Fleet(self.env, logs, forked=plan.forked)
        self._read: dict[TopicPartition, int] = {}

    def publish(self, rng: random.Random) -> None:
        release = rng.choice([r for r in self.releases if r is not self.live])
        asyncio.run(publish(release.path, self.settings, None, force=True))
        self.live = release

    def round(self, number: int) -> Result:
        """Sends, disturbs, waits, and counts; the seed and the number make the round."""
        records, actions = self.plan.records, self.plan.actions
        rng = random.Random(f"{self.plan.seed}/{number}")
        result = Result(number, records)
        started = time.monotonic()
        self.fleet.two()
        processes.wait_until(self.fleet.is_ready, "two workers that are ready")
        wanted = _records(rng, number, records)
        sender = threading.Thread(target=_send, args=(self.kafka.bootstrap, wanted, rng.uniform(1, 5)))
        sender.start()
        before = processes.count(self.kafka.bootstrap, SINK)
        moments = sorted(rng.uniform(0.03, 0.85) for _ in range(actions))
        for action, moment in zip(rng.sample(ACTIONS, actions), moments, strict=True):
            # So far on the way there is work to disturb; what does not come so far is disturbed anyway.
            with suppress(AssertionError):
                processes.wait_until(partial(self._is_out, before + moment * records), "progress", 60)
            result.actions.append(f"{action} at {moment:.0%}")
            self._do(action, rng, result)
        self.fleet.two()
        sender.join(ROUND_SECONDS)
        found = self._collect(number, {(key, text) for key, text in wanted})
        _count(result, wanted, found, self.marks)
        result.seconds = round(time.monotonic() - started, 1)
        return result

    def _is_out(self, n: float) -> bool:
        return processes.count(self.kafka.bootstrap, SINK) >= n

    def _do(self, action: str, rng: random.Random, result: Result) -> None:
        fleet = self.fleet
        match action:
            case "kill worker":
                fleet.end(signal.SIGKILL, fleet.busy(rng))
                result.kills += 1
                fleet.add()
            case "kill broker":
                self.kafka.kill()
                result.kills += 1
                time.sleep(rng.uniform(0, 4))
                self.kafka.restart()
            case "stop worker":
                fleet.end(signal.SIGTERM, fleet.busy(rng))
                fleet.add()
            case "add worker":
                fleet.add()
            case "remove worker":
                if len(fleet.workers) > 1:
                    fleet.end(signal.SIGTERM, fleet.busy(rng))
            case "publish":
                self.publish(rng)
                result.published += 1

    def _collect(self, number: int, wanted: set[tuple[str, str]]) -> list[dict[str, Any]]:
        """The round's outputs in the order of their partitions, once all are there and nothing more comes."""
        found: list[dict[str, Any]] = []
        seen: set[tuple[str, str]] = set()
        deadline = time.monotonic() + ROUND_SECONDS
        quiet = 0
        while time.monotonic() < deadline and quiet < 3:  # noqa: PLR2004  seconds without news after the last
            fresh = [r for r in asyncio.run(self._new()) if r["id"].startswith(f"{number}-")]
            found += fresh
            seen |= {(r["id"], r["text"]) for r in fresh}
            quiet = quiet + 1 if wanted <= seen and not fresh else 0
            time.sleep(1)
        return found

    async def _new(self) -> list[dict[str, Any]]:
        """What the sink holds beyond what was read before."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self.kafka.bootstrap, group_id=None)
        await consumer.start()
        try:
            partitions = [TopicPartition(SINK, p) for p in range(4)]
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            found = []
            for tp in partitions:
                consumer.seek(tp, self._read.get(tp, 0))
                while await consumer.position(tp) < ends[tp]:
                    for messages in (await consumer.getmany(tp, timeout_ms=1000)).values():
                        found += [orjson.loads(m.value) for m in messages]
                self._read[tp] = await consumer.position(tp)
            return found
        finally:
            await consumer.stop()


def _records(rng: random.Random, number: int, n: int) -> list[tuple[str, str]]:
    """Ids and texts; each id comes EDITIONS times, in order, among the others."""
    ids = [f"{number}-{i}" for i in range(-(-n // EDITIONS))] * EDITIONS
    rng.shuffle(ids)
    texts = [orjson.loads(line)["text"] for line in samples()["posts"].read_bytes().splitlines()]
    edition: Counter[str] = Counter()
    made = []
    for id_ in ids[:n]:
        edition[id_] += 1
        made.append((id_, f"{rng.choice(texts)}\n\n{MARKER}\n\nedition {edition[id_]}"))
    return made


def _send(bootstrap: str, records: list[tuple[str, str]], seconds: float) -> None:
    """Over so many seconds, in bursts, in order, confirmed, through whatever happens to the broker."""

    async def send() -> None:
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

    asyncio.run(send())


def _count(
    result: Result, wanted: list[tuple[str, str]], found: list[dict[str, Any]], marks: dict[str, str]
) -> None:
    first: dict[str, dict[str, Any]] = {}
    seen: set[tuple[str, str]] = set()
    editions: defaultdict[str, list[int]] = defaultdict(list)
    last: dict[str, int] = {}
    for record in found:
        what = (record["id"], record["text"])
        edition = int(record["text"].rsplit(" ", 1)[1])
        names = {
            m["generic"] for m in record["mentions"] if m["text"].lower() == MARKER and m["label"] == DRUG
        }
        result.mixed += names != {marks[record["releases"]["ner"]]}
        if record["record_id"] in first:
            same = record == first[record["record_id"]]
            result.repeated += same
            result.repeated_otherwise += not same
        elif what in seen:
            result.again_after_reload += 1
        else:
            editions[record["id"]].append(edition)
        first.setdefault(record["record_id"], record)
        seen.add(what)
        last[record["id"]] = edition
    result.missing = len(set(wanted) - seen)
    newest = Counter(id_ for id_, _ in wanted)
    result.out_of_order = sum(
        any(a > b for a, b in itertools.pairwise(order)) or last[id_] != newest[id_]
        for id_, order in editions.items()
    )


def run(kafka: LocalKafka, plan: Plan, rounds: Sequence[int], folder: Path, logs: Path) -> list[Result]:
    """Starts two workers and plays the rounds of these numbers; stops at the first that is not sound."""
    with ExitStack() as stack:
        chaos = Chaos(kafka, plan, folder, logs)
        stack.callback(chaos.fleet.close)
        processes.create_topics(chaos.settings)
        chaos.publish(random.Random(plan.seed))
        results = []
        for number in rounds:
            results.append(chaos.round(number))
            print(json.dumps(asdict(results[-1])), flush=True)
            if not results[-1].sound:
                break
        return results


def main(
    rounds: int = 20,
    seed: Annotated[int | None, typer.Option(help="without it a random one, which is printed")] = None,
    records: Annotated[int, typer.Option(help="in each round")] = 1000,
    actions: Annotated[int, typer.Option(min=0, max=len(ACTIONS), help="in each round")] = 4,
    only: Annotated[int | None, typer.Option(help="repeat this round alone")] = None,
    logs: Annotated[Path | None, typer.Option(help="folder for what each worker says")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    seed = random.randrange(1 << 30) if seed is None else seed
    print(f"seed {seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        numbers = range(rounds) if only is None else [only]
        with own_kafka() as kafka:
            plan = Plan(seed, records, actions)
            results = run(kafka, plan, numbers, Path(folder), logs or Path(folder))
    names = (
        "records", "kills", "published", "missing", "mixed", "out_of_order", "repeated",
        "repeated_otherwise", "again_after_reload",
    )  # fmt: skip
    row = {
        "rounds": len(results),
        "seed": seed,
        **{name: sum(getattr(r, name) for r in results) for name in names},
        "actions": sum(len(r.actions) for r in results),
        "seconds": round(time.monotonic() - started, 1),
        **described("chaos"),
    }
    print(json.dumps(row, indent=2))
    if result is not None:
        result.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")
    raise typer.Exit(0 if all(r.sound for r in results) else 1)


if __name__ == "__main__":
    typer.run(main)
