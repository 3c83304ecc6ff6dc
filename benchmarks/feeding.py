"""Processes that hold models and predict when they are told: their speed, lock and memory.

What they answer is waited for until a deadline only, and at the end they are killed.
"""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple, Self

from benchmarks.speed.lock import LockProbe
from benchmarks.speed.timing import chunks
from models import language
from models.memory import peak_bytes
from models.process import prepare
from models.types import JUDGE
from streams.agents.pipeline import stage_named
from streams.agents.second_reading import judged
from streams.inference_threads import set_threads
from streams.rollout.handle import load_task
from streams.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Records with the names of the stages (or the judge) that they pass, and where these are computed."""

    ways: Sequence[tuple[Sequence[str], Sequence[Any]]]
    device: str = "cpu"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"


class Turn(NamedTuple):
    """Batches of so many records in so many threads, until `records` are done and `seconds` have passed."""

    batch: int
    threads: int = 1
    records: int = 1
    seconds: float = 0.0


class Taken(NamedTuple):
    """The figures of a turn; `megabytes` is the peak of the process."""

    records: int
    per_second: float
    cpu_ms_a_record: float
    lock_share: float
    megabytes: float


class Child:
    """A process that runs `work(pipe, *given)`."""

    def __init__(self, work: Callable[..., None], *given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=work, args=(other, *given), daemon=True)
        self._process.start()
        other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.join()

    def tell(self, what: Load | Turn) -> None:
        """Raises RuntimeError where the process has ended."""
        try:
            self._pipe.send(what)
        except OSError:
            self._process.join()
            raise RuntimeError(f"the process ended with code {self._process.exitcode}") from None

    def answer(self, deadline: float) -> Any:
        """The next answer; raises TimeoutError at `deadline` (of time.monotonic), and RuntimeError where the
        process has ended.
        """
        if not self._pipe.poll(max(0.0, deadline - time.monotonic())):
            raise TimeoutError("not within its time")
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"the process ended with code {self._process.exitcode}") from None


def feed(pipe: Connection) -> None:
    """The work of a Child: answers a Load, which takes the place of the one before, with the operations of
    products that a record takes, and a Turn with its Taken.
    """
    prepare()
    language.load()
    ways: list[Way] = []
    with suppress(EOFError):
        while True:
            told = pipe.recv()
            if isinstance(told, Load):
                ways.clear()
                ways += _loaded(told)
                pipe.send(_operations(ways))
            else:
                pipe.send(_take(told, ways))


class Step(NamedTuple):
    predict: Callable[[Any], Any]
    forget: Callable[[], None]
    """Drops what the model kept of earlier records."""


Way = tuple[Sequence[Step], Sequence[Any]]


def _loaded(load: Load) -> list[Way]:
    settings = Settings(device=load.device, dtype=load.dtype)
    names = dict.fromkeys(name for names, _ in load.ways for name in names)
    found = {name: _step(name, settings) for name in names}
    return [([found[name] for name in names], records) for names, records in load.ways]


def _step(name: str, settings: Settings) -> Step:
    loaded = load_task(name, settings).current
    model: Any = loaded.model
    forget = getattr(model, "forget", lambda: None)
    if name == JUDGE:
        return Step(lambda records: judged(model, records), forget)
    return Step(lambda records: stage_named(name).outputs(loaded, records), forget)


def _pass(steps: Sequence[Step], records: Any) -> None:
    for step in steps:
        records = step.predict(records)


def _operations(ways: Sequence[Way]) -> float:
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415  seconds to import

    counted = 0
    with FlopCounterMode(display=False) as counter:
        for steps, records in ways:
            _pass(steps, records[:64])
            counted += len(records[:64])
    return float(counter.get_total_flops() / counted)


def _batches(ways: Sequence[Way], size: int) -> Iterator[tuple[Sequence[Step], Any]]:
    """Batches without an end, those of each way evenly among the others. Records that come again are new."""
    placed = []
    for steps, records in ways:
        whole = list(itertools.islice(itertools.cycle(records), max(size, len(records))))
        parts = list(chunks(whole, size))
        placed += [((i + 0.5) / len(parts), steps, part) for i, part in enumerate(parts)]
    placed.sort(key=lambda found: found[0])
    while True:
        for step in itertools.chain.from_iterable(steps for steps, _ in ways):
            step.forget()
        yield from ((steps, part) for _, steps, part in placed)


def _take(turn: Turn, ways: Sequence[Way]) -> Taken:
    batches, lock, given = _batches(ways, turn.batch), Lock(), 0

    def work() -> tuple[int, float]:
        nonlocal given
        set_threads(1)
        n, began = 0, time.perf_counter()
        while True:
            with lock:
                if given >= turn.records and time.perf_counter() - began >= turn.seconds:
                    return n, n / (time.perf_counter() - began)
                steps, batch = next(batches)
                given += len(batch)
            _pass(steps, batch)
            n += len(batch)

    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    with LockProbe() as probe, ThreadPoolExecutor(turn.threads) as pool:
        cpu = time.process_time()
        parts = [future.result() for future in [pool.submit(work) for _ in range(turn.threads)]]
        cpu = time.process_time() - cpu
    records = sum(n for n, _ in parts)
    # Each thread by its own time: the last batch of another one does not count.
    rate = sum(rate for _, rate in parts)
    return Taken(records, rate, 1000 * cpu / records, probe.share, peak_bytes() / 1e6)
