"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.text import Text

from streams.cli import release_commands, replay_commands
from streams.cli.terminal import err, out, real_broker, settings

STARTED = time.monotonic()
app = typer.Typer(
    help="Streaming pharmacovigilance: posts, clinical sentences and questions in; "
    "coded events, relations and summaries out.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
)  # fmt: skip
app.add_typer(release_commands.app)
app.add_typer(replay_commands.app)


@app.command()
def demo(
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="TOPIC=FILE", help="JSON Lines instead of the samples; repeatable"),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="lines of each input at most; 0: all")] = 0,
    report: Annotated[Path | None, typer.Option(help="write what happened as JSON")] = None,
    show: Annotated[int, typer.Option(min=0, help="results to print in full, of each topic")] = 25,
    keep: Annotated[bool, typer.Option(help="stay up at the end, until Ctrl-C")] = False,
) -> None:
    """Runs everything in one process: embedded broker, all stages, samples in, results as they arrive."""
    from streams.cli.console import run_demo  # noqa: PLC0415

    chosen = settings()
    if "http_port" not in chosen.model_fields_set:
        chosen = chosen.model_copy(update={"http_port": 0})
    files = _files(inputs) if inputs else None
    outcome = asyncio.run(run_demo(out, files, chosen, limit=limit, show=show, keep=keep, started=STARTED))
    if report is not None:
        report.write_bytes(orjson.dumps(outcome.as_dict(), option=orjson.OPT_INDENT_2))
    raise typer.Exit(0 if outcome.ok else 1)


@app.command()
def up() -> None:
    """Runs all stages in one process, on the broker of PV_BROKER or on an embedded one."""
    from streams.pipeline import STAGES  # noqa: PLC0415
    from streams.settings import EMBEDDED  # noqa: PLC0415

    chosen = settings()
    if chosen.broker == EMBEDDED:
        from streams.broker.embedded import EmbeddedBroker  # noqa: PLC0415

        with EmbeddedBroker() as broker:
            address = f"kafka://{broker.bootstrap}"
            err.print(
                f"embedded broker, in memory only. From another terminal:\n"
                f"  PV_BROKER={address} pvstream ingest posts FILE"
            )
            asyncio.run(_serve(STAGES, chosen.model_copy(update={"broker": address})))
    else:
        asyncio.run(_serve(STAGES, chosen, create=True))


@app.command()
def worker(
    stage: Annotated[str, typer.Option(help="ner, acronym, relation, normalization or summarization")],
) -> None:
    """Runs one stage; start more of them to scale, up to the partitions of its source topic."""
    from streams.pipeline import stage_named  # noqa: PLC0415

    try:
        chosen = stage_named(stage)
    except KeyError as error:
        raise typer.BadParameter(str(error.args[0]), param_hint="--stage") from None
    asyncio.run(_serve((chosen,), real_broker()))


@app.command()
def ingest(
    topic: Annotated[str, typer.Argument(help="posts, sentences or questions")],
    file: Annotated[
        str,
        typer.Argument(help="JSON Lines with id, text and optional created_at, drug; - for standard input"),
    ],
    rate: Annotated[float, typer.Option(min=0, help="reports a second at most; 0: no limit")] = 0,
) -> None:
    """Sends reports to an input topic. Lines that are no report are refused with their number; then the exit
    code is 1.
    """
    from streams.cli.console import run_ingest  # noqa: PLC0415
    from streams.topics import INPUTS  # noqa: PLC0415

    if topic not in {t.name for t in INPUTS}:
        raise typer.BadParameter(
            f"{topic!r} is none of {', '.join(t.name for t in INPUTS)}", param_hint="TOPIC"
        )
    if file != "-" and not Path(file).is_file():
        raise typer.BadParameter(f"no file {file}", param_hint="FILE")
    chosen = real_broker()
    if file == "-":
        refused = asyncio.run(run_ingest(err, topic, sys.stdin.buffer, None, chosen, rate))
    else:
        with Path(file).open("rb") as lines:
            refused = asyncio.run(run_ingest(err, topic, lines, Path(file).stat().st_size, chosen, rate))
    raise typer.Exit(1 if refused else 0)


@app.command()
def tail(
    topic: Annotated[str, typer.Argument(help="any topic, `events` or `posts.dead` for example")],
    beginning: Annotated[
        bool, typer.Option("--from-beginning", help="everything that is there, not only what comes")
    ] = False,
    count: Annotated[int, typer.Option(min=0, help="stop after so many; 0: go on until Ctrl-C")] = 0,
    json: Annotated[bool, typer.Option("--json", help="the records as they are, a line each")] = False,
) -> None:
    """Shows the records of a topic as they come."""
    from streams.cli.console import run_tail  # noqa: PLC0415
    from streams.topics import by_name  # noqa: PLC0415

    asyncio.run(run_tail(out, by_name(topic), real_broker(), beginning=beginning, count=count, json=json))


@app.command()
def topics(create: Annotated[bool, typer.Option("--create", help="create what is missing")] = False) -> None:
    """Shows the topics, what they are created with and what the broker has; creates them on demand."""
    from streams.cli.console import run_topics  # noqa: PLC0415

    asyncio.run(run_topics(out, real_broker(), create=create))


@app.command()
def schema(
    topic: Annotated[str | None, typer.Argument(help="one topic; without it all of them")] = None,
) -> None:
    """JSON Schema of the records of every topic."""
    from streams import codec  # noqa: PLC0415
    from streams.topics import TOPICS, by_name  # noqa: PLC0415

    chosen = [by_name(topic)] if topic else [t for t in TOPICS if t.record is not None]
    schemas = {t.name: codec.schema(t.record) for t in chosen if t.record is not None}
    sys.stdout.buffer.write(orjson.dumps(schemas, option=orjson.OPT_INDENT_2) + b"\n")


async def _serve(stages: Any, chosen: Any, *, create: bool = False) -> None:
    from streams import topics as table  # noqa: PLC0415
    from streams.worker import Worker  # noqa: PLC0415

    if create:
        await table.create(chosen)
    process = Worker(stages, chosen)
    await process.load()
    await process.serve()


def _files(inputs: list[str]) -> dict[str, Path]:
    from streams.topics import INPUTS  # noqa: PLC0415

    names = [t.name for t in INPUTS]
    files = {}
    for item in inputs:
        topic, _, path = item.partition("=")
        if topic not in names or not Path(path).is_file():
            raise typer.BadParameter(
                f"{item!r}: wanted is TOPIC=FILE with a topic of {', '.join(names)} and a file that exists"
            )
        files[topic] = Path(path)
    return files


def main() -> None:
    """Runs the command line; a failure that a person can act on ends in one line and exit code 1."""
    from aiokafka.errors import KafkaError  # noqa: PLC0415

    from models.releases.manifest import ReleaseError  # noqa: PLC0415
    from streams.broker.client_logs import RepeatFilter  # noqa: PLC0415
    from streams.releases.publishing import GateError  # noqa: PLC0415
    from streams.topics import TopicsError  # noqa: PLC0415
    from streams.worker import WorkerFailed  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatFilter())
    for name in ("streams", "models"):
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        app()
    except (KafkaError, ReleaseError, GateError, TopicsError, WorkerFailed, OSError) as error:
        err.print("[bold red]error:[/]", Text(str(error) or type(error).__name__), soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
