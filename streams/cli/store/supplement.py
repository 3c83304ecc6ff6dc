"""The command `supplement`."""

from __future__ import annotations

import asyncio
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
    from streams.rollout.supplement import Plan, Supplements

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
    """Has the relations that reviewers decided decide others that are nearly the same, without training.

    They become a supplement of the live release; their texts are read from PV_DATABASE. A rollback to that
    release takes it back, with --every until the next decision.
    """
    from streams.rollout.supplement import Supplements

    asyncio.run(run(Supplements(broker_settings(), key), asyncio.Event(), announce=announce, every=every))


async def run(supplements: Supplements, stop: asyncio.Event, *, announce: bool, every: float) -> None:
    """Once, or until `stop` is set, or a signal sets it; with `every` what can pass is tried again."""
    from aiokafka.errors import KafkaError

    from models.releases.manifest import ReleaseError
    from streams.rollout.announcing import GateError
    from streams.store.database import DatabaseError
    from streams.topics import TopicsError

    at_signals(stop.set)
    said = ""
    while not stop.is_set():
        try:
            line = await _once(supplements, announce=announce, is_repeated=every > 0)
        except (KafkaError, ReleaseError, GateError, DatabaseError, TopicsError, OSError) as error:
            if not every:
                raise
            line = f"tried again: {redact(str(error)) or type(error).__name__}"
        if line and line != said:
            say(line)
            said = line
        if not every:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every)


async def _once(supplements: Supplements, *, announce: bool, is_repeated: bool) -> str:
    """What was done, in one line."""
    plan = await supplements.plan()
    if is_repeated and plan.taken_back:
        return f"{plan.base} was gone back to: waiting for the next decision"
    if announce:
        done = await supplements.announce(plan)
        if done is not None:
            return f"{_named(plan)}: relation {done.version} is announced in place of {done.previous}"
        return "" if is_repeated else f"{_named(plan)}: nothing to announce"
    stored = supplements.store(plan)
    return f"{_named(plan)}: " + (f"relation {stored.version} is in the store" if stored else "none")


def _named(plan: Plan) -> str:
    return f"{len(plan.pairs)} decided pairs of {plan.base}"
