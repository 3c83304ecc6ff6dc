"""A reviewer who goes on deciding while `pvstream web` and `pvstream store` are killed again and again."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

from aiohttp import ClientError, ClientSession, ClientTimeout, CookieJar

from streams.records import Assignment, Decision, Review
from streams.reviews.log import ReviewLog, place_of
from streams.settings import Settings
from tests.integration import processes

#: Seconds for one answer, and for a start of the process on a busy machine.
ANSWER_S, START_S = 30.0, 120.0
PAIR = {"drug": "sertraline", "term": "Nausea"}
#: A decision: on an event, on a signal by its comment, or the assignment of a report.
Made = tuple[str, ...]
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


@dataclass
class Outcome:
    """What the reviewer was told, and what the chain has."""

    acknowledged: list[Made] = field(default_factory=list)
    """Decisions that the page has confirmed."""
    unanswered: int = 0
    """Requests that a kill has cut off; the decision may be in the chain."""
    decided: Counter[Made] = field(default_factory=Counter)
    """Decisions in the chain."""

    @property
    def lost(self) -> int:
        return len(set(self.acknowledged) - self.decided.keys())

    @property
    def doubled(self) -> int:
        return sum(n - 1 for n in self.decided.values())


async def review_and_kill(env: dict[str, str], log: Path, kills: int, rng: random.Random) -> Outcome:
    """Kills both so often, each time at some moment after one to three decisions; reads the chain at the end,
    which raises BrokenChain where it is not whole or shorter than it was.
    """
    outcome = Outcome()
    base = f"http://127.0.0.1:{env['PV_WEB_PORT']}"
    for kill in range(kills):
        store = await asyncio.to_thread(processes.started, "store", env=env, log=log, forked=True)
        process = await asyncio.to_thread(processes.started, "web", env=env, log=log, forked=True)
        try:
            reviewer = asyncio.create_task(_decide(base, outcome))
            wanted = len(outcome.acknowledged) + 3 - kill % 3
            await _decided(wanted, outcome, reviewer, process, log)
            await asyncio.sleep(rng.uniform(0, 0.3))
        finally:
            for one in rng.sample((process, store), 2):
                one.kill()
                await asyncio.to_thread(one.wait, processes.STOP_S)
        async with asyncio.timeout(ANSWER_S):
            await reviewer
    chain = ReviewLog(Settings(broker=env["PV_BROKER"], state=Path(env["PV_STATE"])))
    try:
        await chain.start()
    finally:
        await chain.stop()
    outcome.decided.update(map(_made, chain.decisions))
    return outcome


async def _decided(
    wanted: int, outcome: Outcome, reviewer: asyncio.Task[None], process: processes.Running, log: Path
) -> None:
    async with asyncio.timeout(START_S):
        while len(outcome.acknowledged) < wanted:
            assert process.poll() is None, await asyncio.to_thread(log.read_text)
            if reviewer.done():
                reviewer.result()
            await asyncio.sleep(0.01)


async def _decide(base: str, outcome: Outcome) -> None:
    """Accepts one event after the other, assigns its report and decides on a signal, from the start of the
    page until it is killed.
    """
    timeout = ClientTimeout(total=ANSWER_S)
    async with ClientSession(base, cookie_jar=CookieJar(unsafe=True), timeout=timeout) as client:
        started = False
        for _ in range(10_000):
            try:
                form = await _form(client, "/review", 'id="decision"')
                started = True
                made: Made = ("event", form["report"], form["start"], form["end"], form["fingerprint"])
                await _send(client, "/review", form | {"action": "accept"}, outcome, made)
                address = f"/report?{urlencode({'id': form['report']})}"
                form = await _form(client, address, 'action="/review/assign"')
                made = ("report", form["report"])
                await _send(client, "/review/assign", form | {"owner": "bob"}, outcome, made)
                form = await _form(client, f"/pair?{urlencode(PAIR)}", 'action="/review/signal"')
                made = ("signal", str(outcome.unanswered + len(outcome.acknowledged)))
                state = {"state": "under review", "reason": "seen", "comment": made[1]}
                await _send(client, "/review/signal", form | state, outcome, made)
            except (ClientError, TimeoutError):
                if started:
                    return
                await asyncio.sleep(0.05)
    raise AssertionError("the page was not killed")


async def _send(client: ClientSession, path: str, data: dict[str, str], outcome: Outcome, made: Made) -> None:
    outcome.unanswered += 1
    async with client.post(path, data=data, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
    outcome.unanswered -= 1
    outcome.acknowledged.append(made)


async def _form(client: ClientSession, address: str, start: str) -> dict[str, str]:
    """The hidden fields of a form of the page."""
    async with client.get(address) as answer:
        html = await answer.text()
    assert start in html, f"{address} has no form; or the store has too few events for so many decisions"
    form = html[html.index(start) :]
    return {name: unescape(value) for name, value in HIDDEN.findall(form[: form.index("</form>")])}


def _made(decision: Decision) -> Made:
    if isinstance(decision, Review):
        return "event", *map(str, place_of(decision))
    if isinstance(decision, Assignment):
        return "report", decision.report_id
    return "signal", decision.comment
