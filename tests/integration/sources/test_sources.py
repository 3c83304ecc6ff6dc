"""`pvstream source` as its users run it: killed, refused, and silent about what it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.broker.embedded import EmbeddedBroker
from tests.integration import processes
from tests.integration.long_tests import long_test
from tests.integration.sources.behind import ERRORS
from tests.integration.sources.faults import fault_run
from tests.integration.sources.kills import kill_run


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap


@pytest.mark.slow
@long_test
def test_nothing_is_lost_when_a_process_with_five_sources_is_killed(bootstrap: str) -> None:
    figures = asyncio.run(kill_run(kills=2, seed=5, bootstrap=bootstrap))
    assert figures["posts"] > 500
    assert figures["deletions"] > 50
    assert {name: figures[name] for name in ERRORS} == dict.fromkeys(ERRORS, 0)


@pytest.mark.slow
def test_deleted_posts_are_gone_from_events_and_from_the_store(bootstrap: str) -> None:
    """Live posts with faults, all stages with stub models, and the store."""
    figures = asyncio.run(fault_run(faults=12, seed=5, bootstrap=bootstrap))
    assert figures["faults"] >= 10
    assert figures["deletions"] >= 10
    # One that was deleted during an interruption was never seen.
    assert figures["events_tombstones"] >= figures["deletions"] // 2
    assert figures["stored_then_deleted"] >= figures["deletions"] // 3
    assert figures["store_texts"] == figures["file_texts"] == figures["posts"] - figures["deletions"]
    assert {name: figures[name] for name in ERRORS} == dict.fromkeys(ERRORS, 0)


def test_the_terms_of_x_are_stated_at_the_start_and_no_output_quotes_a_post_or_a_token(
    bootstrap: str, tmp_path: Path
) -> None:
    lines = tmp_path / "planted-name.jsonl"
    lines.write_text('{"id": "planted-id", "text": "planted text"}\n{"id": "planted-id", "text": 5}\n')
    env = processes.environment(bootstrap, 0, PV_X_TOKEN="planted-token")
    server = f"http://127.0.0.1:{processes.free_port()}"
    log = tmp_path / "log"
    arguments = ("source", "x", "ndjson", "--all", "--x-server", server, "--path", str(lines))
    with processes.running(*arguments, env=env, log=log):
        processes.wait_until(lambda: processes.count(bootstrap, "posts") == 1, "the post is sent")
        processes.wait_until(lambda: "x: network" in log.read_text(), "the interruption is logged")
    text = log.read_text()
    assert "forbid to derive or store health information" in text
    assert "planted" not in text
    ((message),) = processes.read_all(bootstrap, "posts")
    assert message.key == b"planted-id"
