"""The supervisor of several processes, over small programs that stay, end or do not stop."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streams.cli.operations.processes import of_this_program
from streams.settings import Settings
from tests.integration.processes import runs, wait_until

STAYS = "import os, signal; signal.signal(signal.SIGTERM, lambda *_: os._exit(0)); signal.pause()"
ENDS = "raise SystemExit(3)"
DOES_NOT_STOP = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause(); signal.pause()"
SUPERVISOR = """
import json, logging, signal, sys
from streams.cli.operations import processes
logging.basicConfig(level="INFO", stream=sys.stderr)
processes.KILL_SECONDS = 0.5
programs, copies = json.loads(sys.argv[1]), sys.argv[2:] == ["copies"]
commands = [processes.Command([sys.executable, "-c", text], {}) for text in programs]
exec(programs[processes.divide(commands, 0.5, copies=copies)])
"""


class Supervisor:
    """A process that keeps some programs running, and its log."""

    def __init__(self, folder: Path, programs: list[str], *more: str) -> None:
        self.log = folder / "log"
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SUPERVISOR, json.dumps(programs), *more], stderr=file
            )

    def wait_started(self, n: int) -> list[int]:
        """The process ids of the first `n` starts."""
        wait_until(lambda: len(self._started()) >= n, f"{n} starts")
        return self._started()

    def _started(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"has the id (\d+)", self.log.read_text())]


@contextmanager
def supervised(folder: Path, *programs: str, copies: bool = False) -> Iterator[Supervisor]:
    supervisor = Supervisor(folder, list(programs), *(["copies"] if copies else []))
    try:
        yield supervisor
    finally:
        supervisor.process.kill()
        supervisor.process.wait(30)


def has_set(pid: int, field: str) -> bool:
    """Whether SIGTERM is in this field of the status of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    signals = int(re.findall(rf"^{field}:\s*(\w+)", status, re.MULTILINE)[0], 16)
    return bool(signals >> (signal.SIGTERM - 1) & 1)


@pytest.mark.parametrize(("asked", "copies"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_killed_process_is_started_again_until_all_are_asked_to_stop(
    tmp_path: Path, asked: signal.Signals, copies: bool
) -> None:
    with supervised(tmp_path, STAYS, STAYS, copies=copies) as supervisor:
        first, second = supervisor.wait_started(2)
        os.kill(first, signal.SIGKILL)
        *_, third = supervisor.wait_started(3)
        assert runs(second) and not runs(first)
        commands = {Path(f"/proc/{pid}/cmdline").read_bytes() for pid in (supervisor.process.pid, third)}
        assert len(commands) == 1 or not copies
        wait_until(lambda: has_set(second, "SigCgt") and has_set(third, "SigCgt"), "both can be asked")
        supervisor.process.send_signal(asked)
        assert supervisor.process.wait(60) == 0
        assert not runs(second) and not runs(third)
    assert "has ended by SIGKILL" in supervisor.log.read_text()


def test_where_one_ends_at_each_start_all_are_stopped(tmp_path: Path) -> None:
    with supervised(tmp_path, STAYS, ENDS) as supervisor:
        assert supervisor.process.wait(120) == 1
        pids = supervisor.wait_started(4)
        assert len(pids) == 4 and not any(map(runs, pids))
    assert supervisor.log.read_text().count("has ended with code 3") == 3


def test_a_process_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    with supervised(tmp_path, DOES_NOT_STOP) as supervisor:
        (pid,) = supervisor.wait_started(1)
        wait_until(lambda: has_set(pid, "SigIgn"), "it ignores SIGTERM")
        supervisor.process.terminate()
        assert supervisor.process.wait(60) == 1
        assert not runs(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
@pytest.mark.parametrize("copies", [False, True])
def test_the_processes_of_a_killed_supervisor_stop(tmp_path: Path, copies: bool) -> None:
    with supervised(tmp_path, STAYS, STAYS, copies=copies) as supervisor:
        pids = supervisor.wait_started(2)
        supervisor.process.kill()
        wait_until(lambda: not any(map(runs, pids)), "both have stopped")


def test_processes_have_ports_and_names_of_their_own_and_share_the_processors() -> None:
    settings = Settings(http_port=9000, instance="blue", workers=3, threads=2)
    first, second = of_this_program(["up"], ["--store"], 2, settings)
    assert (list(first.arguments[3:]), list(second.arguments[3:])) == (["up", "--store"], ["up"])
    shared = {"PV_WORKERS": "3", "PV_THREADS": "2"}
    assert first.environment == shared | {"PV_HTTP_PORT": "9000", "PV_INSTANCE": "blue-0"}
    assert second.environment == shared | {"PV_HTTP_PORT": "9001", "PV_INSTANCE": "blue-1"}
    for command in of_this_program(["up"], [], 64, Settings(http_port=0)):
        assert command.environment == {"PV_WORKERS": "1", "PV_THREADS": "1", "PV_HTTP_PORT": "0"}
