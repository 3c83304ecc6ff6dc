from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from streams import inference_threads
from streams.inference_threads import InferenceWorkers, default_workers, memory, processors
from streams.settings import Settings

CORES = 6


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this process' control group, inside of another one, on a machine of six processors."""
    folder = tmp_path / "groups" / "slice" / "worker"
    folder.mkdir(parents=True)
    own = tmp_path / "own"
    own.write_text("12:cpu:/old\n0::/slice/worker\n")
    monkeypatch.setattr(inference_threads, "_CONTROL_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(inference_threads, "_OWN_GROUPS", own)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(CORES)))
    return folder


def test_processors_and_memory_are_those_of_any_group_around_this_process(group: Path) -> None:
    assert processors() == CORES
    (group / "cpu.max").write_text("max 100000\n")
    assert processors() == CORES
    (group.parent / "cpu.max").write_text("350000 100000\n")
    assert processors() == 4
    (group / "cpu.max").write_text("20000 100000\n")
    assert processors() == 1
    whole = memory()
    (group / "memory.max").write_text("max\n")
    assert memory() == whole
    (group.parent / "memory.max").write_text("3000000\n")
    assert memory() == 3_000_000


def test_without_control_groups_a_machine_has_all(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference_threads, "_OWN_GROUPS", group / "missing")
    assert processors() == CORES
    assert memory() > 1 << 28


@pytest.mark.parametrize(("gibibytes", "workers"), [(1, 1), (2, 1), (2.3, 2), (3, 5), (64, CORES)])
def test_there_is_a_worker_for_each_processor_as_far_as_the_memory_allows(
    group: Path, gibibytes: float, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference_threads, "memory", lambda: int(gibibytes * (1 << 30)))
    assert default_workers("cpu") == workers
    assert default_workers("cuda") == 1


@pytest.mark.parametrize(
    ("settings", "expected"), [((0, 0), (6, 1)), ((2, 0), (2, 3)), ((0, 3), (2, 3)), ((4, 5), (4, 5))]
)
def test_workers_and_threads_together_use_all_processors_unless_both_are_set(
    group: Path, settings: tuple[int, int], expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference_threads, "memory", lambda: 64 << 30)
    workers = InferenceWorkers.of(*settings, "cpu")
    assert (workers.workers, workers._threads) == expected
    workers.close()


async def test_each_inference_runs_in_as_many_torch_threads_as_it_should() -> None:
    before = torch.get_num_threads()
    workers = InferenceWorkers(2, 1)
    torch.set_num_threads(2)
    try:
        assert [await workers.run(torch.get_num_threads) for _ in range(3)] == [1, 1, 1]
    finally:
        workers.close()
        torch.set_num_threads(before)


def test_a_gpu_has_one_worker() -> None:
    assert Settings(device="cuda", workers=1).workers == 1
    with pytest.raises(ValidationError, match="PV_WORKERS must be 1"):
        Settings(device="cuda", workers=2)


@pytest.mark.parametrize(("device", "batches"), [("cpu", 1), ("cuda", 2)])
async def test_a_gpu_has_its_next_batch_ready_while_it_computes(device: str, batches: int) -> None:
    workers = InferenceWorkers.of(1, 1, device)
    try:
        for _ in range(batches):
            await asyncio.wait_for(workers.place(), 5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(workers.place(), 0.02)
    finally:
        workers.close()


@pytest.mark.parametrize("ahead", [0, 1])
async def test_places_go_to_those_that_wait_in_their_order_as_work_ends(ahead: int) -> None:
    workers = InferenceWorkers(1, 1, ahead)
    entered: list[int] = []

    async def enter(i: int) -> None:
        await workers.place()
        entered.append(i)

    waiting = [asyncio.create_task(enter(i)) for i in range(4)]
    await asyncio.sleep(0.01)
    assert entered == list(range(1 + ahead))
    waiting[1 + ahead].cancel()
    await asyncio.sleep(0)
    workers.give_back()
    await asyncio.sleep(0.01)
    assert entered == [*range(1 + ahead), 2 + ahead], "the one that was cancelled has taken none"
    await asyncio.gather(*(workers.run(int, placed=True) for _ in range(1 + ahead)))
    await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 120)
    workers.close()


async def test_a_place_that_was_granted_to_a_task_that_is_cancelled_goes_to_the_next() -> None:
    workers = InferenceWorkers(1)
    await workers.place()
    first, second = (asyncio.create_task(workers.place()) for _ in range(2))
    await asyncio.sleep(0.01)
    workers.give_back()
    first.cancel()
    await asyncio.wait_for(second, 120)
    assert first.cancelled() or first.cancelling()
    workers.close()


async def test_what_runs_alone_waits_for_other_work_and_lets_no_other_begin() -> None:
    workers, lock = InferenceWorkers(4), threading.Lock()
    running = Counter[str]()
    seen = []

    def work(name: str) -> None:
        with lock:
            running[name] += 1
            seen.append((running["any"], running["alone"]))
        time.sleep(0.002)
        with lock:
            running[name] -= 1

    try:
        names = ["alone" if i % 5 == 4 else "any" for i in range(60)]
        calls = [workers.run(partial(work, name), alone=name == "alone") for name in names]
        async with asyncio.timeout(120):
            await asyncio.gather(*calls)
        assert (0, 1) in seen
        assert max(seen) > (1, 0), "others run side by side"
        assert all(beside == 0 for beside, alone in seen if alone)
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 // 0, alone=True)
        assert await asyncio.wait_for(workers.run(int), 120) == 0
    finally:
        workers.close()


async def test_no_place_is_free_while_other_work_runs() -> None:
    workers, go = InferenceWorkers(1), threading.Event()
    work = asyncio.create_task(workers.run(go.wait))
    await asyncio.sleep(0.01)
    place = asyncio.create_task(workers.place())
    await asyncio.sleep(0.01)
    assert not place.done()
    go.set()
    await asyncio.wait_for(place, 120)
    assert await work
    workers.close()
