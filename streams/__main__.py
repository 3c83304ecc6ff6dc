"""The `pvstream` command: the groups of commands, and the errors that end in one line."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer
from rich.text import Text

from models.process import prepare
from models.redaction import redact
from models.startup_message import announce_slow_imports
from streams import __version__
from streams.broker.client_logs import configure_logging
from streams.cli import (
    annotate,
    pipeline_commands,
    release_commands,
    replay_commands,
    source_commands,
    topic_commands,
)
from streams.cli.environment import check_environment
from streams.cli.operations import commands as operations
from streams.cli.store import cases as case_commands
from streams.cli.store import commands as store_commands
from streams.cli.store import listed as listed_commands
from streams.cli.store import reference as reference_commands
from streams.cli.store import signals as signal_commands
from streams.cli.store import supplement as supplement_commands
from streams.cli.store import web as web_commands
from streams.cli.terminal import err
from streams.stopping import collect_rarely, is_ending

# Also in a child process, which imports this module anew.
prepare()
app = typer.Typer(
    help="Streaming pharmacovigilance: posts, clinical sentences and questions in; "
    "coded events, relations and summaries out.",
    no_args_is_help=True, pretty_exceptions_enable=False,
)  # fmt: skip
GROUPS = (
    pipeline_commands, annotate, source_commands, topic_commands, release_commands, replay_commands,
    operations, store_commands, signal_commands, listed_commands, reference_commands, web_commands,
    case_commands, supplement_commands,
)  # fmt: skip
for group in GROUPS:
    app.add_typer(group.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pvstream {__version__}")
        raise typer.Exit


@app.callback()
def check(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Runs before every command."""
    check_environment(os.environ)


def main() -> None:
    """Runs the command line; an error that the user can act on is printed in one line, with exit code 1."""
    announce_slow_imports()
    collect_rarely()
    configure_logging()
    try:
        app()
    except Exception as error:
        if is_ending():
            sys.exit(0)
        if isinstance(error, _reported_errors()):
            from streams.broker.clock import explained

            message = Text(explained(error) or redact(str(error)) or type(error).__name__)
            err.print("[bold red]error:[/]", message, soft_wrap=True)
        else:
            sys.stderr.write(redact(traceback.format_exc()))
        sys.exit(1)


def _reported_errors() -> tuple[type[Exception], ...]:
    """Imported only when a command has failed: they live in modules that take seconds to import."""
    from aiokafka.errors import KafkaError

    from models.files.row import UnreadableFile
    from models.releases.manifest import ReleaseError
    from models.terminology import TerminologyError
    from streams.reviews.chain import BrokenChain
    from streams.rollout.announcing import GateError
    from streams.sources.source import SourceFailed
    from streams.store.database import DatabaseError
    from streams.topics import TopicsError
    from streams.web.access import AccessError
    from streams.worker import WorkerFailed

    own = (
        ReleaseError, GateError, SourceFailed, DatabaseError, TopicsError, WorkerFailed, TerminologyError,
        BrokenChain, AccessError, UnreadableFile,
    )  # fmt: skip
    return KafkaError, *own, OSError


if __name__ == "__main__":
    main()
