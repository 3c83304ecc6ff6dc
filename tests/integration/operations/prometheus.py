"""A real Prometheus that scrapes a worker and other processes and evaluates rules."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.integration import processes

STOP_S = 20.0


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/"

    def firing(self) -> set[str]:
        """The names of the alerts that fire; none while the server starts."""
        try:
            found = self._get("alerts")["alerts"]
        except OSError:
            return set()
        return {a["labels"]["alertname"] for a in found if a["state"] == "firing"}

    def query(self, expression: str) -> list[Any]:
        """The series that an expression gives now."""
        result: list[Any] = self._get("query?" + urllib.parse.urlencode({"query": expression}))["result"]
        return result

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._url + path, timeout=10) as answer:
            return json.loads(answer.read())["data"]


@contextmanager
def prometheus(
    folder: Path, worker_port: int, rules: Sequence[dict[str, Any]], *others: int
) -> Iterator[Prometheus]:
    """Scrapes the worker of the stage ner, and the processes at other ports, every second, for the time of
    the block.
    """
    target = {"targets": [f"127.0.0.1:{worker_port}"], "labels": {"stage": "ner"}}
    further = {"targets": [f"127.0.0.1:{port}" for port in others]}
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {"job_name": "pvstream", "honor_labels": True, "static_configs": [target, further]}
        ],
    }
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "tested", "rules": list(rules)}]}))
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    port = processes.free_port()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            yield Prometheus(port)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_S)
