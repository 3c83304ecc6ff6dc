"""The commands `web` and `reviews`."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from streams.cli.store.commands import reading
from streams.cli.terminal import broker_settings, err, read_settings

if TYPE_CHECKING:
    from models.terminology import Term
    from streams.reviews.log import ReviewLog
    from streams.settings import Settings

app = typer.Typer()
reviews = typer.Typer(help="Decisions of reviewers: `export`, `agreement`, `verify`.", no_args_is_help=True)
app.add_typer(reviews, name="reviews")


@app.command()
def web(
    terminology: Annotated[
        Path | None,
        typer.Option(help="table or MedDRA folder to choose codes from; by default the bundled one"),
    ] = None,
) -> None:
    """Serves a page to look at reports and signals and to review events, from the database of PV_DATABASE.

    With PV_BROKER it also shows reports as they arrive, and takes decisions.
    """
    from models.terminology import BUNDLED, load

    settings = read_settings()
    asyncio.run(_serve(settings, load(terminology or BUNDLED)))


async def _serve(settings: Settings, terms: list[Term]) -> None:
    from streams.web.app import application, start

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(stop_signal, stop.set)
    runner, port = await start(application(settings, terms))
    err.print(
        f"http://{settings.web_host}:{port}/ serves {settings.database}", highlight=False, soft_wrap=True
    )
    try:
        await stop.wait()
    finally:
        await runner.cleanup()


@reviews.command()
def export(
    as_cases: Annotated[
        bool, typer.Option("--cases", help="candidate cases with the criteria of a valid report as flags")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="cases as CSV, not as JSON Lines")] = False,
    undecided: Annotated[
        bool, typer.Option("--undecided", help="cases also of reports that nobody has reviewed")
    ] = False,
    texts: Annotated[bool, typer.Option(help="cases with their texts and addresses")] = True,
    examples: Annotated[
        bool, typer.Option("--examples", help="texts with what was decided, for `--reviews` of a training")
    ] = False,
) -> None:
    """Prints the decisions in the store as gold for `pvstream replay --against`, as JSON Lines: one for each
    report of which every event is decided. With --cases, candidate cases for a person to assess; with
    --examples, training data.
    """
    from streams.reviews.cases import cases, csv_lines, json_lines
    from streams.reviews.examples import example_lines
    from streams.reviews.gold import gold_lines

    if as_csv and not as_cases:
        raise typer.BadParameter("it needs --cases", param_hint="--csv")
    if examples and as_cases:
        raise typer.BadParameter("not with --cases", param_hint="--examples")
    with reading(read_settings()) as database:
        if as_cases:
            found = cases(database, undecided=undecided, texts=texts)
            sys.stdout.writelines(csv_lines(found) if as_csv else json_lines(found))
            return
        for line in example_lines(database) if examples else gold_lines(database):
            sys.stdout.write(line.decode())


@reviews.command()
def agreement() -> None:
    """Prints Cohen's kappa of the first and the second readings on the topic `reviews`, as JSON."""
    from streams.reviews.agreement import agreement as compute

    log = asyncio.run(_read(broker_settings()))
    sys.stdout.write(orjson.dumps(compute(log.readings.values())).decode() + "\n")


@reviews.command()
def verify() -> None:
    """Checks that no decision on the topic `reviews` was changed, removed or added behind the chain, and that
    none was cut off since the last one that was kept in PV_STATE.
    """
    from streams.reviews.head import KeptHead

    settings = broker_settings()
    decisions = asyncio.run(_read(settings)).reviews
    last, head = decisions[-1].hash if decisions else "none", KeptHead(settings).read()
    kept = f"{head.length} were kept on this machine" if head else "none was kept on this machine"
    err.print(
        f"{len(decisions)} decisions, the chain is whole; last hash {last}; {kept}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


async def _read(settings: Settings) -> ReviewLog:
    """The decisions of the topic, of which the chain is whole."""
    from streams.reviews.log import ReviewLog

    log = ReviewLog(settings)
    try:
        await log.start()
    finally:
        await log.stop()
    return log
