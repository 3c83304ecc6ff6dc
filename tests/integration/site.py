"""A broker with topics, and the pvstream processes of one test that use it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from streams.settings import Settings
from tests.integration import processes
from tests.integration.fork_server import ForkedProcess
from tests.integration.kafka_server import LocalKafka

SAMPLES = processes.ROOT / "streams/samples"


class Site:
    """A broker with all topics, a store of releases in a folder, and processes that know both. They are
    forked unless a test asks for new ones.
    """

    def __init__(self, kafka: LocalKafka, folder: Path, **env: str) -> None:
        self.kafka = kafka
        self.folder = folder
        self.port = processes.free_port()
        self.settings = Settings(broker=f"kafka://{kafka.bootstrap}", store=str(folder / "store"))
        # One thread for models: the broker and the test need the other processors.
        own = {"PV_STORE": self.settings.store, "PV_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.env = processes.environment(kafka.bootstrap, self.port, **own | env)
        self.log = folder / "log"
        self._process: processes.Running | None = None
        processes.create_topics(self.settings)

    @contextmanager
    def running_broken(self, before: Callable[[], None], *arguments: str) -> Iterator[processes.Running]:
        """A command in the background in a process that calls `before` first; it is killed at the end."""
        process = ForkedProcess(arguments, self.env, self.log, self.log, before)
        self._process = process
        try:
            yield process
        finally:
            process.kill()
            process.wait(processes.STOP_S)

    @contextmanager
    def running(self, *arguments: str, forked: bool = True, **env: str) -> Iterator[processes.Running]:
        """A command in the background; what it logs is added to `log`."""
        with processes.running(*arguments, env=self.env | env, log=self.log, forked=forked) as process:
            self._process = process
            yield process

    def must(self, *arguments: str) -> str:
        """What a command prints; it must succeed."""
        answer = processes.forked_command(*arguments, env=self.env)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def wait_ready(self, seconds: float = 120.0) -> None:
        """Waits until the process that was started last is ready; fails where it has ended."""

        def is_ready() -> bool:
            assert self._process is not None and self._process.poll() is None, self.log.read_text()
            return processes.is_ready(self.port)

        processes.wait_until(is_ready, "ready", seconds)

    def live(self, task: str) -> dict[str, Any]:
        """What the worker says of the release that it runs."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/releases", timeout=10) as answer:
            return dict(json.loads(answer.read())[task])

    def metric(self, series: str) -> float:
        """The value of a series of the worker's /metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        (value,) = [line.removeprefix(series) for line in lines if line.startswith(f"{series} ")]
        return float(value)

    def wait_live(self, task: str, version: str) -> None:
        processes.wait_until(lambda: self.live(task)["version"] == version, f"{version} is live")

    def count(self, *names: str) -> int:
        return processes.count(self.kafka.bootstrap, *names)

    def wait_count(self, n: int, *names: str) -> None:
        processes.wait_until(lambda: self.count(*names) >= n, f"{n} records in {', '.join(names)}")

    def read_all(self, *names: str) -> list[Any]:
        return processes.read_all(self.kafka.bootstrap, *names)

    def records(self, *names: str) -> list[dict[str, Any]]:
        return [orjson.loads(message.value) for message in self.read_all(*names)]

    def produce(self, topic: str, records: list[tuple[bytes, bytes]]) -> None:
        processes.produce(self.kafka.bootstrap, topic, records)

    def produce_samples(self, topic: str, limit: int | None = None) -> int:
        """Sends all samples of an input topic, or the first ones, and gives their number."""
        lines = (SAMPLES / f"{topic}.jsonl").read_bytes().splitlines()[:limit]
        self.produce(topic, [(orjson.loads(line)["id"].encode(), line) for line in lines])
        return len(lines)


def stop(process: processes.Running) -> None:
    """Asks a process to stop; it must end without an error."""
    process.terminate()
    assert process.wait(60) == 0
