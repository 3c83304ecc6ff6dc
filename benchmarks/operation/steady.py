"""Does the whole pipeline stay level under a steady load? Live feeds, sources, all stages, a real Kafka.

A Jetstream server and two files that grow publish posts, edits and deletions for the three input topics.
Three `pvstream source` processes read them, and one `pvstream up` runs all five stages, by default over tiny
models, so that the pipeline and not the models is under load. First more is published for a minute than can
be processed, which shows the capacity: final records per second while the sources work too. Then the feeds
publish at a share of it for some minutes, while the memory of every process and the lag are sampled: the
number of posts, edits and deletions without a final record. In the end each report must have its last text as
its final record, or a tombstone.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.machine import print_and_write, provenance
from benchmarks.operation.steady_feeds import Feed, Lines, Pace, Server
from benchmarks.sources.found import Found, counting
from models.types import TASKS
from streams.topics import CONSUMED, EVENTS, POSTS, QUESTIONS, SENTENCES, SUMMARIES
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka, own_kafka
from tests.integration.site import Site
from tests.models.tiny import bert as tiny_bert
from tests.tiny_releases import tiny_release
from training.common.program_help import run_program

#: Figures of `Found` that are 0 where nothing is missing.
MISSING = ("lost", "deletions_missing", "other_keys")
#: Shares of the feeds in what is published.
SHARES = (0.8, 0.1, 0.1)
#: Number and rate per second of the happenings (posts, edits, deletions) of the warm-up. OVERLOAD times its
#: final records per second is published while the capacity is measured, of which the share FROM of the time
#: does not count.
BURST, BURST_RATE, OVERLOAD, FROM = 2000, 3000.0, 1.2, 0.2
#: Reports that the sources look for duplicates in: few, so that they are all there before WARM_UP is over.
WINDOW = 10_000
SAMPLE_SECONDS = 5.0
#: Seconds until what is published must have come out.
DRAIN_SECONDS = 300.0
#: Part of the samples before which memory and lag are not compared.
WARM_UP = 0.1
#: Maximum growth of flat memory, as a share: of its last third over its first, and of the straight line
#: through all samples. Seconds below which 95 % of the lags must be, and by which the lag may grow.
FLAT, LAG_SECONDS, LAG_GROWTH = 0.05, 30.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long the steady load lasts, and how large it and the burst are."""

    minutes: float
    share: float = 0.8
    """Of the capacity."""
    capacity_seconds: float = 60.0
    """Of the overload that shows the capacity: in some seconds the processes do more than they sustain."""
    tiny: bool = True
    """Tiny models instead of the bundled ones."""


@dataclass(slots=True)
class Samples:
    """Of each moment of the load: the lag in happenings, and the resident memory of each process in MB."""

    lag: list[int] = field(default_factory=list)
    memory: list[dict[str, float]] = field(default_factory=list)

    def figures(self, rate: float) -> dict[str, Any]:
        """Lag in records and seconds, and memory, each in the first and in the last third of the samples;
        what comes before WARM_UP counts for neither.
        """
        lags = sorted(self.lag)
        p95 = lags[int(0.95 * (len(lags) - 1))]
        first, last = (statistics.median(third) for third in _thirds(self.lag))
        return {
            "samples": len(self.lag),
            "lag_median": statistics.median(lags),
            "lag_p95": p95,
            "lag_most": lags[-1],
            "lag_seconds_p95": round(p95 / rate, 1),
            "lag_seconds_first_third": round(first / rate, 1),
            "lag_seconds_last_third": round(last / rate, 1),
            "lag_at_end": self.lag[-1],
            "rows": {name: _level([sample[name] for sample in self.memory]) for name in self.memory[0]},
        }


def _warm(values: Sequence[float]) -> Sequence[float]:
    return values[int(WARM_UP * len(values)) :]


def _thirds(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The first and the last third of what comes after WARM_UP."""
    third = max(1, len(_warm(values)) // 3)
    return _warm(values)[:third], values[-third:]


def _level(memory: Sequence[float]) -> dict[str, float]:
    """Whether the memory of a process grows: medians of the thirds in MB, and the slope in MB an hour of the
    straight line through the samples after WARM_UP.
    """
    first, last = (statistics.median(third) for third in _thirds(memory))
    hours = [i * SAMPLE_SECONDS / 3600 for i in range(len(_warm(memory)))]
    slope = statistics.linear_regression(hours, _warm(memory)).slope if len(hours) > 1 else 0.0
    return {
        "MB first third": round(first, 1),
        "MB last third": round(last, 1),
        "growth": round(last / first - 1, 3),
        "MB an hour": round(slope, 1),
        "growth of the line": round(slope * hours[-1] / first, 3),
    }


def verdict(figures: Mapping[str, Any]) -> dict[str, bool]:
    """Whether a run is as it should be; the bounds are FLAT, LAG_SECONDS and LAG_GROWTH."""
    rows = figures["rows"].values()
    lag_growth = figures["lag_seconds_last_third"] - figures["lag_seconds_first_third"]
    names = [*MISSING, *(f"short_questions_{name}" for name in MISSING), "dead_letters"]
    missing = sum(figures[name] for name in names)
    found = {
        "memory_is_flat": all(max(row["growth"], row["growth of the line"]) < FLAT for row in rows),
        "lag_is_bounded": figures["lag_seconds_p95"] < LAG_SECONDS and lag_growth < LAG_GROWTH,
        "every_record_is_accounted_for": missing == 0 and figures["records"] >= figures["published"],
    }
    return {"passed": all(found.values()), **found}


class Load:
    """The feeds, the running processes and what has come out."""

    def __init__(
        self, feeds: Sequence[Feed], found: Found, short: Found, running: dict[str, processes.Running]
    ) -> None:
        """`found`: of the events; `short`: of the short questions, whose feed is the last."""
        self.pace = Pace(feeds, SHARES)
        self._feeds = feeds
        self._found = found
        self._short = short
        self._running = running

    def extend(self, happenings: int) -> None:
        for feed, share in zip(self._feeds, SHARES, strict=True):
            feed.extend(round(happenings * share))

    async def capacity(self, seconds: float) -> float:
        """The final records per second while more is published, for `seconds`."""
        self.extend(BURST)
        self.pace.rate = BURST_RATE
        before, started = self._found.records, time.monotonic()
        await self.drained()
        overload = OVERLOAD * (self._found.records - before) / (time.monotonic() - started)
        self.extend(round(overload * seconds))
        self.pace.rate = overload
        await asyncio.sleep(FROM * seconds)
        before, started = self._found.records, time.monotonic()
        await self._until(lambda: self.pace.is_over)
        capacity = (self._found.records - before) / (time.monotonic() - started)
        await self.drained()
        return capacity

    async def steady(self, rate: float, seconds: float) -> Samples:
        """Publishes at this rate; samples while it does. What has not come out DRAIN_SECONDS later is lost,
        which the comparison tells.
        """
        self.extend(round(rate * seconds))
        samples = Samples()
        self.pace.rate = rate
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + DRAIN_SECONDS):
                while not self.pace.is_over:
                    await asyncio.sleep(SAMPLE_SECONDS)
                    samples.lag.append(self.pace.published - self._found.records)
                    samples.memory.append({name: _resident(p.pid) for name, p in self._running.items()})
            await self.drained()
        return samples

    def compared(self) -> dict[str, int]:
        """What is missing or wrong among the final records."""
        expected: dict[str, str | None] = {}
        for feed in self._feeds:
            expected |= feed.expected()
        short = self._short.compared(self._feeds[-1].expected())
        return self._found.compared(expected) | {f"short_questions_{name}": short[name] for name in MISSING}

    async def drained(self) -> None:
        questions = self._feeds[-1].world
        await self._until(
            lambda: (
                self.pace.is_over
                and self._found.records >= self.pace.published
                and self._short.records >= questions.published
            )
        )

    async def _until(self, true: Callable[[], bool]) -> None:
        """Raises AssertionError where a process ends, and TimeoutError."""
        async with asyncio.timeout(DRAIN_SECONDS):
            while not true():
                ended = [name for name, process in self._running.items() if process.poll() is not None]
                assert not ended, f"ended by itself: {ended}"
                await asyncio.sleep(0.05)


def _resident(pid: int) -> float:
    """MB of memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


async def run(kafka: LocalKafka, folder: Path, plan: Plan) -> dict[str, Any]:
    """The figures of a run."""
    env = {"PV_DUPLICATE_REPORTS": str(WINDOW)} | ({"PV_RELEASES": _tiny(folder)} if plan.tiny else {})
    site = await asyncio.to_thread(partial(Site, kafka, folder, **env))
    posts = Feed(POSTS.name, 1)
    lines = [Lines(topic.name, 2 + i, folder) for i, topic in enumerate((SENTENCES, QUESTIONS))]
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Server(posts.world))
        found, short = [
            await stack.enter_async_context(counting(site.settings, topic.name))
            for topic in (EVENTS, SUMMARIES)
        ]
        running = await _started(stack, site, _commands(server, lines))
        load = Load([posts, *lines], found, short, running)
        await asyncio.to_thread(processes.wait_until, lambda: processes.is_ready(site.port), "ready", 400.0)
        async with asyncio.timeout(DRAIN_SECONDS):
            while not server.connections:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        stack.callback(asyncio.create_task(load.pace.run()).cancel)
        capacity = await load.capacity(plan.capacity_seconds)
        rate = plan.share * capacity
        samples = await load.steady(rate, 60 * plan.minutes)
    figures = {
        "models": "tiny" if plan.tiny else "bundled",
        "minutes": plan.minutes,
        "capacity_records_per_second": round(capacity, 1),
        "rate_records_per_second": round(rate, 1),
        "published": load.pace.published,
        **load.compared(),
        "dead_letters": processes.count(kafka.bootstrap, *(t.dead_letters.name for t in CONSUMED)),
        **samples.figures(rate),
    }
    return {**verdict(figures), **figures}


def _commands(server: Server, lines: Sequence[Lines]) -> dict[str, list[str]]:
    commands = {
        "up": ["up"],
        "source of posts": ["source", "bluesky", "--bluesky-server", server.endpoint, "--all"],
    }
    for one in lines:
        arguments = ["--topic", one.topic, "--path", str(one.file), "--all"]
        commands[f"source of {one.topic}"] = ["source", "ndjson", *arguments]
    return commands


async def _started(
    stack: AsyncExitStack, site: Site, commands: dict[str, list[str]]
) -> dict[str, processes.Running]:
    running = {}
    for name, command in commands.items():
        port = site.port if name == "up" else processes.free_port()
        context = site.running(*command, PV_HTTP_PORT=str(port))
        running[name] = await asyncio.to_thread(stack.enter_context, context)
    return running


def _tiny(folder: Path) -> str:
    """PV_RELEASES with a tiny release for every task."""
    base = tiny_bert(folder)
    return json.dumps({task: str(tiny_release(task, base, folder / "tiny").path) for task in TASKS})


def main(
    minutes: Annotated[float, typer.Option(help="minutes of steady load")] = 30.0,
    share: Annotated[float, typer.Option(help="load, as a share of the capacity")] = 0.8,
    capacity: Annotated[float, typer.Option(help="seconds for which the capacity is measured")] = 60.0,
    tiny: Annotated[bool, typer.Option(help="tiny models instead of the bundled ones")] = True,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    plan = Plan(minutes=minutes, share=share, capacity_seconds=capacity, tiny=tiny)
    with tempfile.TemporaryDirectory(prefix="steady-") as folder, own_kafka() as kafka:
        figures = asyncio.run(run(kafka, Path(folder), plan))
    rows = figures.pop("rows")
    print_and_write({**figures, **provenance("operation.steady"), "rows": rows}, result)
    raise typer.Exit(0 if figures["passed"] else 1)


if __name__ == "__main__":
    run_program(main)
