"""A worker that is suspended beyond its session while it predicts: what it has lost is not sent, and where it
is, the upsert drops it. Nothing is lost, and the worker goes on.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from benchmarks import suspension
from models.releases.manifest import Release
from tests.integration.kafka_server import LocalKafka

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
