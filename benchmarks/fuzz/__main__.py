"""Does any record stop a stage or get lost? Fuzzed records run through the real stages with stub models.

Every record must be accounted for exactly once: as an output, a tombstone passed on, a dead letter with its
reason, or a drop that is counted; a valid one as an output. The seed determines the records.
"""

from __future__ import annotations

import asyncio
import random
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import orjson
import typer

from benchmarks.fuzz.records import Pool, draw_pool, fuzzed
from benchmarks.fuzz.stubs import stub
from benchmarks.machine import print_and_write, provenance
from models.loading import Loaded
from streams import metrics
from streams.agents.pipeline import STAGES
from streams.dead_letters.headers import Reason, place_of
from streams.items import Item
from streams.records import Headers, Inbound
from streams.stage import Stage, run_stage
from streams.topics import INPUTS
from training.common.program_help import run_program

T = TypeVar("T")
#: Records of a partition, after which another one begins.
PARTITION = 5000
BATCH, MAX_OUTPUT_BYTES = 64, 10_000
REASONS = frozenset(get_args(Reason))


@dataclass(slots=True)
class Result:
    """Counts over all partitions; all but the first four must be 0."""

    records: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    sound: int = 0
    deaths: int = 0
    lost: int = 0
    twice: int = 0
    without_reason: int = 0
    refused_sound: int = 0
    first_death: str = ""

    @property
    def clean(self) -> bool:
        return not (self.deaths or self.lost or self.twice or self.without_reason or self.refused_sound)


class Ledger:
    """The ports of a stage that record the outcome of each source record, in the order of the batch."""

    workers = 1
    batch_characters = 32_000
    max_output_bytes = MAX_OUTPUT_BYTES
    keep_text = False

    def __init__(self, stage: Stage[Any, Any]) -> None:
        self._loaded = stub(stage.name)
        self._stage = stage
        self.outcomes: dict[int, str] = {}
        self.acknowledged: list[int] = []
        self.reasons: Counter[str] = Counter()
        self.twice = self.without_reason = 0
        self._waiting: list[Inbound] = []

    def snapshot(self) -> Loaded:
        return self._loaded

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        return work()

    async def owns(self, batch: Sequence[Inbound]) -> bool:
        self._waiting = [r for r in batch if r.key is not None or r.value is not None]
        return True

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Awaitable[Any]:
        record = self._waiting.pop(0)
        if key is None and value is None:
            raise ValueError("a message needs a key or a value")
        for name, _ in headers:
            name.encode()  # as the client does
        outcome = "output" if value is not None else "tombstone"
        if topic == self._stage.source.dead_letters.name:
            outcome = "dead"
            self._check_letter(record, dict(headers))
        elif topic != self._stage.sink.name:
            raise ValueError(f"nothing belongs on {topic}")
        elif value is not None and self._stage.source in INPUTS:
            self.twice += orjson.loads(value)["origin"]["offset"] != record.offset
        self.twice += record.offset in self.outcomes
        self.outcomes[record.offset] = outcome
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        confirmed.set_result(None)
        return confirmed

    def _check_letter(self, record: Inbound, headers: dict[str, bytes | None]) -> None:
        reason = (headers.get("pv-reason") or b"").decode()
        self.reasons[reason] += 1
        place = place_of(list(headers.items()))
        named = reason in REASONS and headers.get("pv-detail")
        self.without_reason += not named or place is None or place.offset != record.offset

    async def ack(self, record: Inbound) -> None:
        self.acknowledged.append(record.offset)

    def observe(self, done: Sequence[Item]) -> None:
        """No shadow and no drift here."""


def _dropped(stage: str) -> float:
    labels = {"stage": stage, "outcome": "dropped"}
    return metrics.REGISTRY.get_sample_value("pv_records_total", labels) or 0.0


async def run_partition(stage: Stage[Any, Any], pool: Pool, rng: random.Random, n: int, into: Result) -> None:
    """Runs `n` fuzzed records of one partition through a stage and adds what became of them to `into`."""
    records = list(fuzzed(stage.source.name, pool, rng, n))
    ledger, before = Ledger(stage), _dropped(stage.name)

    async def batches() -> AsyncIterator[Sequence[Inbound]]:
        for i in range(0, n, BATCH):
            yield [r for r, _ in records[i : i + BATCH]]

    try:
        await run_stage(stage, batches(), ledger)
    except Exception as error:
        into.deaths += 1
        into.first_death = into.first_death or f"{stage.name}: {type(error).__name__}: {error}"[:300]
    dropped = [r.offset for r, _ in records if r.key is None and r.value is None]
    accounted = ledger.outcomes.keys() | (
        set(dropped) if _dropped(stage.name) - before == len(dropped) else set()
    )
    into.records += n
    into.sound += sum(sound for _, sound in records)
    into.outcomes.update(ledger.outcomes.values())
    into.outcomes["dropped"] += len(dropped)
    into.reasons += ledger.reasons
    into.lost += n - len(accounted) + (ledger.acknowledged != list(range(n)))
    into.twice += ledger.twice
    into.without_reason += ledger.without_reason
    into.refused_sound += sum(sound and ledger.outcomes.get(r.offset) != "output" for r, sound in records)


def run(records: int, number: int, examples: int) -> Result:
    """Fuzzes the stages in turn, a partition each time; `examples`: how much hypothesis draws."""
    result = Result()
    pools = {s.name: draw_pool(s.source.name, number, examples) for s in STAGES}
    for i, start in enumerate(range(0, records, PARTITION)):
        stage = STAGES[i % len(STAGES)]
        rng = random.Random(f"{number}/{i}")
        n = min(PARTITION, records - start)
        asyncio.run(run_partition(stage, pools[stage.name], rng, n, result))
    return result


def main(
    records: Annotated[int, typer.Option(help="number of records")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="seed of the records")] = 20261123,
    examples: Annotated[int, typer.Option(help="records drawn by hypothesis for each topic")] = 2000,
    result: Annotated[Path | None, typer.Option("--json", help="write the figures here")] = None,
) -> None:
    started = time.monotonic()
    found = run(records, seed, examples)
    seconds = time.monotonic() - started
    own = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "records": found.records,
        "seed": seed,
        **{name: getattr(found, name) for name in ("sound", "deaths", "lost", "twice")},
        "dead_letters_without_reason": found.without_reason,
        "sound_refused": found.refused_sound,
        **{f"outcome_{name}": count for name, count in sorted(found.outcomes.items())},
        **{f"reason_{name}": count for name, count in sorted(found.reasons.items())},
        "seconds": round(seconds, 1),
        "processor_seconds": round(own.ru_utime + own.ru_stime, 1),
        **provenance("fuzz"),
    }
    print_and_write(figures, result)
    if found.first_death:
        print(found.first_death)
    raise typer.Exit(0 if found.clean else 1)


if __name__ == "__main__":
    run_program(main)
