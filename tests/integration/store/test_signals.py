"""From the topic of events through the store to the topic of signals, and back when a report is deleted."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from streams.records import Inbound
from tests.integration.kafka_server import LocalKafka
from tests.integration.site import Site
from tests.integration.store.test_store import produce
from tests.streams.store.messages import deletion, event, message, report

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def published(site: Site) -> dict[str, int]:
    """Key to the number of reports, of the latest record of each key."""
    lines = site.must("tail", "signals", "--latest", "--json").splitlines()
    records = map(orjson.loads, lines)
    return {f"{r['drug']}|{r['term']}": r["windows"]["all"]["n"] for r in records}


def test_signals_are_published_and_withdrawn(kafka: LocalKafka, tmp_path: Path) -> None:
    site = Site(kafka, tmp_path)
    made: list[Inbound] = [
        message(i, report(f"r{i}", i, event("lithium" if i % 3 else "b"))) for i in range(9)
    ]
    produce(kafka, made)
    site.must("store", "--until-end")
    site.must("signals", "--publish", "--least", "1")
    assert published(site) == {"lithium|Nausea": 6, "b|Nausea": 3}
    produce(kafka, [deletion(9 + i, f"r{3 * i}", 20 + i) for i in range(3)])
    site.must("store", "--until-end")
    site.must("signals", "--publish", "--least", "1")
    assert published(site) == {"lithium|Nausea": 6}
