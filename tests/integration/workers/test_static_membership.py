"""PV_INSTANCE on a real Kafka: a worker that is restarted under its name causes no rebalance."""

from __future__ import annotations

import urllib.error
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration import processes
from tests.integration.site import Site, stop

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
STAGE = "summarization"


class Workers:
    """Workers of one stage by their names, each with its own HTTP port."""

    def __init__(self, site: Site, folder: Path, stack: ExitStack) -> None:
        self._site = site
        self._folder = folder
        self._stack = stack
        self._ports: dict[str, int] = {}

    def start(self, name: str, instance: str) -> processes.Running:
        port = self._ports[name] = processes.free_port()
        env = self._site.env | {"PV_HTTP_PORT": str(port), "PV_INSTANCE": instance}
        process = processes.running("worker", "--stage", STAGE, env=env, log=self._folder / name, forked=True)
        return self._stack.enter_context(process)

    def metric(self, name: str, metric: str) -> float:
        self._site.port = self._ports[name]
        return self._site.metric(f'{metric}{{stage="{STAGE}"}}')

    def wait_assigned(self, name: str, partitions: int) -> None:
        def is_assigned() -> bool:
            try:
                return self.metric(name, "pv_assigned_partitions") == partitions
            except (urllib.error.URLError, OSError, ValueError):  # no answer, or no such series yet
                return False

        processes.wait_until(is_assigned, f"{partitions} partitions for {name}", 180)


@pytest.mark.parametrize("is_static", [True, False])
def test_the_other_workers_keep_their_partitions_while_a_named_worker_restarts(
    tiny_site: Site, tmp_path: Path, is_static: bool
) -> None:
    site = tiny_site
    if is_static:  # it stays a member while it restarts; another worker leaves at once
        site.env["PV_SESSION_TIMEOUT"] = "30"
    names = {name: name if is_static else "" for name in ("one", "two")}
    with ExitStack() as stack:
        workers = Workers(site, tmp_path, stack)
        first = workers.start("one", names["one"])
        workers.wait_assigned("one", 4)
        workers.start("two", names["two"])
        for name in names:
            workers.wait_assigned(name, 2)
        before = workers.metric("two", "pv_rebalances_total")
        stop(first)
        workers.start("one", names["one"])
        workers.wait_assigned("one", 2)
        site.produce(
            "questions", [(b"%d" % i, b'{"id": "%d", "text": "Is it safe?"}' % i) for i in range(40)]
        )
        site.wait_count(40, "summaries")
        assert workers.metric("two", "pv_assigned_partitions") == 2
        rebalances = workers.metric("two", "pv_rebalances_total") - before
    assert (rebalances == 0) is is_static, f"{rebalances} rebalances"
    assert {record["id"] for record in site.records("summaries")} == {str(i) for i in range(40)}
