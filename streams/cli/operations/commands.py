"""Commands of operators: status, dead, check."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from streams.cli.arguments import MOST, MOST_SECONDS, check_dead_topic, check_workers
from streams.cli.groups import OPERATE, example
from streams.cli.terminal import broker_settings, out

app = typer.Typer()
JSON = Annotated[bool, typer.Option("--json", help="print as JSON")]


@app.command(rich_help_panel=OPERATE, epilog=example("status --worker 127.0.0.1:8000"))
def status(
    worker: Annotated[
        list[str] | None,
        typer.Option(help="host:port of the HTTP server of a worker, to list its state too; repeatable"),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            min=0,
            max=MOST_SECONDS,
            help="seconds without an acknowledgement after which a stage with lag counts as stalled",
        ),
    ] = 40.0,
    json: JSON = False,
) -> None:
    """Prints workers, lag and release of each stage, and the number of dead letters not sent back.

    The exit code is 1 if a stage has no worker or is stalled, or if a named worker does not answer.
    """
    from streams.cli.operations.status import print_status
    from streams.monitoring.status import read_status

    check_workers(worker or ())
    pipeline = asyncio.run(read_status(broker_settings(), worker or (), patience))
    print_status(out, pipeline, json=json)
    raise typer.Exit(1 if pipeline.problems else 0)


@app.command(rich_help_panel=OPERATE, epilog=example("dead posts.dead --limit 5"))
def dead(
    topic: Annotated[str | None, typer.Argument(help="a topic of dead letters; by default all")] = None,
    partition: Annotated[int | None, typer.Argument(min=0, help="partition of one letter")] = None,
    offset: Annotated[int | None, typer.Argument(min=0, help="offset of one letter")] = None,
    reason: Annotated[str | None, typer.Option(help="list only letters with this reason")] = None,
    limit: Annotated[
        int, typer.Option(min=0, max=MOST, help="maximum number of letters listed, the newest")
    ] = 20,
    text: Annotated[
        bool,
        typer.Option("--text", help="also print value and headers of the sender, which may quote a patient"),
    ] = False,
    json: JSON = False,
) -> None:
    """Counts dead letters by stage and reason, lists those of a topic, or prints one in full."""
    from streams.cli.operations.dead import run_counts, run_letter, run_topic
    from streams.dead_letters.redrive import REASONS

    if reason is not None and reason not in REASONS:
        raise typer.BadParameter(f"{reason!r} is none of {', '.join(REASONS)}", param_hint="--reason")
    if partition is not None and offset is None:
        raise typer.BadParameter("one letter has a partition and an offset", param_hint="OFFSET")
    if topic is not None:
        check_dead_topic(topic)
    settings = broker_settings()
    if topic is None:
        asyncio.run(run_counts(out, settings, json=json))
    elif partition is None or offset is None:
        asyncio.run(run_topic(out, settings, topic, reason=reason, limit=limit, json=json))
    else:
        asyncio.run(run_letter(out, settings, (topic, partition, offset), text=text, json=json))


@app.command(rich_help_panel=OPERATE, epilog=example("check --load"))
def check(
    load: Annotated[
        bool, typer.Option("--load", help="also load the releases; needs as much memory as a worker")
    ] = False,
    json: JSON = False,
) -> None:
    """Checks settings, brokers, topics, rights, store, releases, state and memory, with a fix for each.

    The exit code is 1 if a check fails; warnings do not count.
    """
    from streams.cli.operations.check import run_check

    raise typer.Exit(0 if asyncio.run(run_check(out, load=load, json=json)) else 1)
