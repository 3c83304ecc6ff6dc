"""The threads of inference, and how many of them this machine should have."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
#: Above this the threads wait for Python's lock more than they compute: start more processes.
MOST_WORKERS = 8
#: Bytes of memory of a process with all five models, and what each worker beyond the first adds to it.
BASE_BYTES, WORKER_BYTES = 2 << 30, 256 << 20
_CONTROL_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


class InferenceWorkers:
    """Runs synchronous work off the event loop, each piece in whichever thread is free; torch and FAISS
    release the GIL while they compute.

    `workers` is the number of threads, `threads` the number that torch uses in each. `ahead` batches may be
    decoded in addition to those that the threads work on.
    """

    def __init__(self, workers: int = 1, threads: int = 1, ahead: int = 0) -> None:
        self.workers = workers
        self._threads = threads
        self._places = workers + ahead
        self._in_work = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._running = 0
        self._idle, self._open, self._alone = asyncio.Event(), asyncio.Event(), asyncio.Lock()
        self._open.set()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="inference")

    @classmethod
    def of(cls, workers: int, threads: int, device: str) -> InferenceWorkers:
        """Workers and threads by the settings, where 0 is the default: together they use all processors. With
        a GPU one batch is decoded ahead.
        """
        workers = workers or min(default_workers(device), max(1, processors() // max(1, threads)))
        return cls(workers, threads or max(1, processors() // workers), ahead=0 if device == "cpu" else 1)

    async def place(self) -> None:
        """Waits for a place for another batch, in the order of the calls. There are as many places as threads
        and batches ahead. The place is held until `run` has used it, or `give_back` returns it.
        """
        if self._in_work < self._places:
            self._in_work += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Returns a place, used or not, and gives it to the first that waits."""
        self._in_work -= 1
        while self._waiting and self._in_work < self._places:
            turn = self._waiting.popleft()
            if not turn.cancelled():
                self._in_work += 1
                turn.set_result(None)

    async def run(self, work: Callable[[], T], *, placed: bool = False, alone: bool = False) -> T:
        """Starts `work` when all earlier work has started and a thread is free; returns its result. With
        `placed` it uses a place of `place`, and without one of its own, without waiting. With `alone` nothing
        else runs meanwhile.
        """
        if not placed:
            self._in_work += 1
        try:
            if alone:
                return await self._run_alone(work)
            while not self._open.is_set():
                await self._open.wait()
            return await self._run(work)
        finally:
            self.give_back()

    async def _run_alone(self, work: Callable[[], T]) -> T:
        async with self._alone:
            self._open.clear()
            try:
                while self._running:
                    self._idle.clear()
                    await self._idle.wait()
                return await self._run(work)
            finally:
                self._open.set()

    async def _run(self, work: Callable[[], T]) -> T:
        self._running += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._limited, work)
        finally:
            self._running -= 1
            self._idle.set()

    def close(self) -> None:
        """Drops waiting work; does not wait for the running one."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _limited(self, work: Callable[[], T]) -> T:
        # Each time, because what the work imports begins with a thread for each processor.
        set_threads(self._threads)
        try:
            return work()
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                raise
            # asyncio never ends the wait for a StopIteration, and a panic of a library in Rust (tokenizers)
            # is no Exception: the stage would stand still and nothing would end the process.
            raise RuntimeError(type(error).__name__).with_traceback(error.__traceback__) from None


def set_threads(threads: int) -> None:
    """How many threads the products of the calling thread use, in torch and FAISS where they are loaded."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    if "faiss" in sys.modules:
        sys.modules["faiss"].omp_set_num_threads(threads)


def default_workers(device: str) -> int:
    """The number of workers: one for each processor, as far as the memory allows; one for a GPU, whose FAISS
    index is not thread-safe.
    """
    if device != "cpu":
        return 1
    affordable = 1 + max(0, memory() - BASE_BYTES) // WORKER_BYTES
    return min(processors(), affordable, MOST_WORKERS)


def processors() -> int:
    """The processors that this process may use, also where the quota of a container allows fewer than it
    sees; at least 1.
    """
    quotas = [words for words in _limits("cpu.max") if words[0].isdigit()]
    allowed = [round(int(quota) / int(period)) for quota, period in quotas]
    return max(1, min([len(os.sched_getaffinity(0)), *allowed]))


def memory() -> int:
    """Bytes of memory of this machine, or of this container where it may use less."""
    allowed = [int(words[0]) for words in _limits("memory.max") if words[0].isdigit()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *allowed])


def _limits(name: str) -> Iterator[list[str]]:
    """The words of a file of this process' control group and of those around it (version 2)."""
    try:
        lines = _OWN_GROUPS.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if own is None:
        return
    for folder in (_CONTROL_GROUPS / own, *(_CONTROL_GROUPS / own).parents):
        try:
            words = (folder / name).read_text(encoding="ascii").split()
        except OSError:
            continue
        if words:
            yield words


def lower_priority() -> None:
    """Makes the current thread leave the processors to inference: one torch thread, and on Linux niceness 5.

    Not the highest niceness: on a busy machine the thread would then hold the GIL without progress.
    """
    set_threads(1)
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)
