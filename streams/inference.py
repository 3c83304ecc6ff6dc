"""One thread for everything that touches a device, so that no two predictions ever overlap on it."""

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
    """Runs synchronous work off the event loop; torch and FAISS release the interpreter lock while they
    compute.
    """

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or len(os.sched_getaffinity(0))
        # A fork of the tokenizer's own pool deadlocks, and one sentence is too short to be worth splitting.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="inference", initializer=self._set_threads)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _set_threads(self) -> None:
        import torch  # noqa: PLC0415  seconds to import; only a process with a model pays for it

        torch.set_num_threads(self._threads)


def be_polite() -> None:
    """For a thread beside the inference thread: one thread of computation, a lower priority where a thread
    has one. Not the lowest, or on a busy machine it would hold the interpreter lock without getting on.
    """
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5)
