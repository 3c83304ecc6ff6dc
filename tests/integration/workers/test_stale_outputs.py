"""A worker that is suspended beyond its session while it predicts: what it has lost is not sent, and where it
is, the upsert drops it. Nothing is lost, and the worker goes on.
"""

from __future__ import annotations

import time
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import orjson
import pytest

from models.releases.manifest import Release
from tests.integration import processes
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site, stop
from tests.integration.workers import suspension
from tests.integration.workers.held_worker import held_worker
from tests.integration.workers.suspension import REVISED, metric, posts

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_after_a_suspension_the_newest_record_of_every_key_is_kept(
    kafka: LocalKafka, tmp_path: Path, tiny: dict[str, Release]
) -> None:
    names = ("unfenced-published", "kept", "published")
    first, rounds = suspension.rounds(names, tmp_path / "made", tiny["ner"])
    # The shortest session that a broker accepts by default.
    plan = suspension.Plan(first=first, rounds=rounds, keys=90, session=6.0, suspension=6.5)
    site = suspension.site_of(kafka, tmp_path, plan)
    unfenced, kept, published = suspension.run(site, plan)
    for counts in (unfenced, kept, published):
        print(counts)
        assert (counts.missing, counts.stale_by_upsert) == (0, 0), counts
    assert unfenced.stale_by_topic_order > 0, "the worker was not in the middle of anything"
    assert unfenced.batches_not_sent == 0
    for counts in (kept, published):
        assert counts.stale_by_topic_order == 0
        assert counts.batches_not_sent > 0

    lines = site.must("tail", "mentions", "--latest", "--json").splitlines()
    shown = {record["id"]: record["meta"]["revision"] for record in map(orjson.loads, lines)}
    assert len(lines) == len(shown) == 3 * 60 + 90, "the deleted reports are left out"
    for name in names:
        assert [shown.get(f"{name}-{i}") for i in range(6)] == [2, 1, None, 2, 1, None]


def test_a_worker_alone_sends_after_an_outage_and_reads_again_after_a_suspension(tiny_site: Site) -> None:
    """Both last longer than the session, but only the suspension ends the membership in the group."""
    site, folder = tiny_site, tiny_site.folder / "held"
    env = site.env | {"PV_SESSION_TIMEOUT": "6"}
    with held_worker("ner", env, site.folder / "held.log", folder) as worker:
        processes.wait_until(lambda: processes.is_ready(site.port), "ready")
        for name in ("outage", "suspension"):
            before = site.count("mentions")
            for file in ("held", "go"):
                (folder / file).unlink(missing_ok=True)
            records = posts(name, 30, 1, REVISED)
            site.produce("posts", records)
            processes.wait_until((folder / "held").exists, "a batch in inference", 180)
            if name == "outage":
                site.kafka.kill()
                time.sleep(6.5)
                (folder / "go").touch()
                time.sleep(0.5)
                site.kafka.restart()
            else:
                worker.send_signal(SIGSTOP)
                time.sleep(7.5)
                (folder / "go").touch()
                worker.send_signal(SIGCONT)
            site.wait_count(before + len(records), "mentions")
            not_sent = metric(site.port, "pv_fenced_batches_total{")
            assert (not_sent > 0) == (name == "suspension"), name
        sent = {r["id"] for r in site.records("mentions")}
        assert sent == {f"{name}-{i}" for name in ("outage", "suspension") for i in range(0, 30, 3)}
        stop(worker)
