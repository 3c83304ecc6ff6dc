"""Batches in several threads at once: whichever ends first, what comes out is in the order of the offsets."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.agents import ner
from streams.inference_threads import InferenceWorkers
from streams.records import Inbound, Report, TaggedReport
from streams.stage import Stage, StageBroken, run_stage
from streams.topics import MENTIONS, POSTS
from tests.fakes import FakePorts, FakeTagger, batches_of, inbound, loaded
from tests.streams.polling import until

T = TypeVar("T")
STAGE: Stage[Report, TaggedReport] = Stage("ner", POSTS, MENTIONS, ner.predict)
#: No test needs a tenth of it.
SECONDS = 20.0


class ThreadedPorts(FakePorts):
    """Ports with real inference threads."""

    def __init__(self, model: Any, workers: int) -> None:
        super().__init__(loaded(model))
        self.inference = InferenceWorkers(workers)
        self.workers = workers

    async def infer(self, work: Callable[[], T], batch: Sequence[Inbound]) -> T:
        return await self.inference.run(work)

    def outputs(self) -> list[dict[str, Any]]:
        return [orjson.loads(value or b"") for _, value, _ in self.to("mentions")]


class SleepyTagger(FakeTagger):
    """Takes as many milliseconds as each text says, and remembers the most calls at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self.running = 0
        self._lock = threading.Lock()

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Any]]:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            time.sleep(sum(int(text.split()[0]) for text in batch if text != "canary") / 1000)
            return super().predict(batch)
        finally:
            with self._lock:
                self.running -= 1


class GatedTagger(FakeTagger):
    """Waits for the event of a text's first word."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.started = {name: threading.Event() for name in names}
        self.may_end = {name: threading.Event() for name in names}

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Any]]:
        for name in {text.split()[0] for text in batch} & self.started.keys():
            self.started[name].set()
            assert self.may_end[name].wait(SECONDS)
        return super().predict(batch)

    async def until_started(self, name: str) -> None:
        assert await asyncio.to_thread(self.started[name].wait, SECONDS)


def post(offset: int, text: str) -> Inbound:
    return inbound(offset, orjson.dumps({"id": f"r{offset}", "text": text}))


async def finish(ports: ThreadedPorts, batches: AsyncIterator[Sequence[Inbound]]) -> None:
    try:
        await asyncio.wait_for(run_stage(STAGE, batches, ports), SECONDS)
    finally:
        ports.inference.close()


@settings(max_examples=30, deadline=None)
@given(
    workers=st.integers(1, 4),
    delays=st.lists(st.lists(st.sampled_from([0, 0, 1, 5, 20]), min_size=1, max_size=4), max_size=12),
    poison=st.sets(st.integers(0, 47), max_size=3),
    deliveries=st.booleans(),
)
def test_outputs_and_acknowledgements_keep_the_order_whatever_each_inference_takes(
    workers: int, delays: list[list[int]], poison: set[int], deliveries: bool
) -> None:
    tagger = SleepyTagger()
    batches: list[list[Inbound]] = []
    offset = 0
    for own in delays:
        texts = [f"{ms} {'poison' if offset + i in poison else 'fine'}" for i, ms in enumerate(own)]
        batches.append([post(offset + i, text) for i, text in enumerate(texts)])
        offset += len(own)

    async def run() -> ThreadedPorts:
        ports = ThreadedPorts(tagger, workers)
        if deliveries:
            ports.hold = asyncio.Event()
            asyncio.get_running_loop().call_later(0.01, ports.hold.set)
        await finish(ports, batches_of(*batches))
        return ports

    ports = asyncio.run(run())
    bad = {i for i in poison if i < offset}
    assert ports.acked == list(range(offset))
    assert [o["origin"]["offset"] for o in ports.outputs()] == [i for i in range(offset) if i not in bad]
    assert [int(h["pv-offset"] or b"") for _, _, h in ports.to("posts.dead")] == sorted(bad)
    assert tagger.most <= workers
    for i, topic in enumerate(t for t, *_ in ports.sent):
        assert topic == ("posts.dead" if i in bad else "mentions")


class Panic(BaseException):
    """As the panic of a library written in Rust, such as the tokenizers: no Exception."""


class PanickingTagger(FakeTagger):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Any]]:
        if any(self.poison in text for text in batch):
            raise self.error
        return super().predict(batch)


@pytest.mark.parametrize("error", [StopIteration(), Panic("a private text"), SystemExit(3)])
async def test_what_is_no_ordinary_error_is_the_fault_of_its_record_too(error: BaseException) -> None:
    ports = ThreadedPorts(PanickingTagger(error), 2)
    await finish(ports, batches_of([post(0, "fine"), post(1, "poison"), post(2, "fine")]))
    assert ports.acked == [0, 1, 2]
    assert [o["id"] for o in ports.outputs()] == ["r0", "r2"]
    ((_, _, headers),) = ports.to("posts.dead")
    assert headers["pv-reason"] == b"poison"
    assert (headers["pv-detail"] or b"").startswith(b"RuntimeError in predict, line")


async def test_a_batch_that_is_confirmed_first_is_acknowledged_after_the_one_before_it() -> None:
    confirmed = asyncio.Event()

    class Ports(ThreadedPorts):
        async def _deliver(self, topic: str) -> None:
            if topic == "posts.dead":
                await confirmed.wait()
            self.log.append(f"confirmed {topic}")

    ports = Ports(FakeTagger(), 2)
    running = asyncio.create_task(finish(ports, batches_of([post(0, "poison")], [post(1, "fine")])))
    await until(lambda: "confirmed mentions" in ports.log)
    await asyncio.sleep(0.05)
    assert ports.acked == []
    confirmed.set()
    await running
    assert ports.acked == [0, 1]


async def test_short_texts_around_a_long_one_do_not_wait_for_its_inference() -> None:
    tagger = GatedTagger("long")
    ports = ThreadedPorts(tagger, 2)
    ports.batch_characters = 1000
    texts = ["fine", "fine", "long " * 100, "fine", "fine"]
    records = [post(i, text) for i, text in enumerate(texts)]
    running = asyncio.create_task(finish(ports, batches_of(records)))
    await tagger.until_started("long")
    await until(lambda: ports.acked == [0, 1] and tagger.batches == [["fine", "fine"]] * 2)
    tagger.may_end["long"].set()
    await running
    assert ports.acked == [0, 1, 2, 3, 4]
    assert [o["id"] for o in ports.outputs()] == [f"r{i}" for i in range(5)]


async def test_a_model_that_is_swapped_in_mid_stream_never_mixes_with_the_old_one() -> None:
    rounds, size = 60, 3
    old, new = "a" * 12, "b" * 12
    ports = ThreadedPorts(SleepyTagger(), 3)
    ports.current = replace(ports.current, version=old, generation=1)

    async def batches() -> AsyncIterator[Sequence[Inbound]]:
        for i in range(rounds):
            if i == rounds // 2:
                ports.current = replace(loaded(SleepyTagger(), new), generation=2)
            yield [post(i * size + j, f"{(i * 7 + j) % 4} fine") for j in range(size)]

    await finish(ports, batches())
    made = [(o["releases"]["ner"], o["generations"]["ner"]) for o in ports.outputs()]
    half = rounds * size // 2
    assert made == [(old, 1)] * half + [(new, 2)] * half


async def test_a_batch_keeps_the_model_of_its_start_when_halves_of_it_are_tried_again() -> None:
    tagger = GatedTagger("first")
    ports = ThreadedPorts(tagger, 2)
    batch = [post(0, "first"), post(1, "poison"), post(2, "fine")]
    running = asyncio.create_task(finish(ports, batches_of(batch, [post(3, "later")])))
    await tagger.until_started("first")
    ports.current = loaded(FakeTagger(failing=True), "b" * 12)
    tagger.may_end["first"].set()
    await running
    assert {o["releases"]["ner"] for o in ports.outputs()} == {"0123456789ab"}
    ((_, _, headers),) = ports.to("posts.dead")
    assert (headers["pv-offset"], headers["pv-release"]) == (b"1", b"0123456789ab")


async def test_a_broken_model_in_one_thread_ends_the_stage_after_what_came_before() -> None:
    tagger = GatedTagger("slow")
    ports = ThreadedPorts(tagger, 3)

    async def batches() -> AsyncIterator[Sequence[Inbound]]:
        yield [post(0, "slow")]
        ports.current = loaded(FakeTagger(failing=True))
        yield [post(1, "fine")]
        ports.current = loaded(FakeTagger())
        yield [post(2, "fine")]
        await asyncio.Event().wait()

    running = asyncio.create_task(finish(ports, batches()))
    await tagger.until_started("slow")
    await asyncio.sleep(0.05)
    assert not running.done()
    tagger.may_end["slow"].set()
    with pytest.raises(StageBroken, match="canary"):
        await running
    assert [o["id"] for o in ports.outputs()] == ["r0"]
    assert ports.acked == [0]


async def test_a_cancelled_stage_acknowledges_nothing_that_is_in_inference() -> None:
    tagger = GatedTagger("slow")
    ports = ThreadedPorts(tagger, 2)
    batches = batches_of([post(0, "slow")], [post(1, "fine")], [post(2, "fine")])
    running = asyncio.create_task(finish(ports, batches))
    await tagger.until_started("slow")
    await until(lambda: ["fine"] in tagger.batches)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    tagger.may_end["slow"].set()
    await asyncio.sleep(0.05)
    assert (ports.sent, ports.acked) == ([], [])


async def test_a_batch_that_is_lost_in_a_rebalance_holds_no_other_up() -> None:
    ports = ThreadedPorts(SleepyTagger(), 2)
    ports.lost = {1}
    await finish(ports, batches_of(*([post(i, f"{9 - 3 * i} fine")] for i in range(4))))
    assert [o["id"] for o in ports.outputs()] == ["r0", "r2", "r3"]
    assert ports.acked == [0, 2, 3]


@pytest.mark.parametrize("workers", [1, 3])
async def test_no_more_than_twice_the_workers_batches_run_ahead_of_the_confirmations(workers: int) -> None:
    ports = ThreadedPorts(FakeTagger(), workers)
    ports.hold = asyncio.Event()
    running = asyncio.create_task(finish(ports, batches_of(*([post(i, "fine")] for i in range(20)))))
    await until(lambda: len(ports.sent) == 2 * workers)
    await asyncio.sleep(0.05)
    assert (len(ports.sent), ports.acked) == (2 * workers, [])
    ports.hold.set()
    await running
    assert ports.acked == list(range(20))
