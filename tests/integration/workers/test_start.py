"""Workers that start beside others and alone, on a real Kafka."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from typing import Any

import orjson
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.consumer.group_coordinator import GroupCoordinator

from streams import worker
from streams.broker.groups import STABLE, describe_group
from streams.topics import group_id
from tests.integration import processes
from tests.integration.site import Site, stop

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
#: What a worker prints that loads for ever.
LOADING = "loading for ever"


def slow_loading() -> None:
    """Each model of this process takes for ever to load."""

    def load(*_: Any) -> None:
        print(LOADING, flush=True)
        time.sleep(3600)

    worker.load_at_start = load  # type: ignore[assignment, attr-defined]


def stopped_at(request_name: str) -> None:
    """This process, whose models load for ever, is told twice to stop when it sends this request."""
    slow_loading()
    send = GroupCoordinator._send_req

    async def stop_and_send(self: Any, request: Any) -> Any:
        if type(request).__name__.startswith(request_name):
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0.01)
        return await send(self, request)

    GroupCoordinator._send_req = stop_and_send


def group(site: Site) -> tuple[str, int]:
    """The state of the stage's group and how many members it has."""

    async def ask() -> tuple[str, int]:
        admin = AIOKafkaAdminClient(**site.settings.client())
        try:
            await admin.start()
            state, members = await describe_group(admin, group_id(site.settings, "ner"))
            return state, len(members)
        finally:
            await admin.close()

    return asyncio.run(ask())


def test_a_worker_alone_joins_its_group_at_once_and_leaves_it_if_stopped_in_loading(tiny_site: Site) -> None:
    site = tiny_site
    # Longer than the test waits: a member that does not leave stays for this time.
    site.env["PV_SESSION_TIMEOUT"] = "60"
    assert group(site)[1] == 0
    with site.running_broken(slow_loading, "worker", "--stage", "ner") as starting:
        # Before the group is stable, the worker may not yet know that it is a member.
        processes.wait_until(lambda: group(site) == (STABLE, 1), "a member of the group")
        assert not processes.is_ready(site.port)
        starting.terminate()
        assert starting.wait(30) is not None
    processes.wait_until(lambda: group(site)[1] == 0, "an empty group", 30)


@pytest.mark.parametrize("request_name", ["JoinGroup", "SyncGroup", "OffsetFetch"])
def test_a_worker_that_is_stopped_while_it_joins_leaves_its_group(tiny_site: Site, request_name: str) -> None:
    site = tiny_site
    site.env["PV_SESSION_TIMEOUT"] = "60"
    with site.running_broken(partial(stopped_at, request_name), "worker", "--stage", "ner") as starting:
        assert starting.wait(30) is not None
    processes.wait_until(lambda: group(site)[1] == 0, "an empty group", 30)
    assert "Traceback" not in site.log.read_text()


def test_a_second_worker_takes_no_partition_before_it_has_loaded(tiny_site: Site) -> None:
    site = tiny_site
    records = [(f"k{i}".encode(), orjson.dumps({"id": f"r{i}", "text": "fine"})) for i in range(40)]
    with site.running("worker", "--stage", "ner") as first:
        site.wait_ready()
        site.env["PV_HTTP_PORT"] = str(processes.free_port())
        with site.running_broken(slow_loading, "worker", "--stage", "ner") as second:
            processes.wait_until(lambda: LOADING in site.log.read_text(), "a worker that loads")
            time.sleep(4)  # the first one learns of a rebalance with its next heartbeat, after 2.5 s
            assert second.poll() is None
            # All partitions, four of posts and four of questions, are still the first one's.
            site.produce("posts", records)
            site.wait_count(40, "mentions")
            assert site.metric('pv_assigned_partitions{stage="ner"}') == 12
        stop(first)


def test_a_worker_that_its_group_refuses_ends_and_says_why(tiny_site: Site) -> None:
    site = tiny_site
    # Shorter than group.min.session.timeout.ms.
    with site.running("worker", "--stage", "ner", PV_SESSION_TIMEOUT="3") as refused:
        assert refused.wait(60) == 1
    assert "the broker refuses PV_SESSION_TIMEOUT" in site.log.read_text().splitlines()[-1]
