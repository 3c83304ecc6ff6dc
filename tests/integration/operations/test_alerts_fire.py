"""The alerts about stalls fire on a real worker under a real Prometheus."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.test_dashboard import panels
from tests.deploy.test_deploy import alerts
from tests.integration import processes
from tests.integration.hanging import HANG, hang
from tests.integration.operations.prometheus import Prometheus, prometheus
from tests.integration.site import Site
from tests.integration.workers.test_hostile_records import produce_raw, report

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: The durations and windows that a test cannot wait for, and their replacements.
SHORTER = {
    "StageStalled": ("> 40", "> 3"),
    "RebalanceStorm": ("[5m]", "[1m]"),
    "DeadLetterBacklog": None,
    "LagSecondsHigh": None,
}
#: A letter more than DeadLetterBacklog allows.
LETTERS = 101
WITHIN_S = 40.0
NEW = (
    "pv_lag_seconds", "pv_seconds_since_progress", "pv_rebalances", "pv_seconds_since_assign",
    "pv_dead_letters_w",
)  # fmt: skip


def shorter_rules() -> list[dict[str, Any]]:
    """The rules as deployed, without their time in `for` and with the replacements above."""
    rules = []
    for rule in alerts():
        if rule["alert"] in SHORTER:
            old, new = SHORTER[rule["alert"]] or ("", "")
            assert old in rule["expr"]
            rules.append(
                {k: v for k, v in rule.items() if k != "for"} | {"expr": rule["expr"].replace(old, new)}
            )
    return rules


def wait_firing(server: Prometheus, *names: str) -> None:
    processes.wait_until(lambda: set(names) <= server.firing(), f"{names} fire", WITHIN_S)


def test_the_alerts_about_stalls_fire_on_a_real_worker(tiny_site: Site, tmp_path: Path) -> None:
    if shutil.which("prometheus") is None:
        assert os.environ.get("PV_REQUIRE_KAFKA") != "1", "prometheus is missing"
        pytest.skip("prometheus is not on PATH")
    site = tiny_site
    bootstrap = site.kafka.bootstrap
    with (
        prometheus(tmp_path, site.port, shorter_rules()) as server,
        site.running_broken(hang, "worker", "--stage", "ner"),
    ):
        site.wait_ready()
        produce_raw(bootstrap, [(b"k", b"no report", 0)] * LETTERS)
        wait_firing(server, "DeadLetterBacklog")
        assert server.firing() == {"DeadLetterBacklog"}

        other = processes.free_port()
        for _ in range(2):  # comes and goes
            with site.running("worker", "--stage", "ner", PV_HTTP_PORT=str(other)):
                processes.wait_until(lambda: processes.is_ready(other), "the second worker")
        wait_firing(server, "RebalanceStorm")

        an_hour_ago = int(time.time() - 3600) * 1000
        produce_raw(bootstrap, [(b"k", report("bad", text=HANG), an_hour_ago)])
        wait_firing(server, "StageStalled", "LagSecondsHigh", "DeadLetterBacklog")
        expressions = [t["expr"] for p in panels() for t in p["targets"] if any(n in t["expr"] for n in NEW)]
        assert len(expressions) == len(NEW)
        for expression in expressions:
            assert server.query(expression.replace("$stage", ".*").replace("$job", ".+")), expression
