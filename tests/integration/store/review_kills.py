"""A reviewer who goes on deciding while `pvstream web` is killed again and again."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout, CookieJar

from streams.reviews.log import Place, ReviewLog, place_of
from streams.settings import Settings
from tests.integration import processes

#: Seconds for one answer, and for a start of the process on a busy machine.
ANSWER_S, START_S = 30.0, 120.0
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


@dataclass
class Outcome:
    """What the reviewer was told, and what the chain has."""

    acknowledged: list[Place] = field(default_factory=list)
    """Decisions that the page has confirmed."""
    unanswered: int = 0
    """Requests that a kill has cut off; the decision may be in the chain."""
    decided: Counter[Place] = field(default_factory=Counter)
    """Decisions in the chain."""

    @property
    def lost(self) -> int:
        return len(set(self.acknowledged) - self.decided.keys())

    @property
    def doubled(self) -> int:
        return sum(n - 1 for n in self.decided.values())


async def review_and_kill(env: dict[str, str], log: Path, kills: int, rng: random.Random) -> Outcome:
    """Kills the page so often, each time at some moment after a decision or two; reads the chain at the end,
    which raises BrokenChain where it is not whole or shorter than it was.
    """
    outcome = Outcome()
    base = f"http://127.0.0.1:{env['PV_WEB_PORT']}"
    for _ in range(kills):
        process = await asyncio.to_thread(processes.started, "web", env=env, log=log, forked=True)
        try:
            reviewer = asyncio.create_task(_decide(base, outcome))
            await _next_decision(outcome, reviewer, process, log)
            await asyncio.sleep(rng.uniform(0, 0.3))
        finally:
            process.kill()
            await asyncio.to_thread(process.wait, processes.STOP_S)
        async with asyncio.timeout(ANSWER_S):
            await reviewer
    chain = ReviewLog(Settings(broker=env["PV_BROKER"], state=Path(env["PV_STATE"])))
    try:
        await chain.start()
    finally:
        await chain.stop()
    outcome.decided.update(place_of(review) for review in chain.reviews)
    return outcome


async def _next_decision(
    outcome: Outcome, reviewer: asyncio.Task[None], process: processes.Running, log: Path
) -> None:
    before = len(outcome.acknowledged)
    async with asyncio.timeout(START_S):
        while len(outcome.acknowledged) == before:
            assert process.poll() is None, await asyncio.to_thread(log.read_text)
            if reviewer.done():
                reviewer.result()
            await asyncio.sleep(0.01)


async def _decide(base: str, outcome: Outcome) -> None:
    """Accepts one event after the other, from the start of the page until it is killed."""
    timeout = ClientTimeout(total=ANSWER_S)
    async with ClientSession(cookie_jar=CookieJar(unsafe=True), timeout=timeout) as client:
        started = False
        for _ in range(10_000):
            try:
                async with client.get(f"{base}/review") as answer:
                    form = _form(await answer.text())
                started = True
                await _send(client, base, form, outcome)
            except (ClientError, TimeoutError):
                if started:
                    return
                await asyncio.sleep(0.05)
    raise AssertionError("the page was not killed")


async def _send(client: ClientSession, base: str, form: dict[str, str], outcome: Outcome) -> None:
    place = form["report"], int(form["start"]), int(form["end"]), form["fingerprint"]
    data = form | {"action": "accept"}
    outcome.unanswered += 1
    async with client.post(f"{base}/review", data=data, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
    outcome.unanswered -= 1
    outcome.acknowledged.append(place)


def _form(html: str) -> dict[str, str]:
    """The hidden fields of the decision that the page asks for."""
    assert 'id="decision"' in html, "the store has too few events for so many decisions"
    form = html[html.index('id="decision"') :]
    return {name: unescape(value) for name, value in HIDDEN.findall(form[: form.index("</form>")])}
