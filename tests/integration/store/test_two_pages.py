"""Two processes of the page, and the reviewers who use them at the same time."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, CookieJar

from streams.broker.embedded import EmbeddedBroker
from streams.reviews.log import ReviewLog, place_of
from streams.settings import Settings
from tests.integration import processes
from tests.integration.store.review_kills import HIDDEN
from tests.streams.web.conftest import fill, reports

pytestmark = pytest.mark.slow
EVENTS, REVIEWERS = 24, 2
BOUND_S = 240


class Hands:
    """Which report each reviewer has in hand; fails where two have the same."""

    def __init__(self) -> None:
        self._held: dict[int, str] = {}
        self.most = 0

    def hold(self, reviewer: int, report: str) -> None:
        others = {held for one, held in self._held.items() if one != reviewer}
        assert report not in others, f"two reviewers have {report}"
        self._held[reviewer] = report
        self.most = max(self.most, len(self._held))

    def drop(self, reviewer: int) -> None:
        self._held.pop(reviewer, None)


async def test_reviewers_of_two_processes_never_have_the_same_report_and_decide_each_once(
    tmp_path: Path,
) -> None:
    fill(tmp_path / "events.duckdb", reports(EVENTS))
    with EmbeddedBroker() as broker:
        ports = [processes.free_port() for _ in range(2)]
        started = []
        try:
            for port in ports:
                store, state = tmp_path / "store", tmp_path / f"state{port}"
                env = processes.environment(
                    broker.bootstrap, 0, PV_STORE=str(store), PV_WEB_PORT=str(port)
                ) | {"PV_STATE": str(state)}
                log = tmp_path / f"{port}.log"
                started.append(
                    await asyncio.to_thread(processes.started, "web", env=env, log=log, forked=True)
                )
            hands = Hands()
            async with asyncio.timeout(BOUND_S):
                done = await asyncio.gather(*(review(ports[n % 2], n, hands) for n in range(2 * REVIEWERS)))
        finally:
            for process in started:
                process.kill()
                await asyncio.to_thread(process.wait, processes.STOP_S)
        chain = ReviewLog(Settings(broker=f"kafka://{broker.bootstrap}", state=tmp_path / "fresh"))
        await chain.start()
        await chain.stop()
    print(f"decisions of each reviewer: {done}")
    assert set(Counter(place_of(one) for one in chain.reviews).values()) == {1}
    assert sum(done) == len(chain.reviews) == EVENTS
    assert min(done) > 0 and hands.most > 2


async def review(port: int, reviewer: int, hands: Hands) -> int:
    """Accepts events until none waits; gives their number."""
    base, done = f"http://127.0.0.1:{port}", 0
    timeout = ClientTimeout(total=60)
    async with ClientSession(cookie_jar=CookieJar(unsafe=True), timeout=timeout) as client:
        while True:
            try:
                async with client.get(f"{base}/review?order=random") as answer:
                    html = await answer.text()
                    assert answer.status == 200, html
            except ClientError:  # it is starting
                await asyncio.sleep(0.1)
                continue
            if 'id="decision"' not in html:
                return done
            form = html[html.index('id="decision"') :]
            fields = {
                name: unescape(value) for name, value in re.findall(HIDDEN, form[: form.index("</form>")])
            }
            hands.hold(reviewer, fields["report"])
            await asyncio.sleep(0.2)
            # From here on the page may give the event back.
            hands.drop(reviewer)
            data = fields | {"action": "accept"}
            async with client.post(f"{base}/review", data=data, allow_redirects=False) as answer:
                assert answer.status == 303, await answer.text()
            done += 1
