"""Commands of operators: status, dead, check, asyncapi."""

from __future__ import annotations

import sys
from typing import Annotated

import orjson
import typer

from streams.cli.terminal import read_settings

app = typer.Typer()


@app.command()
def asyncapi(
    yaml: Annotated[bool, typer.Option("--yaml", help="print YAML instead of JSON")] = False,
) -> None:
    """Prints the AsyncAPI 3.1 document of all topics, with the names and settings of this environment."""
    from streams.cli.operations.asyncapi import document

    text = orjson.dumps(document(read_settings()), option=orjson.OPT_INDENT_2) + b"\n"
    if yaml:
        from yaml import safe_dump

        # Read again, because for a part that occurs twice YAML would write a reference.
        text = safe_dump(orjson.loads(text), sort_keys=False, allow_unicode=True, width=110).encode()
    sys.stdout.buffer.write(text)
