"""The `pvstream` command: the groups of commands, and the errors that end in one line."""

from __future__ import annotations

import logging
import sys

import typer
from rich.text import Text

from streams.cli import pipeline_commands, release_commands, replay_commands, topic_commands
from streams.cli.terminal import err

app = typer.Typer(
    help="Streaming pharmacovigilance: posts, clinical sentences and questions in; "
    "coded events, relations and summaries out.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
)  # fmt: skip
for group in (pipeline_commands, topic_commands, release_commands, replay_commands):
    app.add_typer(group.app)


def main() -> None:
    """Runs the command line; an error that the user can act on is printed in one line, with exit code 1."""
    _configure_logging()
    try:
        app()
    except Exception as error:
        if not isinstance(error, _reported_errors()):
            raise
        err.print("[bold red]error:[/]", Text(str(error) or type(error).__name__), soft_wrap=True)
        sys.exit(1)


def _configure_logging() -> None:
    from streams.broker.client_logs import RepeatFilter

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(RepeatFilter())
    for name in ("streams", "models"):
        logging.getLogger(name).setLevel(logging.INFO)


def _reported_errors() -> tuple[type[Exception], ...]:
    """Imported only when a command has failed: they live in modules that take seconds to import."""
    from aiokafka.errors import KafkaError

    from models.releases.manifest import ReleaseError
    from streams.releases.publishing import GateError
    from streams.topics import TopicsError
    from streams.worker import WorkerFailed

    return KafkaError, ReleaseError, GateError, TopicsError, WorkerFailed, OSError


if __name__ == "__main__":
    main()
