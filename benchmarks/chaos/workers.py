"""The worker processes of the chaos benchmark: starting, ending and choosing them."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from tests.integration import processes

WORKERS = 2
#: Seconds that a worker may take to end after SIGTERM.
STOP_SECONDS = 90
#: Seconds until all workers must be ready; on a busy machine a start takes a minute, and some may end first.
READY_SECONDS = 400


class Workers:
    """Worker processes of one stage, started and ended by their process ids."""

    def __init__(self, env: dict[str, str], logs: Path, *, forked: bool = False) -> None:
        self._env = env
        self._logs = logs
        self._forked = forked
        self._started = 0
        self.restarted = 0
        """Workers that ended by themselves and were replaced."""
        self._processes: list[processes.Running] = []
        self._ports: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._processes)

    def add(self) -> None:
        """Starts a worker; its output goes to its own log."""
        port = processes.free_port()
        self._started += 1
        log = self._logs / f"worker-{self._started}.log"
        env = self._env | {"PV_HTTP_PORT": str(port)}
        worker = processes.started("worker", "--stage", "ner", env=env, log=log, forked=self._forked)
        self._processes.append(worker)
        self._ports[worker.pid] = port

    def end(self, how: signal.Signals, index: int) -> None:
        """Ends a worker; raises AssertionError if it does not stop cleanly on SIGTERM."""
        worker = self._processes.pop(index)
        worker.send_signal(how)
        try:
            worker.wait(STOP_SECONDS)
        finally:
            if worker.poll() is None:
                worker.kill()
        if how is signal.SIGTERM and worker.returncode not in (0, 1, -signal.SIGTERM):
            raise AssertionError(f"a worker ended with {worker.returncode} after SIGTERM")

    def suspend(self, index: int, seconds: float) -> None:
        """Stops a worker for some seconds, after which it goes on where it was."""
        worker = self._processes[index]
        worker.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            worker.send_signal(signal.SIGCONT)

    def close(self) -> None:
        for worker in self._processes:
            worker.kill()
            worker.wait(30)

    def supervise(self) -> None:
        """Replaces the workers that have ended by themselves, as a supervisor does."""
        ended = [w for w in self._processes if w.poll() is not None]
        self._processes = [w for w in self._processes if w not in ended]
        for _ in ended:
            self.restarted += 1
            self.add()

    def restore(self) -> None:
        """Starts or stops workers until exactly WORKERS run; those that ended by themselves are replaced."""
        self.supervise()
        while len(self._processes) < WORKERS:
            self.add()
        while len(self._processes) > WORKERS:
            self.end(signal.SIGTERM, 0)

    def choose(self, rng: random.Random) -> int:
        """The index of a worker to end: a ready one if there is any, because ending one that is still loading
        shows little.
        """
        ready = [i for i, w in enumerate(self._processes) if processes.is_ready(self._ports[w.pid])]
        return rng.choice(ready or range(len(self._processes)))

    def wait_ready(self) -> None:
        """Waits until exactly WORKERS run and are ready; one that ends meanwhile is replaced."""
        processes.wait_until(self._are_ready, "all workers are ready", READY_SECONDS)

    def _are_ready(self) -> bool:
        self.restore()
        return all(processes.is_ready(self._ports[w.pid]) for w in self._processes)
