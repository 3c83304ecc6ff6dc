"""The command `source`, which sends live posts to an input topic."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streams.cli.arguments import INPUT, MOST_SECONDS, named_values
from streams.cli.groups import DATA, example
from streams.cli.terminal import broker_settings, err, say

if TYPE_CHECKING:
    from streams.intake.intake import PostIntake
    from streams.settings import Settings
    from streams.sources.catalog import Options

app = typer.Typer()


NAMES = Annotated[
    list[str], typer.Argument(metavar="NAME...", help="bluesky, x, mastodon, rss or ndjson; one or more")
]
TOPIC = Annotated[INPUT, typer.Option(help="the topic")]
BLUESKY_SERVER = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", help="bluesky: Jetstream endpoint instead of the public ones; repeatable"),
]
INSTANCE = Annotated[
    list[str] | None,
    typer.Option(metavar="URL", help="mastodon: server, as https://mastodon.social; repeatable"),
]
INSTANCE_USERS = Annotated[
    bool, typer.Option("--mastodon-local", help="mastodon: only posts of the server's own users")
]
X_SERVER = Annotated[str, typer.Option(metavar="URL", help="x: address of the API instead of the public one")]
X_RULES = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, help="x: file of filter rules, one a line; by default all drug names"
    ),
]
X_BACKFILL = Annotated[
    int,
    typer.Option(min=0, max=5, help="x: minutes of past posts to request; needs an account with this right"),
]
SWEEP = Annotated[
    float,
    typer.Option(min=0.1, max=24, metavar="HOURS", help="x, mastodon: time between checks for deleted posts"),
]
FEED = Annotated[list[str] | None, typer.Option(metavar="URL", help="rss: RSS or Atom feed; repeatable")]
EVERY = Annotated[
    float, typer.Option(min=1, max=MOST_SECONDS, help="rss: seconds between two requests for a feed")
]
PATH = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="ndjson: a file; by default standard input")
]
FIELD = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FIELD", help="ndjson: read NAME (id, text, ...) from FIELD; repeatable"),
]
FOLLOW = Annotated[bool, typer.Option(help="ndjson: wait for more at the end of the file")]
EVERYTHING = Annotated[
    bool, typer.Option("--all", help="send all posts, also without a drug name or in another language")
]


@app.command(
    rich_help_panel=DATA, epilog=example("source bluesky mastodon --mastodon-server https://mastodon.social")
)
def source(
    names: NAMES,
    topic: TOPIC = "posts",
    bluesky_server: BLUESKY_SERVER = None,
    mastodon_server: INSTANCE = None,
    mastodon_local: INSTANCE_USERS = False,
    x_server: X_SERVER = "",
    x_rules: X_RULES = None,
    x_backfill: X_BACKFILL = 0,
    sweep: SWEEP = 18.0,
    feed: FEED = None,
    every: EVERY = 900.0,
    path: PATH = None,
    field: FIELD = None,
    follow: FOLLOW = True,
    everything: EVERYTHING = False,
) -> None:
    """Sends live posts to an input topic until stopped; reconnects, resumes, and passes deletions on."""
    from streams.sources.catalog import Options
    from streams.sources.protocols.ndjson import FIELDS

    options = Options(
        topic=topic,
        bluesky_servers=bluesky_server or (),
        mastodon_servers=mastodon_server or (),
        mastodon_local=mastodon_local,
        x_rules=x_rules,
        x_backfill=x_backfill,
        sweep=sweep * 3600,
        feeds=feed or (),
        every=every,
        path=path,
        fields=named_values(field or (), "NAME=FIELD", FIELDS, "--field"),
        follow=follow,
        **({"x_server": x_server} if x_server else {}),
    )
    _serve(names, options, everything)


@contextmanager
def _as_wrong_argument() -> Iterator[None]:
    """What a source lacks before it starts is the user's to name."""
    from streams.sources.source import SourceFailed

    try:
        yield
    except SourceFailed as error:
        raise typer.BadParameter(str(error)) from None


def _serve(names: list[str], options: Options, everything: bool) -> None:
    """Raises typer.BadParameter for settings that are not valid."""
    from streams.intake.forget import forget_authors
    from streams.intake.rebuild import rebuild
    from streams.sources.catalog import make_sources, terms
    from streams.sources.process import SourceProcess
    from streams.topics import by_name

    settings = broker_settings()
    with _as_wrong_argument():
        sources = make_sources(names, options, settings)
    for line in terms(names):
        say(line, err)
    intake = _intake(settings, everything=everything)
    process = SourceProcess(
        sources, intake, settings, topic=options.topic, forget_authors=partial(forget_authors, settings)
    )
    asyncio.run(process.serve(partial(rebuild, intake.window, settings, by_name(options.topic))))


def _intake(settings: Settings, *, everything: bool = False) -> PostIntake:
    """Raises typer.BadParameter where the file of terms cannot be read."""
    from streams.intake.intake import PostIntake

    try:
        return PostIntake.of(settings, everything=everything)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="PV_TERMS") from None
