"""Is any record lost, mixed up or out of order while processes are killed and releases change?

Two workers of the tagging stage run on a real Apache Kafka. In each round records are sent while, at random
moments, a worker or the broker is killed, workers are stopped, added and removed, a worker is suspended
beyond its session, and releases are announced. Workers that end are started again, as a supervisor does.
Every text names a drug for which each release has another nonproprietary name, so an output shows which model
made it, whatever version it states. The seed is printed; `--only N` repeats round N of it.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.chaos.records import SINK, Record, Result, SinkReader, count_errors, make_records, send
from benchmarks.chaos.workers import Workers
from benchmarks.machine import print_and_write, provenance
from models.releases.manifest import Release
from streams.rollout.announcing import announce
from streams.settings import Settings
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka, own_kafka
from tests.variants import marked
from training.common.program_help import run_program

SUSPEND = "suspend worker"
ACTIONS = ("kill worker", "kill broker", "stop worker", "add worker", "remove worker", "announce", SUSPEND)
#: Seconds of the workers' sessions, and of a suspension.
SESSION, SUSPENDED = 6, 9.0
#: Seconds until every record of a round must have come out.
ROUND_SECONDS = 240.0
#: Seconds without new outputs, after the last expected one, that end a round.
QUIET_SECONDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What happens in the rounds: the seed, and the numbers of records and actions in each."""

    seed: int
    records: int
    actions: int
    chosen_from: Sequence[str] = ACTIONS
    batch: int = 32
    original: Release | None = None
    """The tagger whose variants are announced; by default the bundled one."""
    forked: bool = False
    """Workers are forked from a server that has imported everything, which starts them sooner."""


class Chaos:
    """A broker, workers and three releases that take turns."""

    def __init__(self, kafka: LocalKafka, plan: Plan, folder: Path, logs: Path) -> None:
        self.kafka = kafka
        self.plan = plan
        settings = {
            "PV_STORE": str(folder / "store"),
            "PV_SESSION_TIMEOUT": str(SESSION),
            "PV_BATCH": str(plan.batch),
            # Two workers share a few processors: more threads would wait for each other.
            "PV_THREADS": "1",
        }
        self.env = processes.environment(kafka.bootstrap, 0, **settings)
        self.settings = Settings(broker=f"kafka://{kafka.bootstrap}", store=settings["PV_STORE"])
        self.releases = [marked(folder / "made", f"mark-{name}", plan.original) for name in "abc"]
        self.marks = {r.version: f"mark-{name}" for r, name in zip(self.releases, "abc", strict=True)}
        self.live: Release | None = None
        self.workers = Workers(self.env, logs, forked=plan.forked)
        self._sink = SinkReader(kafka.bootstrap)

    def announce(self, rng: random.Random) -> None:
        """Publishes another release than the live one."""
        release = rng.choice([r for r in self.releases if r is not self.live])
        asyncio.run(announce(release.path, self.settings, None, force=True))
        self.live = release

    def round(self, number: int) -> Result:
        """Sends records, performs the actions, waits for the outputs and counts the errors.

        The seed and the number of the round determine its records and actions.
        """
        plan = self.plan
        rng = random.Random(f"{plan.seed}/{number}")
        result = Result(number, plan.records)
        started = time.monotonic()
        self.workers.wait_ready()
        records = make_records(rng, number, plan.records)
        sender = threading.Thread(target=send, args=(self.kafka.bootstrap, records, rng.uniform(1, 5)))
        sender.start()
        self._disturb(rng, result)
        self.workers.restore()
        sender.join(ROUND_SECONDS)
        outputs = self._collect(number, set(records))
        result.restarted, self.workers.restarted = self.workers.restarted, 0
        count_errors(result, records, outputs, self.marks)
        result.seconds = round(time.monotonic() - started, 1)
        return result

    def _disturb(self, rng: random.Random, result: Result) -> None:
        """Performs random actions, each at a random share of the round's outputs."""
        plan = self.plan
        before = processes.count(self.kafka.bootstrap, SINK)
        moments = sorted(rng.uniform(0.03, 0.85) for _ in range(plan.actions))
        for action, moment in zip(rng.sample(plan.chosen_from, plan.actions), moments, strict=True):
            # An action should interrupt work in progress; where the share is not reached, it comes anyway.
            with suppress(AssertionError):
                enough = partial(self._has_outputs, before + moment * plan.records)
                processes.wait_until(enough, "progress", 60)
            result.actions.append(f"{action} at {moment:.0%}")
            self._perform(action, rng, result)

    def _has_outputs(self, n: float) -> bool:
        self.workers.supervise()
        return processes.count(self.kafka.bootstrap, SINK) >= n

    def _perform(self, action: str, rng: random.Random, result: Result) -> None:
        match action:
            case "kill broker":
                self.kafka.kill()
                result.kills += 1
                time.sleep(rng.uniform(0, 4))
                self.kafka.restart()
            case "announce":
                self.announce(rng)
                result.published += 1
            case _:
                self._perform_on_workers(action, rng, result)

    def _perform_on_workers(self, action: str, rng: random.Random, result: Result) -> None:
        workers = self.workers
        match action:
            case "kill worker":
                self._replace(signal.SIGKILL, rng)
                result.kills += 1
            case "stop worker":
                self._replace(signal.SIGTERM, rng)
            case "add worker":
                workers.add()
            case "remove worker":
                if len(workers) > 1:
                    workers.end(signal.SIGTERM, workers.choose(rng))
            case _:
                workers.suspend(workers.choose(rng), SUSPENDED)
                result.suspended += 1

    def _replace(self, how: signal.Signals, rng: random.Random) -> None:
        """Ends a worker and starts another."""
        self.workers.end(how, self.workers.choose(rng))
        self.workers.add()

    def _collect(self, number: int, expected: set[Record]) -> list[dict[str, Any]]:
        """The round's outputs in the order of their partitions, once all are there and no more arrive."""
        outputs: list[dict[str, Any]] = []
        seen: set[Record] = set()
        deadline = time.monotonic() + ROUND_SECONDS
        quiet = 0
        while time.monotonic() < deadline and quiet < QUIET_SECONDS:
            self.workers.supervise()
            read = asyncio.run(self._sink.read_new())
            new = [r for r in read if r["id"].startswith(f"{number}-")]
            outputs += new
            seen |= {(r["id"], r["text"]) for r in new}
            quiet = quiet + 1 if expected <= seen and not new else 0
            time.sleep(1)
        return outputs


def run(kafka: LocalKafka, rounds: Sequence[int], plan: Plan, folder: Path, logs: Path) -> list[Result]:
    """Runs the rounds with these numbers on two workers; stops after the first round with an error."""
    with ExitStack() as stack:
        chaos = Chaos(kafka, plan, folder, logs)
        stack.callback(chaos.workers.close)
        processes.create_topics(chaos.settings)
        chaos.announce(random.Random(plan.seed))
        results = []
        for number in rounds:
            results.append(chaos.round(number))
            print(json.dumps(asdict(results[-1])), flush=True)
            if not results[-1].sound:
                break
        return results


def main(
    rounds: Annotated[int, typer.Option(help="number of rounds")] = 20,
    seed: Annotated[int | None, typer.Option(help="seed; by default a random one, which is printed")] = None,
    records: Annotated[int, typer.Option(help="number of records in each round")] = 1000,
    actions: Annotated[
        int, typer.Option(min=0, max=len(ACTIONS), help="number of actions in each round")
    ] = 4,
    only: Annotated[int | None, typer.Option(help="repeat only the round with this number")] = None,
    logs: Annotated[Path | None, typer.Option(help="folder for the logs of the workers")] = None,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    seed = random.randrange(1 << 30) if seed is None else seed
    print(f"seed {seed}", flush=True)
    started = time.monotonic()
    plan = Plan(seed=seed, records=records, actions=actions)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        numbers = range(rounds) if only is None else [only]
        with own_kafka() as kafka:
            results = run(kafka, numbers, plan, Path(folder), logs or Path(folder))
    names = (
        "records", "kills", "suspended", "published", "restarted", "missing", "mixed", "stale",
        "out_of_order", "repeated", "repeated_otherwise", "again_after_reload",
    )  # fmt: skip
    figures = {
        "rounds": len(results),
        "seed": seed,
        **{name: sum(getattr(r, name) for r in results) for name in names},
        "actions": sum(len(r.actions) for r in results),
        "seconds": round(time.monotonic() - started, 1),
        **provenance("chaos"),
    }
    print_and_write(figures, result)
    raise typer.Exit(0 if all(r.sound for r in results) else 1)


if __name__ == "__main__":
    run_program(main)
