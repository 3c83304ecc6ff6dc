"""`pvstream up --processes` on a real Kafka: the death of a process under load loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import orjson
import pytest

from models.releases.manifest import Release
from streams.rollout.announcing import announce
from tests.integration import processes
from tests.integration.site import Site, stop

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
N = 400


def test_a_killed_process_is_replaced_and_no_record_is_lost_or_decided_anew(tiny_site: Site) -> None:
    site = tiny_site
    ids = [f"post-{i}" for i in range(N)]
    posts = [(i.encode(), orjson.dumps({"id": i, "text": f"zoloft gave me insomnia, {i}"})) for i in ids]
    site.produce("posts", posts)
    site.port = processes.free_ports(2)
    more = {"PV_HTTP_PORT": str(site.port), "PV_SESSION_TIMEOUT": "6", "PV_BATCH": "4"}
    with site.running("up", "--processes", "2", forked=False, **more) as supervisor:
        site.wait_count(N // 10, "events")
        first = re.findall(r"has the id (\d+)", site.log.read_text())[0]
        os.kill(int(first), signal.SIGKILL)
        processes.wait_until(lambda: {r["id"] for r in site.records("events")} == set(ids), "all events")
        for port in (site.port, site.port + 1):
            processes.wait_until(lambda port=port: processes.is_ready(port), "both are ready")  # type: ignore[misc]
        stop(supervisor)
    assert "has ended by SIGKILL" in site.log.read_text()
    decided: dict[str, set[str]] = {}
    for record in site.records("events"):
        decided.setdefault(record["record_id"], set()).add(repr([e["llt"] for e in record["events"]]))
    assert len(decided) == N and all(len(answers) == 1 for answers in decided.values())
    assert site.count("posts.dead", "mentions.dead") == 0


def test_processes_cannot_share_the_embedded_broker(tiny_site: Site) -> None:
    env = tiny_site.env | {"PV_BROKER": "embedded"}
    refused = processes.forked_command("up", "--processes", "2", env=env)
    assert (refused.returncode, "PV_BROKER" in refused.stderr) == (2, True)


def shared_megabytes(pid: int) -> int:
    """Memory that was written before the process was copied, and is still common to the copies."""
    found = re.search(r"Shared_Dirty: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text())
    assert found is not None
    return int(found[1]) // 1024


def test_processes_share_their_models_and_each_takes_a_new_release(
    tiny_site: Site, tiny: dict[str, Release]
) -> None:
    site, new = tiny_site, tiny["summarization"]
    site.env["PV_RELEASES"] = json.dumps({t: str(r.path) for t, r in tiny.items() if r is not new})
    site.port = processes.free_ports(2)
    ports = (site.port, site.port + 1)
    more = {"PV_HTTP_PORT": str(site.port)}
    with site.running("up", "--processes", "2", forked=False, **more) as supervisor:
        for site.port in ports:
            site.wait_ready()
            assert site.live("summarization")["version"] != new.version
        pids = [int(pid) for pid in re.findall(r"has the id (\d+)", site.log.read_text())]
        assert min(map(shared_megabytes, pids)) > 100
        asyncio.run(announce(new.path, site.settings, None, force=True))
        for site.port in ports:
            site.wait_live("summarization", new.version)
        os.kill(pids[1], signal.SIGKILL)
        processes.wait_until(lambda: not processes.is_ready(site.port), "it is gone")
        site.wait_ready()
        assert site.live("summarization")["version"] == new.version
        ids = [f"question-{i}" for i in range(40)]
        site.produce(
            "questions", [(i.encode(), orjson.dumps({"id": i, "text": "Does it hurt?"})) for i in ids]
        )
        processes.wait_until(lambda: site.count("summaries") >= len(ids), "all summaries")
        stop(supervisor)
    records = site.records("summaries")
    assert {r["id"] for r in records} == set(ids)
    assert {r["releases"]["summarization"] for r in records} == {new.version}
