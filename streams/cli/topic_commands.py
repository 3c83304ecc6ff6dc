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
    """Lists the topics, the settings they are created with and their state on the broker."""
    from streams.cli.console import run_topics

    asyncio.run(run_topics(out, broker_settings(), create=create))


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
