"""Commands that run the pipeline or parts of it: demo, up, worker, ingest, tail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import orjson
import typer

from streams.cli.arguments import INPUT, MOST, STAGE, input_files, known_topic
from streams.cli.files import check_writable, write_whole
from streams.cli.groups import DATA, RUN, example
from streams.cli.input import COLUMN, DAY_FIRST, ENCODING, FORMATS, REJECTED, how_to_read
from streams.cli.terminal import broker_settings, err, out, read_settings

if TYPE_CHECKING:
    from streams.records import Report
    from streams.settings import Settings

app = typer.Typer()
INPUTS_OPTION = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="TOPIC=FILE", help=f"{FORMATS}: sent instead of the samples; repeatable"),
]
KEEP = Annotated[bool, typer.Option(help="keep running at the end, with a page of the results, until Ctrl-C")]
LINES = Annotated[int, typer.Option(min=0, max=MOST, help="maximum number of lines of each input; 0: all")]
RESULTS = Annotated[int, typer.Option(min=0, max=MOST, help="maximum number of results printed per topic")]
RECORDS = Annotated[
    int, typer.Option(min=0, max=MOST, help="stop after this many records; 0: run until Ctrl-C")
]


@app.command(rich_help_panel=RUN, epilog=example("demo --input posts=posts.jsonl"))
def demo(
    inputs: INPUTS_OPTION = None,
    column: COLUMN = None,
    encoding: ENCODING = None,
    day_first: DAY_FIRST = None,
    rejected: REJECTED = None,
    limit: LINES = 0,
    report: Annotated[Path | None, typer.Option(help="write the figures of the run here, as JSON")] = None,
    show: RESULTS = 25,
    keep: KEEP = False,
    web: Annotated[bool, typer.Option("--web/--no-web", help="whether --keep serves the page")] = True,
) -> None:
    """Runs all stages on an embedded broker, sends the samples and prints the results."""
    from streams.cli.demo.console import run_demo
    from streams.cli.demo.run import Demo, process_started, samples

    check_writable(report=report)
    reading = how_to_read(column, encoding, day_first, rejected)
    settings = _without_a_server()
    files = input_files(inputs) if inputs else samples()
    pipeline = Demo(
        files, settings, reading=reading, limit=limit, started=process_started(), shown=keep and web,
    )  # fmt: skip
    outcome = asyncio.run(run_demo(out, pipeline, show=show, keep=keep))
    if report is not None:
        write_whole(report, orjson.dumps(outcome.as_dict(), option=orjson.OPT_INDENT_2))
    nothing = not outcome.tally.inputs
    if nothing:
        why = f"all {len(outcome.refused)} lines were refused" if outcome.refused else "the input is empty"
        err.print(f"[bold red]error:[/] nothing was sent: {why}", highlight=False, soft_wrap=True)
    raise typer.Exit(0 if outcome.ok and not nothing else 1)


def _without_a_server() -> Settings:
    """The settings, with no HTTP server where no port is named."""
    settings = read_settings()
    if "http_port" in settings.model_fields_set:
        return settings
    return settings.model_copy(update={"http_port": 0})


@app.command(rich_help_panel=RUN, epilog=example("up --store"))
def up(
    store: Annotated[
        bool, typer.Option("--store", help="also write the results into the database of PV_DATABASE")
    ] = False,
    web: Annotated[
        bool,
        typer.Option(
            "--web/--no-web", help="whether to serve the page of the results, as `pvstream web` does"
        ),
    ] = True,
    processes: Annotated[
        int, typer.Option(min=1, max=64, help="processes of all stages, on the broker of PV_BROKER")
    ] = 1,
) -> None:
    """Runs all stages in one process, on the broker given by PV_BROKER or on an embedded one.

    The page needs --store; on the embedded broker, without --store, its database is deleted at the end.
    """
    from models.types import TASKS
    from streams.settings import EMBEDDED

    if processes > 1:
        store &= _divided(processes, ["--store"] if store else [], web) == 0
    settings = read_settings()
    if settings.broker == EMBEDDED:
        _up_embedded(settings, store=store, web=web)
    else:
        results = settings if store else None
        asyncio.run(_serve(TASKS, settings, create=True, results=results, web=web))


def _divided(processes: int, first: Sequence[str], web: bool) -> int:
    """Divides this process into copies with the models; returns in each of them, with its number."""
    from streams.cli.operations.preloading import share_models
    from streams.cli.operations.processes import divide, of_this_program
    from streams.stopping import end_at_sigterm

    settings = broker_settings()
    end_at_sigterm()
    commands = of_this_program(["up"], [*first, *([] if web else ["--no-web"])], processes, settings)
    return divide(commands, settings.grace, copies=share_models(settings))


def _up_embedded(settings: Settings, *, store: bool, web: bool) -> None:
    from models.types import TASKS
    from streams.broker.embedded import EmbeddedBroker
    from streams.cli.store.page import temporary_settings

    with EmbeddedBroker(settings.prefix) as broker:
        address = f"kafka://{broker.bootstrap}"
        err.print(
            f"embedded broker started, in memory only. In another terminal, run:\n"
            f"  PV_BROKER={address} pvstream ingest posts FILE"
        )
        own = settings.model_copy(update={"broker": address})
        with temporary_settings(own, keeps_database=store) as new:
            asyncio.run(_serve(TASKS, own, alone=True, results=new if store or web else None, web=web))


@app.command(rich_help_panel=RUN, epilog=example("worker --stage ner"))
def worker(
    stage: Annotated[STAGE, typer.Option(help="the stage")],
) -> None:
    """Runs one stage. To scale, start more workers, up to the number of partitions of its source topic."""
    asyncio.run(_serve((stage,), broker_settings()))


@app.command(rich_help_panel=DATA, epilog=example("ingest posts posts.jsonl --rate 50"))
def ingest(
    topic: Annotated[INPUT, typer.Argument(help="the topic")],
    file: Annotated[
        str,
        typer.Argument(
            help=f"{FORMATS}, with text and optional id, created_at, drug, indication; - for standard input"
        ),
    ],
    rate: Annotated[float, typer.Option(min=0, help="maximum number of reports per second; 0: no limit")] = 0,
    mask: Annotated[
        bool, typer.Option("--mask", help="mask names of users, URLs, e-mail addresses and phone numbers")
    ] = False,
    column: COLUMN = None,
    encoding: ENCODING = None,
    day_first: DAY_FIRST = None,
    rejected: REJECTED = None,
) -> None:
    """Sends reports to an input topic.

    With --mask the field `author` is a handle, of which a keyed hash is sent; unknown fields are left out.

    Lines that are not valid reports are refused and listed by their numbers; the exit code is then 1.
    """
    from streams.cli.ingest import InputFile, run_ingest
    from streams.input_rows import RowReader

    if file != "-" and not Path(file).is_file():
        raise typer.BadParameter(f"no file {file}", param_hint="FILE")
    reading = how_to_read(column, encoding, day_first, rejected)
    settings = broker_settings()
    name, size = ("stdin", None) if file == "-" else (Path(file).name, Path(file).stat().st_size)
    reader = RowReader(name, _parser(settings, mask), day_first)
    source = InputFile(topic, lambda: reading.open(_source(file)), reader, size, rejected)
    refused = asyncio.run(run_ingest(err, source, settings, rate))
    raise typer.Exit(1 if refused else 0)


def _parser(settings: Settings, mask: bool) -> Callable[[dict[str, Any]], Report]:
    """What makes a report of an object."""
    if mask:
        from streams.intake.intake import Privacy, masked_report

        return partial(masked_report, privacy=Privacy.of(settings))
    from streams.input_reports import report_of

    return report_of


def _source(file: str) -> Path | BinaryIO:
    from streams.pipe import standard_input

    return standard_input() if file == "-" else Path(file)


@app.command(rich_help_panel=DATA, epilog=example("tail events --latest --count 10"))
def tail(
    topic: Annotated[str, typer.Argument(help="any topic, for example `events` or `posts.dead`")],
    beginning: Annotated[
        bool, typer.Option("--from-beginning", help="start with the oldest record, not with the next one")
    ] = False,
    count: RECORDS = 0,
    latest: Annotated[
        bool,
        typer.Option("--latest", help="print only the latest record of each key that is in the topic now"),
    ] = False,
    until_end: Annotated[
        bool,
        typer.Option("--until-end", help="print what is in the topic now, from the oldest record, and end"),
    ] = False,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help='print the records unchanged, one per line; a deletion as {"key": ..., "value": null}',
        ),
    ] = False,
) -> None:
    """Prints the records of a topic as they arrive."""
    from streams.cli.topic_output import run_latest, run_tail, run_until_end

    chosen = known_topic(topic)
    if latest and chosen.record is None:
        raise typer.BadParameter("dead letters have no latest record", param_hint="--latest")
    settings = broker_settings()
    if latest:
        asyncio.run(run_latest(out, chosen, settings, count=count, json=json))
    elif until_end:
        asyncio.run(run_until_end(out, chosen, settings, count=count, json=json))
    else:
        asyncio.run(run_tail(out, chosen, settings, beginning=beginning, count=count, json=json))


async def _serve(
    stages: Sequence[str],
    settings: Settings,
    *,
    create: bool = False,
    alone: bool = False,
    results: Settings | None = None,
    web: bool = False,
) -> None:
    """Runs a worker until it is stopped; `create` first creates the missing topics, `alone` as in Worker.
    `results` are the settings of the store that the outputs are written to, if any; with `web` its page is
    served.
    """
    from streams import topics
    from streams.broker.watch import BrokerWatch
    from streams.stopping import ended_by_signals
    from streams.worker import Worker

    with ended_by_signals():
        # After the worker, whose imports say that they take a while.
        from streams.agents.pipeline import stage_named

        if create:
            await BrokerWatch(settings).until_answered(partial(topics.create, settings))
        process = Worker([stage_named(name) for name in stages], settings, alone=alone)
        if results is None:
            await process.serve()
            return
        from streams.cli.store.page import page
        from streams.store.follow import following

        await process.load()
        async with following(results) as task, page(results) if web else nullcontext() as address:
            if address:
                err.print(f"{address} shows the results", highlight=False, soft_wrap=True)
            process.beside.append(task)
            await process.serve()
