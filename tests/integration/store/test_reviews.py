"""Decisions survive a page that is killed while they are written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from streams.broker.embedded import EmbeddedBroker
from tests.integration import processes
from tests.integration.long_tests import long_test
from tests.integration.store.review_kills import review_and_kill
from tests.streams.web.conftest import fill, reports

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=long_test)])
async def test_kills_of_the_page_lose_no_decision_and_double_none(kills: int, tmp_path: Path) -> None:
    fill(tmp_path / "events.duckdb", reports(200 * kills))
    with EmbeddedBroker() as broker:
        port = str(processes.free_port())
        env = processes.environment(
            broker.bootstrap, processes.free_port(), PV_STORE=str(tmp_path / "store"), PV_WEB_PORT=port
        )
        outcome = await review_and_kill(env, tmp_path / "log", kills, random.Random(kills))
    print(f"{len(outcome.acknowledged)} decisions confirmed, {outcome.unanswered} cut off")
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert kills <= len(outcome.acknowledged) <= outcome.decided.total()
    assert outcome.decided.total() <= len(outcome.acknowledged) + outcome.unanswered
