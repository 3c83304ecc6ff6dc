"""Runs a command in several processes, and starts again what ends unasked."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from streams.inference_threads import default_workers, processors
from streams.settings import Settings
from streams.stopping import at_signals

log = logging.getLogger(__name__)
#: A process that ends sooner, in seconds, ends early; after so many early ends in a row all are stopped.
EARLY_SECONDS, EARLY_ENDS = 60.0, 3
#: Seconds beyond PV_GRACE after which a process is killed: it ends itself before.
KILL_SECONDS = 20.0
#: The option of Linux' prctl for the signal at the end of the parent.
_PARENT_DEATH_SIGNAL = 1


@dataclass(frozen=True, slots=True)
class Command:
    """The arguments of a process, and its variables beside those of this one."""

    arguments: Sequence[str]
    environment: Mapping[str, str]


def of_this_program(
    arguments: Sequence[str], first: Sequence[str], n: int, settings: Settings
) -> list[Command]:
    """The same `pvstream` command for `n` processes; only the first has the arguments `first` too. They share
    the processors, have names of their own and ports one behind the other, and one folder of state.
    """
    workers = settings.workers or max(1, min(default_workers(settings.device), processors() // n))
    shared = {
        "PV_WORKERS": str(workers),
        "PV_THREADS": str(settings.threads or max(1, processors() // (n * workers))),
    }

    def own(i: int) -> Iterator[tuple[str, str]]:
        yield "PV_HTTP_PORT", str(settings.http_port and settings.http_port + i)
        if settings.instance:
            yield "PV_INSTANCE", f"{settings.instance}-{i}"

    program = (sys.executable, "-m", "streams", *arguments)
    return [Command((*program, *(() if i else first)), shared | dict(own(i))) for i in range(n)]


async def run(commands: Sequence[Command], grace: float) -> int:
    """Runs all commands until SIGTERM or SIGINT, which it passes on; returns the exit code: 0 where all then
    ended well. A process that ends before is started again. Where one ends early again and again, all are
    stopped, and the exit code is 1: the supervisor of this process sees what it would see of a single one.
    """
    stop = asyncio.Event()
    at_signals(stop.set)
    kept = [asyncio.create_task(_keep(command, i, stop, grace)) for i, command in enumerate(commands, 1)]
    try:
        for done in asyncio.as_completed(kept):
            await done
            stop.set()
        return max(task.result() for task in kept)
    finally:
        stop.set()
        await asyncio.gather(*kept, return_exceptions=True)


async def _keep(command: Command, number: int, stop: asyncio.Event, grace: float) -> int:
    """Keeps a process running; returns 0 or 1 once it was stopped, and 1 where it cannot be kept running."""
    early = 0
    while not stop.is_set():
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command.arguments, env=os.environ | command.environment, preexec_fn=_ends_with(os.getpid())
        )
        log.info("process %d has the id %d", number, process.pid)
        ended, stopped = asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())
        await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if stop.is_set():
            return await _stop(process, ended, grace)
        early = early + 1 if time.monotonic() - began < EARLY_SECONDS else 0
        log.error("process %d has ended %s", number, _how(ended.result()))
        if early >= EARLY_ENDS:
            log.error("process %d ends within %.0f s of its start: stopping all", number, EARLY_SECONDS)
            return 1
    return 0


async def _stop(process: Process, ended: asyncio.Task[int], grace: float) -> int:
    """Asks a process to stop, and kills it where it does not."""
    with suppress(ProcessLookupError):
        process.terminate()
    await asyncio.wait((ended,), timeout=grace + KILL_SECONDS)
    if not ended.done():
        process.kill()
    return int(await ended != 0)


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"


def _ends_with(parent: int) -> Callable[[], Any] | None:
    """What a new process calls so that it stops when the process that has started it is killed; on Linux."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def call() -> None:
        prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)

    return call
