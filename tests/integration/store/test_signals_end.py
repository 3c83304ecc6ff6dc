"""`pvstream signals --every` ends at SIGTERM, as the first process of a container too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streams.store.duckdb_file import DuckDatabase
from tests.integration import processes
from tests.streams.store.messages import event, message, report
from tests.streams.store.test_contract import apply

#: Makes the process the first one of its namespace, where the machine allows it.
FIRST = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
#: What may pass until the end: it takes half a second, but the machine may be busy.
END_S = 10.0
SLOW = """
import sys
from streams.signals import surveillance
def compute(self, until):
    print("computing", flush=True)
    self.database.query(
        "SELECT count(*) FROM range(3000000) a, range(300000) b WHERE (a.range * b.range) % 7 = 3"
    )
surveillance.Surveillance.compute = compute
from streams.__main__ import main
main()
"""


def can_be_first() -> bool:
    try:
        return subprocess.run([*FIRST, "true"], capture_output=True, timeout=30, check=False).returncode == 0
    except OSError:
        return False


def first_child(pid: int) -> int:
    """The process that `unshare` has started, which gets signals of this namespace."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    processes.wait_until(lambda: bool(children.read_text()), "a child", 180)
    return int(children.read_text())


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        (["-m", "streams"], [], "no evidence"),
        (["-c", SLOW], [], "computing"),
        (["-m", "streams"], ["--publish"], "does not answer: waiting for it"),
    ],
    ids=["wait", "query", "no broker"],
)
def test_it_ends_between_two_computations_in_a_query_and_while_it_waits_for_the_broker(
    tmp_path: Path, program: list[str], options: list[str], said: str
) -> None:
    path, log = tmp_path / "events.duckdb", tmp_path / "log"
    database = DuckDatabase(path, write=True)
    apply(database, *(message(i, report(f"r{i}", i, event("lithium"))) for i in range(9)))
    database.close()
    prefix = FIRST if can_be_first() else []
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*prefix, sys.executable, *program, "signals", "--every", "3600", *options],
            env=processes.environment("127.0.0.1:1", 0, PV_DATABASE=str(path)), cwd=processes.ROOT,
            stdout=file, stderr=file,
        )  # fmt: skip
    worker = first_child(process.pid) if prefix else process.pid
    try:
        processes.wait_until(lambda: said in log.read_text() or process.poll() is not None, said)
        assert process.poll() is None, log.read_text()
        started = time.monotonic()
        os.kill(worker, signal.SIGTERM)
        assert process.wait(END_S) == 0, log.read_text()
        print(f"ended after {time.monotonic() - started:.2f} s, first process: {bool(prefix)}")
    finally:
        if process.poll() is None:
            os.kill(worker, signal.SIGKILL)
            process.wait(END_S)
