from __future__ import annotations

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from streams import metrics
from streams.monitoring import http

LIVE = {"ner": {"version": "0123456789ab"}}


async def test_health_releases_and_metrics_show_the_state_of_the_stages() -> None:
    stages, stalled = {"ner": False}, list[str]()
    metrics.prepare("ner")
    runner, port = await http.start("127.0.0.1", 0, lambda: stages, lambda: LIVE, lambda: stalled)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            async with client.get("/health/live") as answer:
                assert answer.status == 200
            stalled.append("ner")
            async with client.get("/health/live") as answer:
                assert (answer.status, await answer.json()) == (503, {"live": False, "stalled": ["ner"]})
            async with client.get("/health/ready") as answer:
                assert (answer.status, await answer.json()) == (503, {"ner": False})
            stages["ner"] = True
            async with client.get("/health/ready") as answer:
                assert answer.status == 200
            stages.clear()
            async with client.get("/health/ready") as answer:
                assert answer.status == 503, "without stages it is not ready"
            async with client.get("/releases") as answer:
                assert await answer.json() == LIVE
            async with client.get("/metrics") as answer:
                families = {f.name for f in text_string_to_metric_families(await answer.text())}
            named = {"pv_records", "pv_dead_letters", "pv_latency_seconds", "process_resident_memory_bytes"}
            assert named <= families
    finally:
        await runner.cleanup()


async def test_a_port_that_is_in_use_is_named_with_its_setting() -> None:
    runner, port = await http.start("127.0.0.1", 0, dict, dict, tuple)
    try:
        with pytest.raises(OSError, match=rf"127\.0\.0\.1:{port} is in use.*set PV_HTTP_PORT to"):
            await http.start("127.0.0.1", port, dict, dict, tuple)
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1"])
async def test_an_address_that_is_not_of_this_machine_is_named_with_its_setting(host: str) -> None:
    with pytest.raises(OSError, match=rf"^nothing can be served at {host}:0 \(PV_HTTP_HOST"):
        await http.start(host, 0, dict, dict, tuple)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("ner", {("ner", label) for label in ("ADE", "DRUG", "INDICATION", "WITHDRAWAL", "SYMPTOM")}),
        ("relation", {("relation", "ADE"), ("relation", "DRUG")}),
        ("normalization", {("coded",), ("nil",), ("unsupported_language",)}),
    ],
)
def test_a_rate_sees_the_first_mention_and_the_first_report_in_another_language(
    stage: str, expected: set[tuple[str, ...]]
) -> None:
    counters = (metrics.MENTIONS, metrics.EVENTS)
    for counter in counters:
        counter.clear()
    metrics.prepare(stage)
    samples = [s for counter in counters for family in counter.collect() for s in family.samples]
    assert {tuple(s.labels.values()) for s in samples if s.name.endswith("_total")} == expected
    assert {s.value for s in samples if s.name.endswith("_total")} == {0.0}
