"""One thread for all model inference, so that two predictions never run on the device at the same time."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class InferenceThread:
    """Runs synchronous work off the event loop; torch and FAISS release the GIL while they compute.

    `threads` is the number of torch threads; 0 uses all processors available to the process.
    """

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or len(os.sched_getaffinity(0))
        # The tokenizer's own thread pool deadlocks after a fork, and one sentence is too short to share out.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="inference", initializer=self._set_threads)

    async def run(self, work: Callable[[], T]) -> T:
        """Runs `work` after all earlier work and returns its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Drops waiting work; does not wait for the running one."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _set_threads(self) -> None:
        import torch  # noqa: PLC0415  takes seconds to import; only a process with a model needs it

        torch.set_num_threads(self._threads)


def lower_priority() -> None:
    """Makes the current thread leave the processors to inference: one torch thread, and on Linux niceness 5.

    Not the highest niceness: on a busy machine the thread would then hold the GIL without progress.
    """
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)
