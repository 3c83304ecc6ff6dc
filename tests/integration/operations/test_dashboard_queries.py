"""A real Prometheus answers every query of the dashboard while the whole pipeline runs."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from models.releases.manifest import Release
from tests.deploy.test_dashboard import dashboard, panels
from tests.deploy.test_deploy import alerts
from tests.integration import processes
from tests.integration.operations.prometheus import Prometheus, prometheus
from tests.integration.site import Site

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

#: Queries without an answer here, by a part of them, with the reason.
UNANSWERED = {
    "pv_release_fallback": "no worker runs another release than the announced one",
    "pv_reload_seconds_bucket": "the releases are pinned, so no announcement is followed",
    "pv_announcements_refused": "nor refused",
}
WITHIN_S = 240.0


def expressions() -> list[str]:
    """Every query of the dashboard as Grafana sends it, for all stages and jobs and an interval of 10 s."""
    found = [target["expr"] for panel in panels() for target in panel["targets"]]
    values = {"$stage": ".*", "$job": ".+", "$__rate_interval": "10s"}
    for name, value in values.items():
        found = [expression.replace(name, value) for expression in found]
    return found


def at_once() -> list[dict[str, Any]]:
    """The rules as deployed, without the time for which they must hold."""
    return [{k: v for k, v in rule.items() if k != "for"} for rule in alerts()]


def is_answered(server: Prometheus, expression: str) -> bool:
    """Whether a query gives a number."""
    return any(math.isfinite(float(series["value"][1])) for series in server.query(expression))


def source_of_one_post(site: Site, folder: Path, port: int) -> AbstractContextManager[object]:
    """A source with its metrics on the port."""
    lines = folder / "lines.jsonl"
    lines.write_text(json.dumps({"id": "1", "text": "Zoloft", "created_at": datetime.now(UTC).isoformat()}))
    return processes.running(
        "source",
        "ndjson",
        "--path",
        str(lines),
        env=site.env | {"PV_HTTP_PORT": str(port)},
        log=folder / "source",
        forked=True,
    )


def expect_answers_for_the_variables(server: Prometheus) -> None:
    """By which a user chooses what the dashboard shows."""
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            name = variable["query"]["query"].removesuffix(")").split(", ")[-1]
            assert is_answered(server, f'count by ({name}) (pv_ready{{{name}!=""}})'), name


def test_each_dashboard_query_is_answered(tiny_site: Site, tmp_path: Path, tiny: dict[str, Release]) -> None:
    if shutil.which("prometheus") is None:
        assert os.environ.get("PV_REQUIRE_KAFKA") != "1", "prometheus is missing"
        pytest.skip("prometheus is not on PATH")
    site, port = tiny_site, processes.free_port()
    source = source_of_one_post(site, tmp_path, port)
    server_of = prometheus(tmp_path, site.port, at_once(), port)
    with server_of as server, site.running("up", PV_DRIFT_SAMPLE="1"), source:
        site.wait_ready()
        waiting = {e for e in expressions() if not any(part in e for part in UNANSWERED)}
        assert waiting

        def answered() -> bool:
            # Again and again: a rate needs records between two scrapes.
            for topic in ("posts", "sentences", "questions"):
                site.produce_samples(topic, 30)
            site.produce("posts", [(b"bad", b"no report")])
            time.sleep(1.0)  # at most this many records a second, and two scrapes between two rounds
            waiting.difference_update([e for e in waiting if is_answered(server, e)])
            return not waiting

        try:
            processes.wait_until(answered, "every query is answered", WITHIN_S)
        except AssertionError:
            raise AssertionError(f"not answered: {sorted(waiting)}") from None
        for expression in expressions():
            if any(part in expression for part in UNANSWERED):
                assert not is_answered(server, expression), f"is answered, so no exception: {expression}"
        expect_answers_for_the_variables(server)
