"""Decisions survive a page and a store that are killed while they are written."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from streams.broker.embedded import EmbeddedBroker
from streams.settings import Settings
from streams.store.open_database import open_database
from tests.integration import processes
from tests.integration.long_tests import long_test
from tests.integration.store.review_kills import review_and_kill
from tests.streams.web.conftest import fill, reports

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=long_test)])
async def test_kills_of_page_and_store_lose_no_decision_and_double_none(kills: int, tmp_path: Path) -> None:
    fill(tmp_path / "events.duckdb", reports(200 * kills))
    with EmbeddedBroker() as broker:
        port = str(processes.free_port())
        env = processes.environment(
            broker.bootstrap, processes.free_port(), PV_STORE=str(tmp_path / "store"), PV_WEB_PORT=port
        )
        outcome = await review_and_kill(env, tmp_path / "log", kills, random.Random(kills))
        ended = await asyncio.to_thread(processes.command, "store", "--until-end", env=env)
        assert ended.returncode == 0, ended.stderr
    with closing(open_database(Settings(database=env["PV_DATABASE"]))) as database:
        counts = dict(database.query("SELECT action, count(*) FROM reviews GROUP BY action")[1])
    kinds = Counter(kind for kind, *_ in outcome.decided.elements())
    assert counts == {"accept": kinds["event"], "assign": kinds["report"], "signal": kinds["signal"]}
    assert min(counts.values()) > 0
    print(f"{len(outcome.acknowledged)} decisions confirmed, {outcome.unanswered} cut off")
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert kills <= len(outcome.acknowledged) <= outcome.decided.total()
    assert outcome.decided.total() <= len(outcome.acknowledged) + outcome.unanswered
