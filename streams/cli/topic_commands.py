"""Commands about the topics: their state on the broker, and the schema of their records."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import orjson
import typer

from streams.cli.terminal import broker_settings, out

app = typer.Typer()


@app.command()
def topics(
    create: Annotated[bool, typer.Option("--create", help="create the missing topics")] = False,
) -> None:
    """Lists the topics, the settings they are created with and their state on the broker, and every
    difference between the two. The exit code is 1 if the pipeline cannot work with one of them.
    """
    from streams.cli.console import run_topics

    works = asyncio.run(run_topics(out, broker_settings(), create=create))
    raise typer.Exit(0 if works else 1)


@app.command()
def schema(
    topic: Annotated[str | None, typer.Argument(help="one topic; by default all topics")] = None,
) -> None:
    """Prints the JSON Schema of the records of every topic."""
    from streams import codec
    from streams.topics import TOPICS, by_name

    chosen = [by_name(topic)] if topic else [t for t in TOPICS if t.record is not None]
    schemas = {t.name: codec.schema(t.record) for t in chosen if t.record is not None}
    sys.stdout.buffer.write(orjson.dumps(schemas, option=orjson.OPT_INDENT_2) + b"\n")
