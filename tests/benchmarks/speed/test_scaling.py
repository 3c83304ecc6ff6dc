"""What the benchmark of processes leaves behind when it is stopped."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from models.releases.manifest import Release
from tests.integration import processes

PROGRAM = """
import json, signal, sys
from pathlib import Path
from benchmarks.speed.scaling import running_up
with running_up(2, json.loads(sys.argv[1]), Path(sys.argv[2])) as up:
    print(up.pid, flush=True)
    while True:
        signal.pause()
"""


@pytest.mark.slow
@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_benchmark_leaves_no_process_of_the_pipeline(
    tmp_path: Path, tiny: dict[str, Release], asked: signal.Signals
) -> None:
    log = tmp_path / "log"
    pinned = json.dumps({task: str(release.path) for task, release in tiny.items()})
    # No broker answers there: the workers wait for it.
    env = processes.environment(
        f"127.0.0.1:{processes.free_port()}", 0, PV_RELEASES=pinned, PV_STORE=str(tmp_path / "store")
    )
    command = [sys.executable, "-c", PROGRAM, json.dumps(env), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=processes.ROOT) as benchmark:
        assert benchmark.stdout is not None
        try:
            pids = [int(benchmark.stdout.readline())]
            processes.wait_until(lambda: log.read_text().count("has the id") == 2, "both have been started")
            pids += [int(pid) for pid in re.findall(r"has the id (\d+)", log.read_text())]
            assert all(map(processes.runs, pids))
            benchmark.send_signal(asked)
            assert benchmark.wait(60) == 128 + asked
            processes.wait_until(lambda: not any(map(processes.runs, pids)), "all are gone", 1.0)
        finally:
            benchmark.kill()
