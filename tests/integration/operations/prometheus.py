"""A real Prometheus that scrapes a worker and other processes and evaluates rules."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.test_deploy import alerts, load
from tests.integration import processes

STOP_S = 20.0
EVERY_SECOND = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def firing(self) -> set[str]:
        """The names of the alerts that fire; none while the server starts."""
        try:
            found = self._get("alerts")["alerts"]
        except OSError:
            return set()
        return {a["labels"]["alertname"] for a in found if a["state"] == "firing"}

    def stages(self, alert: str) -> set[str]:
        """The stages for which an alert fires."""
        found = self.query(f'ALERTS{{alertname="{alert}", alertstate="firing"}}')
        return {series["metric"].get("stage", "") for series in found}

    def evaluations(self) -> int:
        """How many times the rules were evaluated; 0 while the server starts."""
        try:
            with urllib.request.urlopen(f"{self._url}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            return 0
        found = re.search(r"^prometheus_rule_group_iterations_total\{.*\} (\S+)$", text, re.MULTILINE)
        return int(float(found[1])) if found else 0

    def down(self) -> set[str]:
        """The targets that cannot be scraped, by their job."""
        targets = self._get("targets?state=active")["activeTargets"]
        return {target["labels"]["job"] for target in targets if target["health"] == "down"}

    def query(self, expression: str) -> list[Any]:
        """The series that an expression gives now."""
        result: list[Any] = self._get("query?" + urllib.parse.urlencode({"query": expression}))["result"]
        return result

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}", timeout=10) as answer:
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
        "global": EVERY_SECOND,
        "scrape_configs": [
            {"job_name": "pvstream", "honor_labels": True, "static_configs": [target, further]}
        ],
    }
    with _serving(folder, configuration, rules, processes.free_port()) as server:
        yield server


@contextmanager
def shipped_prometheus(
    folder: Path, name: str, ports: Mapping[str, int], source: int, rules: Sequence[dict[str, Any]] | None
) -> Iterator[Prometheus]:
    """Runs a configuration of deploy/prometheus, with `ports` for its targets and one target more for a
    source. `rules` are evaluated every second in the place of the shipped ones (None), which are evaluated as
    the configuration says.
    """
    port = processes.free_port()
    configuration = load(f"deploy/prometheus/{name}")
    for job in configuration["scrape_configs"]:
        for config in job.get("static_configs", ()):
            found = ({**ports, "localhost:9090": port}[target] for target in config["targets"])
            config["targets"] = [f"127.0.0.1:{number}" for number in found]
    live = {"job_name": "live", "static_configs": [{"targets": [f"127.0.0.1:{source}"]}]}
    configuration["scrape_configs"].append(live)
    if rules is not None:
        configuration["global"] = EVERY_SECOND
    with _serving(folder, configuration, alerts() if rules is None else rules, port) as server:
        yield server


@contextmanager
def _serving(
    folder: Path, configuration: dict[str, Any], rules: Sequence[dict[str, Any]], port: int
) -> Iterator[Prometheus]:
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "tested", "rules": list(rules)}]}))
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration | {"rule_files": ["rules.yml"]}))
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
