"""The commands `web` and `reviews`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streams.cli.groups import RESULTS, example
from streams.cli.store.commands import or_say, reading
from streams.cli.terminal import broker_settings, err, read_settings, say

if TYPE_CHECKING:
    from models.terminology import Term
    from streams.reviews.log import ReviewLog
    from streams.settings import Settings

app = typer.Typer()
reviews = typer.Typer(help="Decisions of reviewers: `export`, `agreement`, `verify`.", no_args_is_help=True)
app.add_typer(reviews, name="reviews", rich_help_panel=RESULTS)


@app.command(rich_help_panel=RESULTS, epilog=example("web"))
def web(
    terminology: Annotated[
        Path | None,
        typer.Option(
            exists=True, help="TSV table or MedDRA folder that offers the codes; by default the bundled one"
        ),
    ] = None,
) -> None:
    """Serves the page of the database of PV_DATABASE: its reports and signals, and the review of events.

    Reports as they arrive, and decisions on events, need PV_BROKER.
    """
    from models.terminology import BUNDLED, TerminologyError, load

    settings = read_settings()
    try:
        terms = load(terminology or BUNDLED)
    except TerminologyError as error:
        raise typer.BadParameter(str(error), param_hint="--terminology") from None
    asyncio.run(_serve(settings, terms))


async def _serve(settings: Settings, terms: list[Term]) -> None:
    from streams.stopping import at_signals, before_stop
    from streams.web.app import application, start

    stop = asyncio.Event()
    at_signals(stop.set)
    started = await before_stop(stop, start(application(settings, terms)))
    if started is None:
        return
    runner, port = started
    say(f"http://{settings.web_host}:{port}/ serves {settings.database}", err)
    try:
        await stop.wait()
    finally:
        await runner.cleanup()


@reviews.command(epilog=example("reviews export > gold.jsonl"))
def export(
    examples: Annotated[
        bool, typer.Option("--examples", help="print training data, for --reviews of a training program")
    ] = False,
) -> None:
    """Prints the decisions in the store as gold for `pvstream replay --against`, as JSON Lines.

    There is one line for each report of which every event is decided.

    --examples prints training data instead.
    """
    from streams.reviews.examples import example_lines, gold_lines

    with reading(read_settings()) as database:
        lines = example_lines(database) if examples else gold_lines(database)
        for line in or_say(lines, "no report has a decision on each of its events"):
            sys.stdout.write(line.decode())


@reviews.command(epilog=example("reviews agreement"))
def agreement() -> None:
    """Prints Cohen's kappa between the first and second readings on the topic `reviews`, as JSON."""
    from streams.reviews.agreement import agreement as compute

    log = asyncio.run(_read(broker_settings()))
    sys.stdout.write(orjson.dumps(compute(log.readings.values())).decode() + "\n")


@reviews.command(epilog=example("reviews verify"))
def verify() -> None:
    """Checks that the decisions on the topic `reviews` form an unbroken chain of hashes.

    A decision that was changed, removed or inserted breaks it.

    The end of the chain is compared with the last decision that this machine has kept in PV_STATE.
    """
    from streams.reviews.chain_head import KeptHead

    settings = broker_settings()
    log = asyncio.run(_read(settings))
    decisions, passed = log.decisions, f"; {log.passed} records are no decisions" if log.passed else ""
    last, head = decisions[-1].hash if decisions else "none", KeptHead(settings).read()
    known = f"{head.length} were kept on this machine" if head else "none was kept on this machine"
    say(f"{len(decisions)} decisions, the chain is whole; last hash {last}; {known}{passed}", err)


async def _read(settings: Settings) -> ReviewLog:
    """The decisions of the topic, of which the chain is whole."""
    from streams.reviews.log import ReviewLog

    log = ReviewLog(settings)
    try:
        await log.start()
    finally:
        await log.stop()
    return log
