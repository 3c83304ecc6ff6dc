"""The command `supplement`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from models.redaction import redact
from streams.cli.arguments import MOST_SECONDS
from streams.cli.groups import MODELS, example
from streams.cli.release_commands import KEY
from streams.cli.terminal import broker_settings, say
from streams.stopping import at_signals

if TYPE_CHECKING:
    from streams.rollout.supplement import Supplements

app = typer.Typer()


@app.command(rich_help_panel=MODELS, epilog=example("supplement --announce --every 20"))
def supplement(
    announce: Annotated[
        bool, typer.Option("--announce", help="announce it; else it is only stored, for a replay")
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            min=0, max=MOST_SECONDS, help="look again after this many seconds, until Ctrl-C; 0: once"
        ),
    ] = 0,
    key: KEY = None,
) -> None:
    """Has the relations and codes that reviewers decided decide nearly the same ones, without training.

    They become supplements of the live releases; their texts are read from PV_DATABASE. A rollback to such a
    release takes one back, with --every until the next decision.
    """
    from streams.rollout.supplement import CODES, PAIRS, Supplements

    settings = broker_settings()
    made = [Supplements(settings, key, kind) for kind in (PAIRS, CODES)]
    asyncio.run(run(made, asyncio.Event(), announce=announce, every=every))


async def run(
    supplements: Sequence[Supplements], stop: asyncio.Event, *, announce: bool, every: float
) -> None:
    """Once, or until `stop` is set, or a signal sets it; with `every` what can pass is tried again."""
    from aiokafka.errors import KafkaError

    from models.releases.manifest import ReleaseError
    from streams.rollout.announcing import GateError
    from streams.store.database import DatabaseError
    from streams.topics import TopicsError

    at_signals(stop.set)
    said: dict[str, str] = {}
    while not stop.is_set():
        failed: Exception | None = None
        for one in supplements:
            try:
                line = await _once(one, announce=announce, is_repeated=every > 0)
            except (KafkaError, ReleaseError, GateError, DatabaseError, TopicsError, OSError) as error:
                failed = failed or error
                line = f"tried again: {redact(str(error)) or type(error).__name__}" if every else ""
            if line and line != said.get(one.kind.task):
                say(line)
                said[one.kind.task] = line
        if not every and failed is not None:
            raise failed
        if not every:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every)


async def _once(supplements: Supplements, *, announce: bool, is_repeated: bool) -> str:
    """What was done, in one line."""
    plan, kind = await supplements.plan(), supplements.kind
    named = f"{len(plan.decided)} decided {kind.called} of {plan.base}"
    if is_repeated and plan.taken_back:
        return f"{plan.base} was gone back to: waiting for the next decision"
    if announce:
        done = await supplements.announce(plan)
        if done is not None:
            return f"{named}: {kind.task} {done.version} is announced in place of {done.previous}"
        return "" if is_repeated else f"{named}: nothing to announce"
    stored = supplements.store(plan)
    return f"{named}: " + (f"{kind.task} {stored.version} is in the store" if stored else "none")
