"""Divides a process into several, and starts again what ends unasked."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streams.inference_threads import default_workers, processors
from streams.settings import Settings

log = logging.getLogger(__name__)
#: A process that ends sooner, in seconds, ends early; after so many early ends in a row all are stopped.
EARLY_SECONDS, EARLY_ENDS = 60.0, 3
#: Seconds beyond PV_GRACE after which a process is killed: it ends itself before.
KILL_SECONDS = 20.0
#: What the supervisor waits for: the end of a process, or its own stop.
_AWAITED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
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


def divide(commands: Sequence[Command], grace: float, *, copies: bool) -> int:
    """Runs all commands until SIGTERM or SIGINT, which it passes on, and starts again what ends before. With
    `copies` they are copies of this process, which must have one thread: in each of them the call returns the
    number of its command.

    In this process it raises SystemExit: code 0 where all ended well after the signal. Where a process ends
    early again and again, all are stopped, and the code is 1: the supervisor of this process sees what it
    would see of a single one.
    """
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    supervisor, early = os.getpid(), [0] * len(commands)
    running: dict[int, tuple[int, float]] = {}
    due = list(range(len(commands)))
    while True:
        for number in due:
            pid = os.fork()
            if pid == 0:
                _begin(commands[number], supervisor, copies)
                return number
            log.info("process %d has the id %d", number + 1, pid)
            running[pid] = number, time.monotonic()
        if signal.sigwait(_AWAITED) != signal.SIGCHLD:
            raise SystemExit(_stop(list(running), grace))
        due.clear()
        for pid, code in _ended(list(running)):
            number, began = running.pop(pid)
            early[number] = early[number] + 1 if time.monotonic() - began < EARLY_SECONDS else 0
            log.error("process %d has ended %s", number + 1, _how(code))
            due.append(number)
        if any(early[number] >= EARLY_ENDS for number in due):
            log.error("a process ends within %.0f s of each start: stopping all", EARLY_SECONDS)
            _stop(list(running), grace)
            raise SystemExit(1)


def _begin(command: Command, supervisor: int, copies: bool) -> None:
    """What a new process does first; it stops when the one that has started it is killed (on Linux)."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != supervisor:
            os.kill(os.getpid(), signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
    os.environ.update(command.environment)
    if not copies:
        os.execv(command.arguments[0], list(command.arguments))


def _ended(running: Sequence[int]) -> list[tuple[int, int]]:
    """The processes that have ended, with their exit codes (negative: the signal)."""
    found = ((pid, os.waitpid(pid, os.WNOHANG)) for pid in running)
    return [(pid, os.waitstatus_to_exitcode(status)) for pid, (ended, status) in found if ended]


def _stop(left: list[int], grace: float) -> int:
    """Asks the processes to stop, and kills those that do not; 0 where all then ended well, else 1."""
    for pid in left:
        os.kill(pid, signal.SIGTERM)
    code, until = 0, time.monotonic() + grace + KILL_SECONDS
    while left:
        for pid, own in _ended(left):
            left.remove(pid)
            code = max(code, int(own != 0))
        if time.monotonic() > until:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return code


def _how(code: int) -> str:
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
